//! What of level 0 hangs together: tables that share keys, directly or by way of others, make a *knot*.

use std::sync::Arc;

use crate::catalog::{Run, TableMeta};
use crate::types::KeyRange;

/// Tables that share keys, and no keys with any other table of the runs that were looked at.
pub(super) struct Knot {
    pub(super) range: KeyRange,
    /// Number of tables.
    pub(super) tables: usize,
    /// Bytes of each run's tables.
    pub(super) run_bytes: Vec<u64>,
}

impl Knot {
    /// Bytes of all tables.
    pub(super) fn bytes(&self) -> u64 {
        self.run_bytes.iter().sum()
    }
}

/// The knots of `runs`, in key order.
pub(super) fn knots(runs: &[Run]) -> Vec<Knot> {
    let of_run = |(at, run)| Run::iter(run).map(move |table| (at, table));
    let mut tables: Vec<(usize, &Arc<TableMeta>)> = runs.iter().enumerate().flat_map(of_run).collect();
    tables.sort_by(|(_, one), (_, other)| one.range.start.cmp(&other.range.start));
    let mut knots: Vec<Knot> = Vec::new();
    for (run, table) in tables {
        if !knots.last().is_some_and(|knot| knot.range.overlaps(&table.range)) {
            let (range, run_bytes) = (table.range.clone(), vec![0; runs.len()]);
            knots.push(Knot { range, tables: 0, run_bytes });
        }
        if let Some(knot) = knots.last_mut() {
            knot.range = knot.range.hull(&table.range);
            knot.tables += 1;
            knot.run_bytes[run] += table.bytes();
        }
    }
    knots
}
