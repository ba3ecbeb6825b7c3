//! Verify: reads the whole store and checks it against itself.
//!
//! It needs the catalog, the keyspaces and the files: all that is in [`JobContext`]. It changes nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::catalog::{TableMeta, check_version};
use crate::engine::jobs::context::JobContext;
use crate::engine::keyspace::tree::Tree;
use crate::error::{Error, Result};
use crate::format::edit::TableRecord;
use crate::format::filter::{self, PrefixProbe};
use crate::format::timestamped;
use crate::merge::Cursor;
use crate::stats::VerifyReport;
use crate::store::files::file::StoreFile;
use crate::store::files::pack::read_directory;
use crate::store::files::punch::stored;
use crate::store::manifest::Manifest;
use crate::store::table::{Fetch, TableCursor, TableReader};
use crate::types::{Extent, Kind, PackId, RangeTombstone, Seq, TableId, Timestamps};

/// What a file system may take for its own records of a file, and to fill its last block, in bytes.
const RECORD_BYTES_MAX: u64 = 64 << 10;

/// A table that a version names.
struct LiveTable {
    id: TableId,
    extent: Extent,
    /// Whether all of it could be read and is sound.
    checks: bool,
}

/// A check of the store.
#[derive(Debug)]
pub(in crate::engine) struct Verification<'a> {
    pub(in crate::engine) jobs: &'a JobContext,
}

impl Verification<'_> {
    /// Checks the manifest, every pack's directory and storage, and every block of every table. Damage is reported, not
    /// returned as an error.
    pub(in crate::engine) fn run(&self) -> Result<VerifyReport> {
        self.jobs.health.check_open()?;
        let device = &self.jobs.storage.device;
        let mut report = VerifyReport::default();
        {
            // No switch to another manifest meanwhile.
            let _log = self.jobs.catalog.lock();
            let mut loaded = Manifest::load(device);
            if loaded.is_err() && self.jobs.log.writer.is_none() {
                // The writer beside may have switched.
                loaded = Manifest::load(device);
            }
            note(&mut report, loaded.map(|_| ()));
        }
        // A version holds its tables, so nothing vanishes during the check.
        let views: Vec<_> = self.jobs.trees().values().map(|tree| (tree.clone(), tree.view_arc())).collect();
        let mut packs: BTreeMap<PackId, Vec<LiveTable>> = BTreeMap::new();
        for (tree, view) in &views {
            if let Err(inconsistent) = check_version(&view.version) {
                report.problems.push(Error::corruption(device.dir(), 0, inconsistent.to_string()));
            }
            for (_, table) in view.version.tables() {
                let checked = self.verify_table(tree, table, &mut report);
                let live = LiveTable { id: table.id, extent: table.extent, checks: checked.is_ok() };
                packs.entry(table.extent.pack).or_default().push(live);
                note(&mut report, checked);
            }
        }
        for (pack, live) in packs {
            let checked = self.verify_pack(pack, &live, &mut report);
            note(&mut report, checked);
        }
        Ok(report)
    }

    /// Every entry of a table: order, range, counts, and that the filter lets its key through; and its range tombstones.
    fn verify_table(&self, tree: &Tree, meta: &Arc<TableMeta>, report: &mut VerifyReport) -> Result<()> {
        let file = self.jobs.cache.packs().file(meta.extent.pack)?;
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
        let mut cursor = TableCursor::new(self.jobs.cache.clone(), table.clone(), Fetch::Readahead);
        let mut last: Option<(Vec<u8>, crate::types::Stamp)> = None;
        let (mut entries, mut tombstones) = (0, 0);
        let (mut min_seq, mut max_seq) = (Seq::MAX, Seq::ZERO);
        let mut timestamps: Option<Timestamps> = None;
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
            if tree.record.ttl.is_some() && stamp.kind() == Kind::Put {
                timestamps = Some(Timestamps::with(timestamps, timestamped::second(cursor.value())));
            }
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
        // Tables had none once.
        let timestamps = recorded.timestamps.and(timestamps);
        let counted = TableRecord {
            entries,
            tombstones,
            range_tombstones,
            min_seq,
            max_seq,
            timestamps,
            ..recorded.clone()
        };
        if counted != recorded || !properties.tell(&recorded) {
            return damaged("entries do not add up to what is recorded of the table");
        }
        Ok(())
    }

    /// The directory at the end of a pack, and its storage.
    fn verify_pack(&self, id: PackId, live: &[LiveTable], report: &mut VerifyReport) -> Result<()> {
        let file = self.jobs.cache.packs().file(id)?;
        let length = self.jobs.catalog.lock().catalog.pack(id).map(|pack| pack.record.length);
        // A pack that has lost its last table since is none of ours.
        let Some(length) = length else { return Ok(()) };
        // Before the file is looked at: what is known to take up space only becomes less.
        let known = self.jobs.storage.reclaimer.stored_bytes(id).unwrap_or(length);
        verify_holes(&file, live, report);
        match stored(&file, std::slice::from_ref(&(0..length))) {
            Ok(data) => {
                let holes = length - bytes_of(&data);
                report.hole_bytes += holes;
                report.hole_unknown_packs += u64::from(holes == 0 && known < length);
            }
            Err(_) => report.hole_unknown_packs += 1,
        }
        let allocated = file.allocated()?;
        report.allocated_bytes += allocated;
        report.unexplained_bytes += allocated.saturating_sub(known + RECORD_BYTES_MAX);
        read_directory(&file, id, length)?;
        report.packs += 1;
        Ok(())
    }
}

/// No live table has a hole that it would notice: those that check have holes in place of zeros alone, if any.
fn verify_holes(file: &StoreFile, live: &[LiveTable], report: &mut VerifyReport) {
    for table in live {
        let extent = table.extent.offset..table.extent.end();
        // Where the file system does not tell, the caller says so.
        let Ok(data) = stored(file, std::slice::from_ref(&extent)) else { return };
        let missing = table.extent.length - bytes_of(&data);
        if missing > 0 && table.checks {
            report.zero_bytes += missing;
        } else if missing > 0 {
            let hole = data
                .first()
                .filter(|first| first.start == extent.start)
                .map_or(extent.start, |first| first.end);
            let what = format!("{missing} bytes of table {}, which is live, are a hole", table.id);
            report.problems.push(file.corruption(hole, what));
        }
    }
}

fn bytes_of(spans: &[Range<u64>]) -> u64 {
    spans.iter().map(|span| span.end - span.start).sum()
}

fn note(report: &mut VerifyReport, checked: Result<()>) {
    report.problems.extend(checked.err());
}
