//! The engine that does nothing: what the machine and the load generator show by themselves.

use crate::Result;
use crate::store::{Counters, Records, Store};

/// A store in which every operation returns at once.
#[derive(Clone, Copy, Debug)]
pub struct Empty;

impl Store for Empty {
    fn engine(&self) -> &'static str {
        "empty"
    }

    fn profile(&self) -> &'static str {
        ""
    }

    fn get(&self, _: &[u8], _: &mut Vec<u8>) -> Result<bool> {
        Ok(true)
    }

    fn put(&self, _: &[u8], _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn scan(&self, _: &[u8], _: usize, _: &mut Records) -> Result<()> {
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
