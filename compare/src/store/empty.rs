//! No engine: every call returns at once, with the same bytes for every key, as many as were put last.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use super::{Direction, See, SeeValue, Store};

/// What every lookup finds and every scan shows, or its beginning.
const VALUE: [u8; 4096] = [7; 4096];

/// Size of a value before anything is put.
const VALUE_BYTES: usize = 100;

/// Rows that a scan shows unless it is stopped.
const ROWS: usize = 10_000_000;

/// The store that is not there.
pub struct Empty {
    value_bytes: AtomicUsize,
}

impl Empty {
    /// Without a value yet.
    pub fn new() -> Self {
        Self { value_bytes: AtomicUsize::new(VALUE_BYTES) }
    }

    fn value(&self) -> &[u8] {
        &VALUE[..self.value_bytes.load(Ordering::Relaxed)]
    }
}

impl Store for Empty {
    fn get(&self, _key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        see(self.value());
        Ok(true)
    }

    fn put(&self, _key: &[u8], value: &[u8]) -> Result<()> {
        self.value_bytes.store(value.len().min(VALUE.len()), Ordering::Relaxed);
        Ok(())
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        records.last().map_or(Ok(()), |(key, value)| self.put(key, value))
    }

    fn scan(&self, from: &[u8], _direction: Direction, see: See<'_>) -> Result<()> {
        for _ in 0..ROWS {
            if let ControlFlow::Break(()) = see(from, self.value()) {
                break;
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
