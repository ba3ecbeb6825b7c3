//! What large values cost: how fast they are written and read, how many bytes the disk writes for them, and how much space they
//! take over time.
//!
//! 1. A [`Cell`] is one workload on a store of its own: values of one [`Size`] are loaded, updated, read and deleted, phase by
//!    phase, while the space of the store is looked at again and again.
//! 2. The workload knows only [`Subject`], so it runs on other engines, too. [`Terrace`] separates values or does not.
//! 3. [`verdicts`] holds the figures of Terrace with separated values against their goals: some by themselves, some beside the
//!    figures of the other engines in the same run.
//! 4. Everything runs on the real file system in one thread of load. `terrace bench values` runs it on Terrace.

mod goals;
mod mail;
mod meter;
mod records;
mod result;
mod session;
mod size;
mod space;
mod subject;
mod terrace;
mod text;

use std::path::PathBuf;

use session::Session;

pub use goals::{Verdict, verdicts};
pub use result::{Cell, Group, Phase, ValuesRun, groups};
pub use size::Size;
pub use space::SpacePoint;
pub use subject::{Drain, Engine, Role, SeeRow, Subject};
pub use terrace::{Separation, Terrace};
pub(crate) use text::{SizeTable, tables};
pub use text::{markdown, text};

use crate::Result;
use crate::report::Provenance;

/// How much is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Bytes of keys and values that are loaded.
    pub data_bytes: u64,
    /// Memory of a store; a quarter of the data where there is none.
    pub memory_bytes: Option<u64>,
    /// Seconds of each phase of updates.
    pub update_s: f64,
    /// Seconds of each phase of reads.
    pub read_s: f64,
    /// Seconds after the last write at which space is told as that at rest.
    pub rest_s: f64,
    /// Operations after which a phase of updates or reads ends before its time.
    pub operations_max: u64,
    /// Where stores are made; they are removed afterwards.
    pub dir: PathBuf,
    /// Names the streams of random numbers.
    pub seed: u64,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            data_bytes: 1024 << 20,
            memory_bytes: None,
            update_s: 30.0,
            read_s: 10.0,
            rest_s: 5.0,
            operations_max: u64::MAX,
            dir: PathBuf::from("."),
            seed: 1,
        }
    }
}

/// The least memory that an engine takes.
const MEMORY_BYTES_MIN: u64 = 4 << 20;

impl Choice {
    /// Memory of a store.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.unwrap_or(self.data_bytes / 4).max(MEMORY_BYTES_MIN)
    }

    /// A run of `cells`, measured by this program.
    #[must_use]
    pub fn run(&self, cells: Vec<Cell>) -> ValuesRun {
        ValuesRun {
            provenance: Provenance::here(),
            seed: self.seed,
            data_bytes: self.data_bytes,
            memory_bytes: self.memory_bytes(),
            update_s: self.update_s,
            read_s: self.read_s,
            rest_s: self.rest_s,
            values: cells,
        }
    }
}

/// Measures `engine` with values of one size; `round` tells which of several runs of the same it is.
///
/// # Errors
/// Whatever a store or the file system reports, and an answer that is wrong.
pub fn measure(engine: &dyn Engine, size: Size, round: u32, choice: &Choice) -> Result<Cell> {
    let measured = || {
        let mut session = Session::begin(engine, size, choice)?;
        if size == Size::Mail {
            mail::mail(&mut session)?
        } else {
            session.workload()?
        }
        session.end(round)
    };
    measured().map_err(|error| format!("{}, {size}: {error}", engine.name()).into())
}

#[cfg(test)]
mod tests;
