//! What a search of one table means for the others of its level.
//!
//! Lookups count how often they search tables of the largest level that overlap each other, so that the picker can merge what
//! is searched often ([`Searches`](crate::catalog::Searches)). Only a search that has got past the filter counts, and only
//! one of a key that a second run may hold: where one run alone has tables, there is nothing to merge. A scan seeks in all
//! tables that hold its first key, so it counts as a search of each.
//!
//! Debug builds also check that the first version that a lookup finds in a level is the newest there (I2, I3).

#[cfg(debug_assertions)]
use std::sync::Arc;

use super::path::ReadPath;
use crate::catalog::{TableMeta, Version};

impl ReadPath {
    /// Counts a search of `table`, which lies in `level`, for `key`. Wakes the scheduler when it has become due for that.
    pub(in crate::engine) fn count_search(
        &self,
        version: &Version,
        (level, table): (u8, &TableMeta),
        key: &[u8],
    ) {
        let state = version.level(level);
        if level == 0 || state.depth() < 2 {
            return;
        }
        let overlaps = state.runs.iter().filter_map(|run| run.find(key)).nth(1).is_some();
        if !overlaps || version.largest() != Some(level) {
            return;
        }
        let count = table.searches.count();
        let max = self.settings.load().policy.picker.accesses_max(table.bytes());
        // Again for each further such number: the request may have been put off, or found a job in its way.
        if max.is_some_and(|max| count.is_multiple_of(max)) {
            self.scheduler.wake();
        }
    }

    /// Counts a scan from `key` on as a search of each table of the largest level that holds that key.
    pub(in crate::engine) fn count_scan(&self, version: &Version, key: &[u8]) {
        if self.settings.load().policy.picker.accesses_max(0).is_none() {
            return;
        }
        let Some(level) = version.largest() else { return };
        for table in version.level(level).runs.iter().filter_map(|run| run.find(key)) {
            self.count_search(version, (level, table), key);
        }
    }

    /// INVARIANT(I3): no table of `level` that is searched after `table` has a newer version of `key` than `found`, which
    /// was found at `upto`. Only tables that have newer entries of other keys need a look: the sequence-bounded search of
    /// a level without order would go on with these.
    #[cfg(debug_assertions)]
    pub(in crate::engine) fn assert_newest(
        &self,
        version: &Version,
        (level, table): (u8, &Arc<TableMeta>),
        (hash, key): (u64, &[u8]),
        (found, upto): (crate::types::Seq, crate::types::Seq),
    ) {
        let state = version.level(level);
        let behind = state.run_of(table).map_or(state.depth(), |run| run + 1);
        for older in state.runs[behind..].iter().filter_map(|run| run.find(key)) {
            if older.max_seq <= found || older.min_seq > upto {
                continue;
            }
            // What cannot be read is not this check's business.
            let Ok(reader) = self.cache.table(older) else { continue };
            let Ok(reader) = self.cache.open_for(&reader, key) else { continue };
            if !reader.may_contain(hash) {
                continue;
            }
            let Ok(Some((stamp, _))) = self.newest_in(&reader, key, upto) else { continue };
            assert!(
                stamp.seq() < found,
                "I3: {table:?} stands before {older:?}, which has a newer version of {}",
                key.escape_ascii()
            );
        }
    }
}
