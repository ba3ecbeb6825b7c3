//! Shares of the suites, and whether their judges notice: one program, so that a change of the store links one. `corruption` replaces the
//! allocator and `soak` counts what its process has, so each of these has a program of its own.

mod crash;
mod fault;
mod planted;
