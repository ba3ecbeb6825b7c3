//! Overlap clusters: tables of level 0 that share keys, directly or through others.

use std::sync::Arc;

use crate::catalog::{Run, TableMeta};
use crate::types::KeyRange;

/// Divisor: in even runs, none holds more than this part of the bytes of all.
pub(super) const EVEN_PARTS: u64 = 3;

/// Tables that share keys with each other, and with no other table of the runs that were looked at.
pub(super) struct OverlapCluster {
    pub(super) range: KeyRange,
    /// Number of tables.
    pub(super) tables: usize,
    /// Bytes of each run's tables.
    pub(super) run_bytes: Vec<u64>,
}

impl OverlapCluster {
    /// Whether no run holds more than a third of it. Then the run that its bytes come to lie in is at least three
    /// times as large as the largest before.
    pub(super) fn is_even(&self) -> bool {
        self.run_bytes.iter().all(|bytes| *bytes <= self.bytes() / EVEN_PARTS)
    }

    /// Bytes of all tables.
    pub(super) fn bytes(&self) -> u64 {
        self.run_bytes.iter().sum()
    }
}

/// The overlap clusters of `runs`, in key order.
pub(super) fn clusters(runs: &[Run]) -> Vec<OverlapCluster> {
    let of_run = |(at, run)| Run::iter(run).map(move |table| (at, table));
    let mut tables: Vec<(usize, &Arc<TableMeta>)> = runs.iter().enumerate().flat_map(of_run).collect();
    tables.sort_by(|(_, one), (_, other)| one.range.start.cmp(&other.range.start));
    let mut clusters: Vec<OverlapCluster> = Vec::new();
    for (run, table) in tables {
        if !clusters.last().is_some_and(|cluster| cluster.range.overlaps(&table.range)) {
            let (range, run_bytes) = (table.range.clone(), vec![0; runs.len()]);
            clusters.push(OverlapCluster { range, tables: 0, run_bytes });
        }
        if let Some(cluster) = clusters.last_mut() {
            cluster.range = cluster.range.hull(&table.range);
            cluster.tables += 1;
            cluster.run_bytes[run] += table.bytes();
        }
    }
    clusters
}
