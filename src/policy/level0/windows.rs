//! Windows for intra-L0 compaction: neighbouring runs of level 0 that may become one run.
//!
//! Only what the runs of a window share counts. What a run has alone in a range of keys need not be written, and
//! whatever has been compacted within level 0 already is alone there. A window costs the bytes that its runs share.
//! It saves one run less than it has. The best windows cost least for each run that is saved.
//!
//! With a given ratio there are no windows: level 0 is LevelDB's then. Only the newest runs are looked at, so the
//! search is bounded however many runs there are.

use std::cmp::Reverse;
use std::ops::Range;

use crate::catalog::Version;
use crate::policy::clusters::{EVEN_PARTS, clusters};
use crate::policy::costs::Costs;
use crate::policy::layout::Layout;

/// Windows are sought among this many runs of level 0, the newest.
const INTRA_L0_RUNS_MAX: usize = 64;

/// At most this many windows are tried, since the cheapest may have nothing that can be compacted.
const INTRA_L0_COMPACTIONS_MAX: usize = 16;

impl Layout {
    /// The windows that readers have paid for, with their prices as in [`Layout::price_of_level0`]: the cheapest few,
    /// the cheapest first. What is paid for is one run less. An intra-L0 compaction writes no byte of the level below,
    /// and serves readers as long as level 0 stays. None with a given ratio: level 0 is LevelDB's then.
    #[must_use]
    pub fn intra_l0(
        &self,
        version: &Version,
        read_debt_bytes: u64,
        costs: &Costs,
    ) -> Vec<(Range<usize>, u64)> {
        // No window costs less.
        let saved_max = (version.level(0).runs.len() as u64).saturating_sub(1);
        if saved_max == 0 || read_debt_bytes < costs.job_bytes() / saved_max {
            return Vec::new();
        }
        let windows = self.windows(version).into_iter();
        let mut windows: Vec<_> = windows.map(|window| (window.price(costs), window.runs)).collect();
        windows.retain(|(price, _)| *price <= read_debt_bytes);
        windows.sort_by_key(|(price, _)| *price);
        windows.truncate(INTRA_L0_COMPACTIONS_MAX);
        windows.into_iter().map(|(price, runs)| (runs, price)).collect()
    }

    /// The windows for idle time: those of which no run holds more than a third, the ones that save most runs first.
    /// So the larger the run that a byte lies in, the fewer times it is written again: two or three times on the way
    /// from full runs to a level 0 that is due. None with a given ratio.
    #[must_use]
    pub fn idle_intra_l0(&self, version: &Version, costs: &Costs) -> Vec<Range<usize>> {
        let mut windows = self.windows(version);
        windows.retain(|window| window.largest_bytes <= window.bytes / EVEN_PARTS);
        windows.sort_by_key(|window| (Reverse(window.saved), window.price(costs)));
        windows.truncate(INTRA_L0_COMPACTIONS_MAX);
        windows.into_iter().map(|window| window.runs).collect()
    }

    /// The windows of neighbouring runs of level 0 that share keys; none with a given ratio.
    fn windows(&self, version: &Version) -> Vec<Window> {
        let runs = &version.level(0).runs;
        let runs = if self.has_intra_l0() { &runs[..runs.len().min(INTRA_L0_RUNS_MAX)] } else { &[] };
        let clusters = clusters(runs);
        let parts_of = |run: usize| {
            let parts = clusters.iter().enumerate().map(move |(at, cluster)| (at, cluster.run_bytes[run]));
            parts.filter(|(_, bytes)| *bytes > 0).collect()
        };
        let parts: Vec<Vec<(usize, u64)>> = (0..runs.len()).map(parts_of).collect();
        let mut windows = Vec::new();
        for from in 0..runs.len() {
            // `shared`: bytes of each run that lie in an overlap cluster with another run of the window. `alone`: the
            // only run so far that has any of an overlap cluster, with its bytes.
            let mut shared = vec![0; runs.len()];
            let mut alone: Vec<Option<(usize, u64)>> = vec![None; clusters.len()];
            let mut met = vec![false; clusters.len()];
            for to in from..runs.len() {
                for &(at, bytes) in &parts[to] {
                    if !std::mem::replace(&mut met[at], true) {
                        alone[at] = Some((to, bytes));
                        continue;
                    }
                    shared[to] += bytes;
                    if let Some((first, bytes)) = alone[at].take() {
                        shared[first] += bytes;
                    }
                }
                let saved = shared.iter().filter(|bytes| **bytes > 0).count().saturating_sub(1) as u64;
                // Without a run at either end that shares nothing, it is another window.
                if shared[from] > 0 && shared[to] > 0 {
                    let (bytes, largest_bytes) =
                        (shared.iter().sum(), shared.iter().copied().max().unwrap_or(0));
                    windows.push(Window { runs: from..to + 1, saved, bytes, largest_bytes });
                }
            }
        }
        windows
    }
}

/// Neighbouring runs of level 0 that share keys. What a run has alone in a range of keys does not count: it need not
/// be written.
struct Window {
    runs: Range<usize>,
    /// How many runs fewer there are after its intra-L0 compaction.
    saved: u64,
    bytes: u64,
    /// Of the run that has most of them.
    largest_bytes: u64,
}

impl Window {
    /// The cost of its intra-L0 compaction, in bytes, for each run that is saved.
    fn price(&self, costs: &Costs) -> u64 {
        costs.compaction_bytes(costs.compaction(self.bytes, 1)) / self.saved
    }
}
