//! A simulated machine in memory, with power cuts, faults and virtual time.
//!
//! [`SimEnv`] is an [`Env`](super::Env) whose every outcome follows from a seed. It has two uses:
//!
//! * by itself, as a disk in memory for ordinary tests: real threads, and a clock that only I/O and sleep move;
//! * under [`SimEnv::run`], as a whole machine: the closure and every thread that it starts run one at a time, in an
//!   order drawn by the seed, in virtual time.
//!
//! `fault` says what may go wrong. The other parts: `env` answers the calls, and `file` those of open files; `machine` is
//! the state and the path that every call takes; `disk` holds names, `inode` and
//! `contents` hold files, `log` holds what a power cut may undo; `device` and `processor` say what work costs, `page_cache` which
//! reads need the device, and `read_ahead` which of them have begun before; `schedule` orders the
//! threads; `holds` says how long they hold locks. None of them knows what the engine stores.
//!
//! ```
//! use std::path::Path;
//! use terrace::env::Env;
//! use terrace::env::simulated::{SimConfig, SimEnv, Survival};
//!
//! # fn main() -> std::io::Result<()> {
//! let env = SimEnv::new(SimConfig::default());
//! let file = env.create(Path::new("/f"))?;
//! env.sync_dir(Path::new("/"))?;
//! file.write_at(0, b"synced")?;
//! file.sync()?;
//! file.write_at(0, b"UNSYNC")?;
//! let restarted = env.crash(Survival::Nothing);
//! assert_eq!(restarted.read_file(Path::new("/f"))?, b"synced");
//! # Ok(())
//! # }
//! ```

mod contents;
mod device;
mod disk;
mod env;
mod fault;
mod file;
mod holds;
mod inode;
mod log;
mod machine;
mod page_cache;
mod processor;
mod random;
mod read_ahead;
pub(super) mod schedule;
#[cfg(test)]
mod tests;

pub use device::DeviceModel;
pub use disk::Journal;
pub use env::SimEnv;
pub use fault::{FaultError, FaultRule, FaultTarget, Operation};
pub use log::Survival;
pub use machine::SimConfig;
pub use page_cache::PageReads;
pub use processor::ProcessorModel;
