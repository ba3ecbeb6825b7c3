//! Reads everything and checks it against itself.

use std::sync::Arc;

use super::Engine;
use super::tree::Tree;
use crate::catalog::{TableMeta, check_version};
use crate::error::{Error, Result};
use crate::format::edit::TableRecord;
use crate::format::filter::{self, PrefixProbe};
use crate::merge::Cursor;
use crate::stats::VerifyReport;
use crate::store::manifest::Manifest;
use crate::store::pack::read_directory;
use crate::store::table::{Fetch, TableCursor, TableReader};
use crate::types::{Kind, PackId, RangeTombstone, Seq};

impl Engine {
    /// Checks the manifest, every pack's directory, and every block of every table. Damage is reported, not returned
    /// as an error.
    pub(crate) fn verify(&self) -> Result<VerifyReport> {
        self.health.check_open()?;
        let mut report = VerifyReport::default();
        {
            // No switch to another manifest meanwhile.
            let _log = self.catalog.lock();
            let mut loaded = Manifest::load(&self.device);
            if loaded.is_err() && self.writer.is_none() {
                // The writer beside may have switched.
                loaded = Manifest::load(&self.device);
            }
            note(&mut report, loaded.map(|_| ()));
        }
        // A version holds its tables, so nothing vanishes during the check.
        let views: Vec<_> = self.trees().values().map(|tree| (tree.clone(), tree.view_arc())).collect();
        let mut packs: Vec<PackId> = Vec::new();
        for (tree, view) in &views {
            if let Err(inconsistent) = check_version(&view.version) {
                report.problems.push(Error::corruption(self.device.dir(), 0, inconsistent.to_string()));
            }
            for (_, table) in view.version.tables() {
                packs.push(table.extent.pack);
                let checked = self.verify_table(tree, table, &mut report);
                note(&mut report, checked);
            }
        }
        packs.sort_unstable();
        packs.dedup();
        for pack in packs {
            let checked = self.verify_pack(pack, &mut report);
            note(&mut report, checked);
        }
        Ok(report)
    }

    /// Every entry of a table: order, range, counts, and that the filter lets its key through; and its range tombstones.
    fn verify_table(&self, tree: &Tree, meta: &Arc<TableMeta>, report: &mut VerifyReport) -> Result<()> {
        let file = self.cache.packs().file(meta.extent.pack)?;
        let table = Arc::new(TableReader::open(&file, meta.id, meta.extent, meta.max_seq)?);
        let damaged =
            |what: &str| Err(file.corruption(meta.extent.offset, format!("table {}: {what}", meta.id)));
        let properties = table.properties(&file)?;
        if properties.keyspace != tree.id() {
            return damaged("belongs to another keyspace");
        }
        report.tables += 1;
        report.blocks += table.blocks() as u64;
        report.bytes += meta.extent.length;
        let mut cursor = TableCursor::new(self.cache.clone(), table.clone(), Fetch::Ahead);
        let mut last: Option<(Vec<u8>, crate::types::Stamp)> = None;
        let (mut entries, mut tombstones) = (0, 0);
        let (mut min_seq, mut max_seq) = (Seq::MAX, Seq::ZERO);
        cursor.seek_first()?;
        while cursor.valid() {
            let (key, stamp) = (cursor.key(), cursor.stamp());
            if last.as_ref().is_some_and(|(last, newer)| (key, *newer) <= (last, stamp)) {
                return damaged("entries are out of order");
            }
            if !meta.range.contains(key) {
                return damaged("an entry lies outside the table's range");
            }
            if !table.may_contain(filter::hash(key)) {
                return damaged("the filter denies a key that is there");
            }
            let prefix = tree.record.prefix.and_then(|rule| Some(PrefixProbe::new(rule, rule.of(key)?)));
            if prefix.is_some_and(|prefix| !table.may_contain_prefix(&prefix)) {
                return damaged("the filter denies the prefix of a key that is there");
            }
            entries += 1;
            tombstones += u64::from(stamp.kind() == Kind::Delete);
            (min_seq, max_seq) = (min_seq.min(stamp.seq()), max_seq.max(stamp.seq()));
            last = Some((key.to_vec(), stamp));
            cursor.next()?;
        }
        for RangeTombstone { range, seq } in table.range_tombstones() {
            if !meta.range.covers(range) {
                return damaged("a range tombstone reaches beyond the table's range");
            }
            (min_seq, max_seq) = (min_seq.min(*seq), max_seq.max(*seq));
        }
        let range_tombstones = table.range_tombstones().len() as u64;
        report.entries += entries;
        report.range_tombstones += range_tombstones;
        let recorded = meta.record();
        let counted =
            TableRecord { entries, tombstones, range_tombstones, min_seq, max_seq, ..recorded.clone() };
        if counted != recorded || !properties.tell(&recorded) {
            return damaged("entries do not add up to what is recorded of the table");
        }
        Ok(())
    }

    /// The directory at the end of a pack.
    fn verify_pack(&self, id: PackId, report: &mut VerifyReport) -> Result<()> {
        let file = self.cache.packs().file(id)?;
        let length = self.catalog.lock().catalog.pack(id).map(|pack| pack.record.length);
        // A pack that has lost its last table since is none of ours.
        let Some(length) = length else { return Ok(()) };
        read_directory(&file, id, length)?;
        report.packs += 1;
        Ok(())
    }
}

fn note(report: &mut VerifyReport, checked: Result<()>) {
    report.problems.extend(checked.err());
}
