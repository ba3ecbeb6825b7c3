//! No engine: every call returns at once, with the same bytes for every key.

use std::ops::ControlFlow;

use anyhow::Result;

use super::{Direction, See, SeeValue, Store};

/// What every lookup finds and every scan shows.
const VALUE: [u8; 100] = [7; 100];

/// Rows that a scan shows unless it is stopped.
const ROWS: usize = 10_000_000;

/// The store that is not there.
pub struct Empty;

impl Store for Empty {
    fn get(&self, _key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        see(&VALUE);
        Ok(true)
    }

    fn put(&self, _key: &[u8], _value: &[u8]) -> Result<()> {
        Ok(())
    }

    fn put_batch(&self, _records: &[(&[u8], &[u8])]) -> Result<()> {
        Ok(())
    }

    fn scan(&self, from: &[u8], _direction: Direction, see: See<'_>) -> Result<()> {
        for _ in 0..ROWS {
            if let ControlFlow::Break(()) = see(from, &VALUE) {
                break;
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
