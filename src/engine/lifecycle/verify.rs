//! Verify: reads the whole store and checks it against itself.
//!
//! It needs the catalog, the keyspaces and the files: all that is in [`JobContext`]. It changes nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::verify_values::ValueCheck;
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
use crate::types::{
    Extent, KeySum, Kind, PackId, RangeTombstone, Seq, Stamp, TableId, Timestamps, ValueShare,
};

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
            let mut pointers = ValueCheck::new(view.version.values());
            for (_, table) in view.version.tables() {
                let checked = self.verify_table(tree, table, &mut pointers, &mut report);
                pointers.is_whole &= checked.is_ok();
                let live = LiveTable { id: table.id, extent: table.extent, checks: checked.is_ok() };
                packs.entry(table.extent.pack).or_default().push(live);
                note(&mut report, checked);
            }
            report.values += pointers.values;
            for (table, checked) in pointers.finish(self.jobs) {
                let checks = checked.is_ok();
                for extent in table.live_extents() {
                    let live = LiveTable { id: table.record.id, extent, checks };
                    packs.entry(extent.pack).or_default().push(live);
                }
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
    fn verify_table(
        &self,
        tree: &Tree,
        meta: &Arc<TableMeta>,
        pointers: &mut ValueCheck<'_>,
        report: &mut VerifyReport,
    ) -> Result<()> {
        let file = self.jobs.cache.packs().file(meta.extent.pack)?;
        let (table, blocks) = open_whole(&file, meta)?;
        let damaged =
            |what: &str| Err(file.corruption(meta.extent.offset, format!("table {}: {what}", meta.id)));
        let properties = table.properties(&file)?;
        if properties.keyspace != tree.id() {
            return damaged("belongs to another keyspace");
        }
        report.tables += 1;
        report.blocks += blocks as u64;
        report.bytes += meta.extent.length;
        let mut cursor = TableCursor::new(self.jobs.cache.clone(), table.clone(), Fetch::Readahead);
        let mut last: Option<(Vec<u8>, Stamp)> = None;
        let recorded = meta.record();
        let mut sums = Sums::new(&recorded);
        cursor.seek_first()?;
        while cursor.valid() {
            let (key, stamp) = (cursor.key(), cursor.stamp());
            if last.as_ref().is_some_and(|(last, newer)| (key, *newer) <= (last, stamp)) {
                return damaged("entries are out of order");
            }
            if !meta.range.contains(key) {
                return damaged("an entry lies outside the table's range");
            }
            let Some(open) = table.open_for(key) else { return damaged("an entry lies in no partition") };
            if !open.may_contain(filter::hash(key)) {
                return damaged("the filter denies a key that is there");
            }
            let prefix = tree.record.prefix.and_then(|rule| Some(PrefixProbe::new(rule, rule.of(key)?)));
            if prefix.is_some_and(|prefix| !open.may_contain_prefix(&prefix)) {
                return damaged("the filter denies the prefix of a key that is there");
            }
            let value = tree.record.ttl.map(|_| cursor.value());
            sums.add(key, stamp, value);
            if stamp.is_separated() {
                let pointer = pointers.check(self.jobs, cursor.value())?;
                let footprint = pointer.footprint();
                sums.values.add(pointer.table, (footprint.end - footprint.start).into());
            }
            last = Some((key.to_vec(), stamp));
            cursor.next()?;
        }
        for RangeTombstone { range, seq } in table.range_tombstones() {
            if !meta.range.covers(range) {
                return damaged("a range tombstone reaches beyond the table's range");
            }
            sums.note(*seq);
        }
        let range_tombstones = table.range_tombstones().len() as u64;
        report.entries += sums.entries;
        report.range_tombstones += range_tombstones;
        let counted = TableRecord { range_tombstones, ..sums.of(&recorded) };
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

/// What the entries of a table add up to.
struct Sums {
    entries: u64,
    tombstones: u64,
    min_seq: Seq,
    max_seq: Seq,
    timestamps: Option<Timestamps>,
    keys: Option<KeySum>,
    values: ValueShare,
}

impl Sums {
    /// Those of no entries, of what is recorded of the table.
    fn new(recorded: &TableRecord) -> Self {
        let keys = recorded.keys.map(|keys| KeySum::new(keys.seed));
        Self {
            entries: 0,
            tombstones: 0,
            min_seq: Seq::MAX,
            max_seq: Seq::ZERO,
            timestamps: None,
            keys,
            values: ValueShare::default(),
        }
    }

    /// Adds an entry; `value` is that of one that may expire.
    fn add(&mut self, key: &[u8], stamp: Stamp, value: Option<&[u8]>) {
        self.entries += 1;
        self.tombstones += u64::from(stamp.kind() == Kind::Delete);
        self.note(stamp.seq());
        if let Some(value) = value.filter(|_| stamp.kind().is_put()) {
            self.timestamps = Some(Timestamps::with(self.timestamps, timestamped::second(value)));
        }
        if let Some(keys) = &mut self.keys {
            keys.add(key);
        }
    }

    fn note(&mut self, seq: Seq) {
        (self.min_seq, self.max_seq) = (self.min_seq.min(seq), self.max_seq.max(seq));
    }

    /// What `recorded` is if it tells the same.
    fn of(&self, recorded: &TableRecord) -> TableRecord {
        let &Self { entries, tombstones, min_seq, max_seq, timestamps, keys, values } = self;
        // Tables had none once.
        let timestamps = recorded.timestamps.and(timestamps);
        TableRecord { entries, tombstones, min_seq, max_seq, timestamps, keys, values, ..recorded.clone() }
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

/// Opens a table with all of its partitions, each read from `file` whatever the cache has. Also returns the number of data blocks.
fn open_whole(file: &StoreFile, meta: &TableMeta) -> Result<(Arc<TableReader>, usize)> {
    let table = TableReader::open(file, meta.id, meta.extent, meta.max_seq)?;
    let mut blocks = table.blocks();
    for at in 0..table.partitions() {
        let partition = table.open_partition(file, at)?;
        blocks += partition.blocks();
        table.keep_partition(at, Arc::new(partition));
    }
    Ok((Arc::new(table), blocks))
}

fn bytes_of(spans: &[Range<u64>]) -> u64 {
    spans.iter().map(|span| span.end - span.start).sum()
}

fn note(report: &mut VerifyReport, checked: Result<()>) {
    report.problems.extend(checked.err());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::DEFAULT_KEYSPACE;
    use crate::catalog::Lease;
    use crate::engine::write::ingest::Ingestion;
    use crate::engine::{Opening, open};
    use crate::env::simulated::{SimConfig, SimEnv};
    use crate::error::ErrorKind;
    use crate::options::Options;

    /// By its sum, older tables go unread.
    #[test]
    fn a_table_that_has_other_keys_than_are_recorded_is_a_problem() {
        SimEnv::run(SimConfig::default(), |env| {
            let options = Options::default();
            let engine = open(&Opening::of_test(env, options, false)).unwrap();
            let tree = engine.keyspaces.tree(DEFAULT_KEYSPACE).unwrap();
            let mut ingest = Ingestion::new(&engine.write, &tree).unwrap();
            ["a", "b", "c"].iter().for_each(|key| ingest.push(key.as_bytes(), b"value").unwrap());
            ingest.finish().unwrap();
            assert!(engine.verify().unwrap().problems.is_empty());
            let version = tree.view().version.clone();
            let (_, table) = version.tables().next().unwrap();
            let keys = table.keys.map(|keys| KeySum { sum: keys.sum + 1, ..keys });
            let other = TableRecord { keys, ..table.record() };
            let verification = Verification { jobs: &engine.background.jobs };
            let verify = |record: &TableRecord| {
                let meta = Arc::new(TableMeta::new(record, Lease::none()));
                let mut pointers = ValueCheck::new(version.values());
                verification.verify_table(&tree, &meta, &mut pointers, &mut VerifyReport::default())
            };
            verify(&table.record()).unwrap();
            assert_eq!(verify(&other).unwrap_err().kind(), ErrorKind::Corruption);
            engine.close().unwrap();
        });
    }
}
