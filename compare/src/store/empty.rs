//! No engine: every call returns at once, with the same bytes for every key, as many as were put last.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use super::{Direction, See, SeeValue, Store};
use crate::records::VALUE_BYTES;

/// What every lookup finds and every scan shows, or its beginning.
static VALUE: [u8; *VALUE_BYTES.end()] = [7; *VALUE_BYTES.end()];

/// Rows that a scan shows unless it is stopped.
const ROWS: usize = 10_000_000;

/// The store that is not there.
pub struct Empty {
    value_bytes: AtomicUsize,
}

impl Empty {
    /// Whose values are empty yet.
    pub fn new() -> Self {
        Self { value_bytes: AtomicUsize::new(0) }
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
        self.value_bytes.store(value.len(), Ordering::Relaxed);
        Ok(())
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        records.last().map_or(Ok(()), |(key, value)| self.put(key, value))
    }

    fn delete(&self, _key: &[u8]) -> Result<()> {
        Ok(())
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
