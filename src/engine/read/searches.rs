//! What a search of one table means for the others of its level.
//!
//! Lookups count how often they search tables of the largest level that overlap each other, so that the picker can merge what
//! is searched often ([`Searches`](crate::catalog::Searches)). Only a search that has got past the filter counts, and only
//! one of a key that a second run may hold: where one run alone has tables, there is nothing to merge. A scan seeks in all
//! tables that hold its first key, so it counts as a search of each.
//!
//! Debug builds also check that the first version that a lookup finds in a level is the newest there (I2, I3), and that what it
//! finds in a compaction buffer is what the level has (I6).

#[cfg(debug_assertions)]
use std::sync::Arc;

#[cfg(debug_assertions)]
use super::get::{Found, decide};
use super::path::ReadPath;
use crate::catalog::{TableMeta, Version};
#[cfg(debug_assertions)]
use crate::engine::keyspace::tree::View;
#[cfg(debug_assertions)]
use crate::merge::newest_over;
#[cfg(debug_assertions)]
use crate::types::Seq;

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

    /// INVARIANT(I6): what a compaction buffer has answered for `key` at `upto` is what the tree answers without it, from `level` on:
    /// the same value, or nothing. (A tombstone may be gone in the tree below which there is nothing, and a value that has expired.)
    #[cfg(debug_assertions)]
    pub(in crate::engine) fn assert_same(
        &self,
        view: &View,
        level: u8,
        (hash, key): (u64, &[u8]),
        (upto, found): (Seq, Option<&Found>),
    ) {
        let below = view.version.runs().filter(|(other, _)| *other >= level);
        let mut answer = None;
        for meta in below.filter_map(|(_, run)| run.find(key)).filter(|meta| meta.min_seq <= upto) {
            // What cannot be read is not this check's business.
            let Ok(reader) = self.cache.table(meta) else { return };
            let over = newest_over(reader.range_tombstones(), key, upto);
            let Ok(reader) = self.cache.open_for(&reader, key) else { return };
            let newest = if reader.may_contain(hash) { self.newest_in(&reader, key, upto) } else { Ok(None) };
            let Ok(newest) = newest else { return };
            if let Some(decided) = decide(newest, over) {
                answer = decided;
                break;
            }
        }
        let mut kept = view.buffer_of(level).into_iter().flat_map(|list| list.about(key));
        let has_expired = answer.is_none() && kept.any(|table| table.timestamps.is_some());
        let read = |(stamp, value): &Found| self.followed(view, *stamp, value.clone()).ok();
        assert!(
            answer.as_ref().map(read) == found.map(read) || has_expired,
            "I6: the buffer of level {level} and the tree have different values of {}",
            key.escape_ascii()
        );
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
