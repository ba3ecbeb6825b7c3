//! An engine of this comparison, as the benchmark of calm wants it.

use std::ops::ControlFlow;

use terrace_bench::Result;
use terrace_bench::recording::Event;
use terrace_bench::store::{Counters, Records, Store};

use crate::store::{self, Direction};

/// An open store; of what it tells of itself, where it does, the report is made beside what is told from outside.
pub struct Measured {
    pub name: String,
    pub store: Box<dyn store::Store>,
}

impl Store for Measured {
    fn engine(&self) -> &str {
        &self.name
    }

    fn profile(&self) -> &'static str {
        ""
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        Ok(self.store.get(key, &mut |found| value.extend_from_slice(found))?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.store.put(key, value)?)
    }

    fn scan(&self, from: &[u8], limit: usize, records: &mut Records) -> Result<()> {
        let mut left = limit;
        if left == 0 {
            return Ok(());
        }
        Ok(self.store.scan(from, Direction::Forward, &mut |key, value| {
            records.push(key, value);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?)
    }

    /// No engine but Terrace has a call for it; whoever measures waits until the process is at rest.
    fn drain(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> Counters {
        self.store.self_report().map_or_else(Counters::default, Store::counters)
    }

    fn events(&self) -> Vec<Event> {
        self.store.self_report().map_or_else(Vec::new, Store::events)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.store.close()?)
    }
}
