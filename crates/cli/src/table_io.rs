//! How a command's store writes its tables.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use terrace::env::Env;
use terrace::env::posix::PosixEnv;

/// The way to the disk.
#[derive(Args)]
pub struct IoArg {
    /// Write tables through the page cache, or past it by io_uring with direct I/O (Linux)
    #[arg(long, value_name = "WAY", value_enum, default_value_t = Io::Posix)]
    io: Io,
}

#[derive(Clone, Copy, ValueEnum)]
enum Io {
    Posix,
    #[cfg(target_os = "linux")]
    Uring,
}

impl IoArg {
    /// The environment to open the store with. Where there is no io_uring, a warning is printed and it is that of the system.
    pub fn env(&self) -> Arc<dyn Env> {
        match self.io {
            Io::Posix => PosixEnv::shared(),
            #[cfg(target_os = "linux")]
            Io::Uring => terrace_uring::UringEnv::or_inner(PosixEnv::shared(), |refused| {
                eprintln!("terrace: no io_uring here ({refused}); tables are written through the page cache");
            }),
        }
    }
}
