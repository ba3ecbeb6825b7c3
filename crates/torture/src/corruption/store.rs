//! The store that is damaged: its history, and the meaning of the bytes in its files.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrace::env::Env;
use terrace::env::simulated::{SimConfig, SimEnv, Survival};
use terrace::format::block::Block;
use terrace::format::checksum::Place;
use terrace::format::edit::Edit;
use terrace::format::log::FrameReader;
use terrace::format::manifest::EDIT_FRAME;
use terrace::format::pack::{PACK_TRAILER_BYTES, PackDirectory};
use terrace::format::table::{BlockHandle, DataHandle, FOOTER_BYTES, Footer, open_block};
use terrace::types::{Extent, TableId};
use terrace::{Compression, Db, Durability, KeyspaceOptions, Options, WriteBatch};

use crate::options::small_levels;
use crate::seed::Rng;

pub const DIR: &str = "/db";

/// Key whose value is the number of the latest record, written with it in one batch.
pub const MARKER: &str = "~record";

/// Kind of the log's frames that hold a batch.
const BATCH_FRAME: u8 = 2;
/// What sets a manifest's log id apart from that of a segment.
const MANIFEST_LOG: u64 = 1 << 63;

/// Tables start at multiples of this, so that less lies behind each.
const PAGE_BYTES: usize = 4 << 10;

/// Number of different keys.
pub const KEYS: usize = 400;

pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// One batch: keyspace, key, value or removal.
type Record = Vec<(usize, Vec<u8>, Option<Vec<u8>>)>;

pub const KEYSPACES: [&str; 2] = ["default", "packed"];

/// What was written, batch by batch.
pub struct History {
    records: Vec<Record>,
}

impl History {
    fn new(seed: u64, len: usize) -> Self {
        let mut rng = Rng::new(seed);
        let records = (1..=len).map(|n| record(&mut rng, n)).collect();
        Self { records }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The keyspaces' contents after the first `n` records.
    pub fn state(&self, n: usize) -> [Contents; 2] {
        let mut state = [Contents::new(), Contents::new()];
        for (keyspace, key, value) in self.records[..n].iter().flatten() {
            match value {
                Some(value) => state[*keyspace].insert(key.clone(), value.clone()),
                None => state[*keyspace].remove(key),
            };
        }
        state
    }
}

fn record(rng: &mut Rng, n: usize) -> Record {
    let mut record = vec![(0, MARKER.into(), Some(n.to_string().into_bytes()))];
    for _ in 0..1 + rng.below(3) {
        let (keyspace, key) = (rng.below(2), format!("key{:03}", rng.below(KEYS)));
        let value = (rng.below(5) > 0).then(|| {
            let mut value = format!("record {n} ").into_bytes();
            // Half noise, half padding, so that LZ4 finds something to do.
            value.extend((0..rng.below(30)).map(|_| rng.draw() as u8));
            value.resize(value.len() * 2, b'.');
            value
        });
        record.push((keyspace, key.into_bytes(), value));
    }
    record
}

/// A store on a simulated disk as a killed process left it, and what was written.
pub struct Image {
    pub env: Arc<SimEnv>,
    pub history: Arc<History>,
    /// All records up to this one are in tables.
    pub flushed: usize,
    pub complete: Arc<[Contents; 2]>,
}

/// Options of the last opening, in which nothing is flushed.
pub fn unflushed() -> Options {
    Options { memtable_bytes: 256 << 10, ..small_levels() }
}

impl Image {
    /// Several packs in several levels, a manifest with edits, and a log of several segments, the latest part of which
    /// was never synced.
    pub fn build(seed: u64) -> Self {
        let history = Arc::new(History::new(seed, 1800));
        let flushed = 1500;
        let env = SimEnv::new(SimConfig { seed, preemption_percent: 0, ..SimConfig::default() });
        let records = history.clone();
        let image = env.simulate(move |env| {
            let open = |options| Db::builder(DIR).env(env.clone()).options(options).open().unwrap();
            let db = open(small_levels());
            let lz4 = KeyspaceOptions { compression: Compression::Lz4, ..KeyspaceOptions::default() };
            db.keyspace_with(KEYSPACES[1], lz4).unwrap();
            write(&db, &records.records[..900], |_| Durability::Buffered);
            db.flush().unwrap();
            db.wait_idle().unwrap();
            db.close().unwrap();
            let db = open(unflushed());
            for part in records.records[900..flushed].chunks(100) {
                write(&db, part, |_| Durability::Buffered);
                db.flush().unwrap();
                db.wait_idle().unwrap();
            }
            let sync = |n| if n % 40 == 0 && n < 250 { Durability::Synced } else { Durability::Buffered };
            write(&db, &records.records[flushed..], sync);
            let image = env.crash(Survival::Everything);
            db.close().unwrap();
            image
        });
        remove_preallocated(&image);
        let complete = Arc::new(history.state(history.len()));
        let image = Self { env: image, history, flushed, complete };
        // The zeros ahead of the log's end mean nothing, and would hide the end from the tests.
        for segment in image.files("wal") {
            let bytes = image.read(&segment);
            let used = FrameReader::new(number_of(&segment), &bytes).last().unwrap();
            let end = used.offset as usize + terrace::format::log::FRAME_HEADER_BYTES + used.payload.len();
            image.env.truncate(&segment, end as u64).unwrap();
        }
        image.check_variety();
        image
    }

    /// Checks that the store has everything that the tests damage; otherwise they would prove little.
    fn check_variety(&self) {
        let db = Db::builder(DIR).env(self.env.clone()).options(unflushed()).read_only().open().unwrap();
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
        let stats = db.stats();
        assert!(report.packs >= 4 && report.tables >= 8, "{report:?}");
        assert!(stats.keyspaces.iter().all(|keyspace| keyspace.shape.levels.len() >= 2), "{stats:?}");
        assert!(self.files("wal").len() >= 3, "{:?}", self.env.files());
        assert!(self.live_tables().1 >= 3, "edits in the manifest");
    }

    /// Paths of the files whose name contains `part`.
    pub fn files(&self, part: &str) -> Vec<PathBuf> {
        let files = self.env.files().into_iter().map(|(path, _)| path);
        files.filter(|path| path.to_string_lossy().contains(part)).collect()
    }

    pub fn read(&self, path: &Path) -> Vec<u8> {
        self.env.read_file(path).unwrap()
    }

    /// The same store on another machine.
    #[must_use]
    pub fn copy(&self) -> Self {
        let (history, complete) = (Arc::clone(&self.history), Arc::clone(&self.complete));
        Self { env: self.env.crash(Survival::Everything), history, flushed: self.flushed, complete }
    }

    /// Puts `new` in place of the contents of a file, or removes it.
    pub fn put(&self, path: &Path, new: Option<&[u8]>) {
        let Some(new) = new else {
            self.env.remove(path).unwrap();
            return;
        };
        self.env.truncate(path, new.len() as u64).unwrap();
        self.env.overwrite(path, 0, new).unwrap();
    }

    /// Every frame of a log segment or manifest.
    pub fn frames(&self, path: &Path) -> Vec<Frame> {
        let id = number_of(path);
        let id = if path.extension().is_none() { MANIFEST_LOG | id } else { id };
        let bytes = self.read(path);
        let frames: Vec<Frame> = FrameReader::new(id, &bytes)
            .map(|frame| {
                let start = frame.offset as usize;
                Frame {
                    range: start..start + terrace::format::log::FRAME_HEADER_BYTES + frame.payload.len(),
                    synced: frame.synced,
                    batch: path.extension().is_some() && frame.kind == BATCH_FRAME,
                }
            })
            .collect();
        assert_eq!(frames.last().unwrap().range.end, bytes.len(), "frames fill {}", path.display());
        frames
    }

    /// The tables that the manifest names, and the number of its edits.
    fn live_tables(&self) -> (BTreeMap<TableId, Extent>, usize) {
        let mut live = BTreeMap::new();
        let path = &self.files("MANIFEST")[0];
        let bytes = self.read(path);
        let frames = FrameReader::new(MANIFEST_LOG | number_of(path), &bytes);
        let edits: Vec<_> = frames.filter(|frame| frame.kind == EDIT_FRAME).collect();
        for frame in &edits {
            for tree in Edit::decode(frame.payload).unwrap().trees {
                for (_, id) in &tree.drop {
                    live.remove(id);
                }
                live.extend(tree.add.into_iter().map(|(_, table)| (table.id, table.extent)));
            }
        }
        (live, edits.len())
    }

    /// Which bytes of a pack something depends on, and where its live tables and their blocks lie. All other bytes
    /// belong to dead tables, or are zeros between the parts.
    pub fn map_pack(&self, path: &Path) -> PackMap {
        let bytes = self.read(path);
        let trailer = &bytes[bytes.len() - PACK_TRAILER_BYTES..];
        let directory = bytes.len() - PackDirectory::decode_trailer(trailer).unwrap()..bytes.len();
        let mut map = PackMap { covered: vec![false; bytes.len()], tables: Vec::new(), blocks: Vec::new() };
        map.cover(&directory);
        let (live, _) = self.live_tables();
        let entries = PackDirectory::decode(&bytes[directory.clone()]).unwrap().tables;
        let mut padding: BTreeSet<usize> = (0..directory.start).collect();
        let padding_max = entries.len() * PAGE_BYTES;
        for entry in entries {
            let start = entry.offset as usize;
            let range = start..start + entry.length as usize;
            if !live.contains_key(&entry.table) {
                padding.retain(|at| !range.contains(at));
                continue;
            }
            let table = &bytes[range.clone()];
            let footer_at = table.len() - FOOTER_BYTES;
            let footer = Footer::decode(&table[footer_at..]).unwrap();
            let span = |handle: BlockHandle| handle.offset as usize..handle.end() as usize;
            let data: Vec<_> = footer.index.map_or(Vec::new(), |handle| {
                let place = Place { id: footer.table.0, offset: handle.offset };
                let index = open_block(place, &table[span(handle)]).unwrap().into_owned();
                let index = Block::decode(index).unwrap();
                (0..index.len()).map(|at| span(DataHandle::decode(index.value(at)).unwrap().block)).collect()
            });
            let parts = [footer.index, footer.filter, footer.tombstones, Some(footer.properties)];
            let parts = parts.into_iter().flatten().map(span).chain(std::iter::once(footer_at..table.len()));
            for part in parts.chain(data.iter().cloned()) {
                let part = start + part.start..start + part.end;
                map.cover(&part);
                padding.retain(|at| !part.contains(at));
            }
            map.blocks.extend(data.into_iter().map(|block| start + block.start..start + block.end));
            map.tables.push(range);
        }
        assert!(padding.iter().all(|&at| bytes[at] == 0), "what nothing depends on is zero");
        assert!(
            padding.len() < padding_max,
            "{} bytes of {} depend on nothing",
            padding.len(),
            path.display()
        );
        map
    }
}

fn write(db: &Db, records: &[Record], durability: impl Fn(usize) -> Durability) {
    let keyspaces = KEYSPACES.map(|name| db.existing_keyspace(name).unwrap().unwrap());
    for (n, record) in records.iter().enumerate() {
        let mut batch = WriteBatch::new();
        for (keyspace, key, value) in record {
            match value {
                Some(value) => batch.put_in(&keyspaces[*keyspace], key, value),
                None => batch.delete_in(&keyspaces[*keyspace], key),
            };
        }
        if n % 40 == 0 {
            // Deletes nothing, but is there.
            batch.delete_range_in(&keyspaces[0], format!("range{n:04}")..format!("range{n:04}~"));
        }
        db.write_with(batch, durability(n)).unwrap();
    }
}

/// A frame of a log segment or manifest.
pub struct Frame {
    pub range: Range<usize>,
    pub synced: u64,
    /// Whether it is a record of the history.
    pub batch: bool,
}

/// What lies where in a pack.
pub struct PackMap {
    /// For each byte, whether anything depends on it.
    pub covered: Vec<bool>,
    pub tables: Vec<Range<usize>>,
    /// Data blocks of live tables.
    pub blocks: Vec<Range<usize>>,
}

impl PackMap {
    fn cover(&mut self, part: &Range<usize>) {
        self.covered[part.clone()].fill(true);
    }
}

/// Removes the preallocated files: nothing depends on them.
fn remove_preallocated(env: &SimEnv) {
    for (path, _) in env.files() {
        let bytes = env.read_file(&path).unwrap();
        let holds_anything = match path.extension().and_then(|ending| ending.to_str()) {
            Some("pack") => own_directory(number_of(&path), &bytes).is_some(),
            Some("wal") => FrameReader::new(number_of(&path), &bytes).next().is_some(),
            _ => true,
        };
        if !holds_anything {
            env.remove(&path).unwrap();
        }
    }
    env.sync_dir(Path::new(DIR)).unwrap();
}

fn own_directory(pack: u64, bytes: &[u8]) -> Option<PackDirectory> {
    let trailer = bytes.get(bytes.len().checked_sub(PACK_TRAILER_BYTES)?..)?;
    let length = PackDirectory::decode_trailer(trailer).ok()?;
    let directory = PackDirectory::decode(bytes.get(bytes.len().checked_sub(length)?..)?).ok()?;
    (directory.pack.0 == pack).then_some(directory)
}

/// The number in the name of a file.
pub fn number_of(path: &Path) -> u64 {
    let name = path.file_name().unwrap().to_string_lossy();
    name.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
}
