//! The rings of an environment: a file that is being written has one to itself, and gives it back when it is synced.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use terrace::env::sync::Mutex;

use crate::kernel::Kernel;

/// Most rings that are kept for files to come. More are made if more files are written at a time.
const KEPT_MAX: usize = 4;

/// Makes a ring.
pub(crate) type Maker = Box<dyn Fn() -> io::Result<Box<dyn Kernel>> + Send + Sync>;

/// Rings, and counts of what they did.
pub(crate) struct Pool {
    make: Maker,
    kept: Mutex<Vec<Box<dyn Kernel>>>,
    pub(crate) counts: Counts,
}

/// Bytes of the files that the environment chooses.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    direct: AtomicU64,
    buffered: AtomicU64,
}

impl Counts {
    /// Notes bytes that went past the page cache.
    pub(crate) fn direct(&self, bytes: u64) {
        self.direct.fetch_add(bytes, Relaxed);
    }

    /// Notes bytes that went through it.
    pub(crate) fn buffered(&self, bytes: u64) {
        self.buffered.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn both(&self) -> (u64, u64) {
        (self.direct.load(Relaxed), self.buffered.load(Relaxed))
    }
}

impl Pool {
    /// A pool with one ring, to see whether there can be any.
    pub(crate) fn new(make: Maker) -> io::Result<Self> {
        let first = make()?;
        Ok(Self { make, kept: Mutex::new(vec![first]), counts: Counts::default() })
    }

    /// A ring with nothing in flight.
    pub(crate) fn take(&self) -> io::Result<Box<dyn Kernel>> {
        let kept = self.kept.lock().pop();
        kept.map_or_else(&self.make, Ok)
    }

    /// Takes one back, with nothing in flight.
    pub(crate) fn give(&self, kernel: Box<dyn Kernel>) {
        let mut kept = self.kept.lock();
        if kept.len() < KEPT_MAX {
            kept.push(kernel);
        }
    }
}
