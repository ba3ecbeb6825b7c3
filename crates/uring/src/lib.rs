//! An environment that writes a store's tables past the page cache, with io_uring. For Linux; opt-in.
//!
//! ```
//! # #[cfg(target_os = "linux")] {
//! use terrace::env::posix::PosixEnv;
//! # let dir = tempfile::tempdir().unwrap();
//! let env = terrace_uring::UringEnv::or_inner(PosixEnv::shared(), |refused| eprintln!("{refused}"));
//! let db = terrace::Db::builder(dir.path()).env(env).open().unwrap();
//! db.put("apple", "red").unwrap();
//! # }
//! ```
//!
//! 1. [`UringEnv`] wraps another environment. It knows packs by their names and opens them once more, with `O_DIRECT`.
//! 2. `file`: such a file. What is appended to it goes through a stream, all else to the environment below.
//! 3. `stream`: bytes in buffers, several of which are being written at any time.
//! 4. `ring`: the io_uring and the buffers. `pool`: a ring for each file that is being written.
//!
//! Not here: reads past the page cache, and polled completions, which want queues of a driver that polls, and a second ring
//! for all that is no read or write. `docs/design/devices.md` says what must hold, `docs/benchmarks/choices.md` what it is
//! worth.
#![cfg(target_os = "linux")]

mod env;
mod file;
mod kernel;
mod pool;
mod ring;
#[cfg(test)]
mod scripted;
mod stream;

pub use env::{UringEnv, Written};
