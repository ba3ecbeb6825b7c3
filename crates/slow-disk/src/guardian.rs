//! The guardian of a run: a process beside it that clears the run if the run is killed.
//!
//! It has a session of its own and survives the signals that end programs at a terminal. It waits for the run's lock,
//! which it gets when all processes of the run are dead, and then clears the run as the next run would.

use std::fs::File;
use std::io;
use std::process::{Child, Stdio};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;
use rustix::process::setsid;

use crate::directory::{LOCK, dir, hold_runs};
use crate::leftovers;
use crate::system::{Stop, this_program};

/// First argument of this program as a guardian; the second is the run's id.
pub const ROLE: &str = "--guardian-of";

/// Starts the guardian of run `id`.
pub fn start(id: u32) -> Result<Child> {
    let mut guardian = this_program(ROLE);
    guardian.arg(id.to_string()).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    guardian.spawn().context("cannot start the guardian")
}

/// Guards run `id` to its end.
pub fn guard(id: u32) -> Result<()> {
    setsid()?;
    let _survived = Stop::listen()?;
    let lock = match File::open(dir(id).join(LOCK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        lock => lock?,
    };
    retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive))?;
    // Whoever clears it first needs it.
    drop(lock);
    leftovers::clear(&hold_runs()?)
}
