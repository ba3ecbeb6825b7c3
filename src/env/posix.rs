//! The operating system: files, clock and threads of a POSIX machine.
