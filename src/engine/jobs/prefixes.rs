//! The rule by which a job cuts tables between prefixes: that of the keyspace, or a length that fits its data.
//!
//! The length is chosen by the first job after an opening that needs it, and again once the deepest level has grown to a
//! multiple of what it was. While the store is open it only grows, so that tables which were cut before hold whole
//! prefixes by the new length, too. It is not stored: the next opening chooses from what there is then, and a table tells by
//! its range alone whether it has a single prefix.

use super::context::JobContext;
use crate::catalog::{Run, TableMeta, Version};
use crate::engine::keyspace::tree::Tree;
use crate::policy::prefix_length;
use crate::types::Prefix;

/// Tables of the deepest level that are looked at.
const SAMPLED_TABLES: usize = 16;

impl JobContext {
    /// The rule by which a job that begins now cuts tables of `tree`; `None` if it cuts them by size alone, or nothing is
    /// known.
    pub(in crate::engine) fn cut_prefix(&self, tree: &Tree) -> Option<Prefix> {
        let settings = self.settings.load();
        if !settings.policy.cutter.cuts_between_prefixes() {
            return None;
        }
        if let Some(rule) = tree.record.prefix {
            return Some(rule);
        }
        let version = tree.view().version.clone();
        let bytes = version.deepest().map_or(0, |level| version.bytes(level));
        let fitting = &tree.fitting_prefix;
        if fitting.is_due(bytes) {
            fitting
                .choose(prefix_length(&self.samples(&version), settings.policy.cutter.table_bytes()), bytes);
        }
        fitting.rule()
    }

    /// Index keys of some tables of the deepest level. A table that cannot be read is left out: whoever needs it will say so.
    fn samples(&self, version: &Version) -> Vec<Vec<(Vec<u8>, u64)>> {
        let largest = version.deepest().and_then(|level| version.level(level).largest());
        let tables: Vec<&std::sync::Arc<TableMeta>> = largest.into_iter().flat_map(Run::iter).collect();
        let step = tables.len().div_ceil(SAMPLED_TABLES).max(1);
        let readers = tables.into_iter().step_by(step).filter_map(|table| self.cache.table(table).ok());
        readers.map(|reader| reader.index_keys().collect()).collect()
    }
}
