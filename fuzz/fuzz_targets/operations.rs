//! A short life of a store, told by the input: options first, then operations. Every answer is held against an ordered map, and
//! what a power cut leaves against the history.
//!
//! The machine is simulated, so that an input replays to the byte.
#![no_main]

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use terrace::env::simulated::{Journal, SimConfig, SimEnv, Survival};
use terrace::tree::{
    Adaptive, Bandwidth, Buffer, Burst, Components, Cutter, Descriptors, Dlc, Drain, Files, Flushes, Gear,
    Geared, Governor, Group, Guarded, Layout, Leveled, Levels, LoadEstimator, Pacer, PackLayout, Picker,
    Prefixed, RatioWindow, Retainer, Silk, SoftSleep, TableSize, Tiered,
};
use terrace::{
    Compression, Db, Durability, Iter, Keyspace, KeyspaceOptions, Options, Prefix, Slice, Snapshot,
    TreeOptions, WriteBatch,
};

/// The keyspace that comes and goes. Ids are never reused: each that comes is another one.
const OTHER: &str = "other";

/// Snapshots that are held at a time.
const SNAPSHOTS_MAX: usize = 3;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes.to_vec().into());
    let config = SimConfig {
        seed: input.byte().into(),
        journal: input.pick(&[Journal::Ext4Like, Journal::None]),
        preemption_percent: input.pick(&[0, 20]),
        ..SimConfig::default()
    };
    SimEnv::run(config, |env| Life::begin(env, input).go_on());
});

/// What the store holds: values by id of the keyspace and key.
type State = BTreeMap<(u32, Vec<u8>), Value>;

type Value = Arc<[u8]>;

type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

const EVERYTHING: KeyRange = (Bound::Unbounded, Bound::Unbounded);

/// A store, and what is known of it.
struct Life {
    input: Input,
    env: Arc<SimEnv>,
    options: Options,
    /// None between two openings: a handle that lives keeps the store locked.
    db: Option<Db>,
    /// "default" and, if it exists, [`OTHER`].
    spaces: Vec<Keyspace>,
    /// The states of which a power cut must leave one; the last is what reads must show.
    history: VecDeque<State>,
    snapshots: Vec<(Snapshot, State)>,
    walk: Option<Walk>,
    /// Batches so far: each value tells its batch.
    batches: u32,
}

/// An iterator in the midst of its way, and what it must still show.
struct Walk {
    iter: Iter,
    rest: VecDeque<(Vec<u8>, Value)>,
}

/// A batch, and what the store is to hold after it.
struct Pending {
    batch: WriteBatch,
    state: State,
}

impl Life {
    fn begin(env: Arc<SimEnv>, mut input: Input) -> Self {
        let options = input.options();
        let history = [State::new()].into();
        let (db, spaces, snapshots, walk, batches) = (None, Vec::new(), Vec::new(), None, 0);
        let mut life = Self { input, env, options, db, spaces, history, snapshots, walk, batches };
        life.open();
        life
    }

    fn go_on(mut self) {
        while !self.input.is_empty() {
            self.step();
        }
        self.compare();
        self.leave().close().unwrap();
    }

    /// One operation. The shares are such that a life of a hundred has a few of those that take long.
    fn step(&mut self) {
        match self.input.byte() % 128 {
            0..28 => self.write(1),
            28..36 => self.write(3),
            36..44 => self.fill(),
            44..52 => self.delete_range(),
            52..62 => self.get(),
            62..66 => self.multi_get(),
            66..76 => self.start_walk(),
            76..84 => self.walk_on(),
            84..90 => self.take_snapshot(),
            90..96 => self.read_snapshot(),
            96..98 => self.drop_snapshot(),
            98..103 => self.db().flush().unwrap(),
            103..106 => self.db().compact().unwrap(),
            106..108 => self.compact_range(),
            108..110 => self.db().wait_idle().unwrap(),
            110..112 => self.sync(),
            112..116 => self.create_or_drop(),
            116..118 => self.compare(),
            118..120 => self.reopen(),
            120..125 => self.lose_power(),
            _ => self.lose_power_within(),
        }
    }

    // Writes.

    fn begin_batch(&mut self) -> Pending {
        self.batches += 1;
        Pending { batch: WriteBatch::new(), state: self.newest().clone() }
    }

    fn write(&mut self, operations: usize) {
        let mut pending = self.begin_batch();
        for _ in 0..operations {
            let (space, key) = (self.space(), self.input.key());
            match self.input.value(self.batches) {
                Some(value) => pending.put(&space, key, value),
                None => pending.delete(&space, key),
            }
        }
        self.commit(pending);
    }

    /// Sixteen neighbours at once, so that a few bytes of input fill a memtable.
    fn fill(&mut self) {
        let mut pending = self.begin_batch();
        let (space, first, value) = (self.space(), self.input.byte(), self.input.value(self.batches));
        for key in (0..16).map(|step| key_of(first.wrapping_add(step))) {
            match &value {
                Some(value) => pending.put(&space, key, value.clone()),
                None => pending.delete(&space, key),
            }
        }
        self.commit(pending);
    }

    fn delete_range(&mut self) {
        let mut pending = self.begin_batch();
        let (space, range) = (self.space(), self.input.range());
        pending.delete_range(&space, &range);
        self.commit(pending);
    }

    fn commit(&mut self, Pending { batch, state }: Pending) {
        let durability = self.input.pick(&[Durability::Buffered, Durability::Buffered, Durability::Synced]);
        let result = self.db().write_with(batch, durability);
        self.history.push_back(state);
        result.unwrap();
        if durability == Durability::Synced {
            self.all_durable();
        }
    }

    fn sync(&mut self) {
        self.db().sync().unwrap();
        self.all_durable();
    }

    fn create_or_drop(&mut self) {
        if self.spaces.len() == 1 {
            let options = self.input.keyspace_options();
            let space = self.db().keyspace_with(OTHER, options).unwrap();
            return self.spaces.push(space);
        }
        let space = self.spaces.remove(1);
        self.db().drop_keyspace(OTHER).unwrap();
        assert!(space.put("", "").is_err() && space.get("").is_err(), "a dropped keyspace answers");
        // The removal is durable, and so is what came before it.
        self.all_durable();
        let states = self.history.iter_mut().chain(self.snapshots.iter_mut().map(|(_, state)| state));
        states.for_each(|state| state.retain(|(id, _), _| *id != space.id()));
    }

    // Reads.

    fn get(&mut self) {
        let (space, key) = (self.space(), self.input.key());
        let found = space.get(&key).unwrap();
        assert_eq!(found.as_deref(), value(self.newest(), &space, &key), "{key:?}");
    }

    fn multi_get(&mut self) {
        let (space, keys) = (self.space(), [(); 4].map(|()| self.input.key()));
        let found = space.multi_get(&keys).unwrap();
        assert_eq!(found.len(), keys.len());
        for (key, found) in keys.iter().zip(&found) {
            assert_eq!(found.as_deref(), value(self.newest(), &space, key), "{key:?} of {keys:?}");
        }
    }

    fn start_walk(&mut self) {
        let (space, range) = (self.space(), self.input.range());
        let (iter, state) = match self.snapshots.first() {
            Some((snapshot, state)) if self.input.coin() => {
                (snapshot.keyspace(&space).range(range.clone()), state)
            }
            _ => (space.range(range.clone()), self.newest()),
        };
        let rest = entries(state, &space, &range);
        self.walk = Some(Walk { iter: iter.unwrap(), rest });
    }

    /// Some steps from one end.
    fn walk_on(&mut self) {
        let (back, lending, steps) = (self.input.coin(), self.input.coin(), self.input.byte() % 32 + 1);
        let Some(walk) = &mut self.walk else { return };
        (0..steps).for_each(|_| walk.step(back, lending));
    }

    fn take_snapshot(&mut self) {
        if self.snapshots.len() < SNAPSHOTS_MAX {
            self.snapshots.push((self.db().snapshot(), self.newest().clone()));
        }
    }

    fn read_snapshot(&mut self) {
        let (space, key, range) = (self.space(), self.input.key(), self.input.range());
        for (snapshot, state) in &self.snapshots {
            let snapshot = snapshot.keyspace(&space);
            assert_eq!(snapshot.get(&key).unwrap().as_deref(), value(state, &space, &key), "{key:?}");
            let found: VecDeque<_> = snapshot.range(range.clone()).unwrap().map(owned).collect();
            assert_eq!(found, entries(state, &space, &range));
        }
    }

    fn drop_snapshot(&mut self) {
        if !self.snapshots.is_empty() {
            self.snapshots.remove(usize::from(self.input.byte()) % self.snapshots.len());
        }
    }

    fn compact_range(&mut self) {
        let (space, range) = (self.space(), self.input.range());
        space.compact_range(range).unwrap();
    }

    /// Everything, and all that the store can find out about itself.
    fn compare(&mut self) {
        assert_eq!(self.dump(), *self.newest());
        for space in &self.spaces {
            let found: VecDeque<_> = space.iter().unwrap().rev().map(owned).collect();
            assert!(
                found.iter().rev().eq(&entries(self.newest(), space, &EVERYTHING)),
                "backwards: {found:?}"
            );
        }
        let report = self.db().verify().unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }

    fn dump(&self) -> State {
        let names: Vec<&str> = self.spaces.iter().map(|space| space.name()).collect();
        assert_eq!(self.db().keyspaces(), names);
        let all = |space: &Keyspace| {
            let id = space.id();
            space.iter().unwrap().map(owned).map(move |(key, value)| ((id, key), value))
        };
        self.spaces.iter().flat_map(all).collect()
    }

    // Ends and beginnings.

    fn open(&mut self) {
        let builder = Db::builder("/db").env(self.env.clone()).options(self.options.clone());
        let db = self.db.insert(builder.open().unwrap());
        let other = db.existing_keyspace(OTHER).unwrap();
        self.spaces = [db.keyspace("default").unwrap()].into_iter().chain(other).collect();
    }

    /// Lets go of all that belongs to this opening.
    fn leave(&mut self) -> Db {
        self.walk = None;
        self.snapshots.clear();
        self.spaces.clear();
        self.db.take().expect("open between operations")
    }

    fn reopen(&mut self) {
        let known = self.ids();
        self.leave().close().unwrap();
        self.all_durable();
        if self.input.coin() {
            self.env = self.env.crash(Survival::Nothing);
        }
        self.open();
        assert_eq!(self.ids(), known);
        self.compare();
    }

    fn lose_power(&mut self) {
        let survival = self.input.survival();
        if survival == Survival::Everything {
            self.all_durable();
        }
        self.crash(survival);
    }

    /// Loses power at one of the next calls that change the disk, while somebody waits for them. What a cut batch leaves is
    /// unknown, even if all survives that came before the cut.
    fn lose_power_within(&mut self) {
        self.env.cut_after((self.input.byte() % 32).into());
        // The cut may come late, or strike a thread whose failure concerns no caller: any result is right.
        let durable = match self.input.byte() % 4 {
            0 => self.db().flush().and_then(|()| self.db().sync()).is_ok(),
            1 => self.db().compact().and_then(|()| self.db().sync()).is_ok(),
            2 => self.db().sync().is_ok(),
            _ => {
                let mut pending = self.begin_batch();
                self.spaces.iter().for_each(|space| pending.delete_range(space, &EVERYTHING));
                self.history.push_back(pending.state);
                self.db().write_with(pending.batch, Durability::Synced).is_ok()
            }
        };
        if durable {
            self.all_durable();
        }
        let survival = self.input.survival();
        self.crash(survival);
    }

    /// What the old machine still does concerns nobody.
    fn crash(&mut self, survival: Survival) {
        self.env = self.env.crash(survival);
        let known = self.ids();
        drop(self.leave());
        self.open();
        assert_eq!(self.ids(), known);
        let found = self.dump();
        assert!(self.history.contains(&found), "found {found:?}, expected one of {:?}", self.history);
        self.history = [found].into();
    }

    // What is there.

    fn newest(&self) -> &State {
        self.history.back().expect("there always is one")
    }

    fn all_durable(&mut self) {
        self.history.drain(..self.history.len() - 1);
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    fn ids(&self) -> Vec<u32> {
        self.spaces.iter().map(Keyspace::id).collect()
    }

    fn space(&mut self) -> Keyspace {
        let choice = usize::from(self.input.coin());
        self.spaces.get(choice).unwrap_or(&self.spaces[0]).clone()
    }
}

impl Pending {
    fn put(&mut self, space: &Keyspace, key: Vec<u8>, value: Value) {
        self.batch.put_in(space, &key, &value);
        self.state.insert((space.id(), key), value);
    }

    fn delete(&mut self, space: &Keyspace, key: Vec<u8>) {
        self.batch.delete_in(space, &key);
        self.state.remove(&(space.id(), key));
    }

    fn delete_range(&mut self, space: &Keyspace, range: &KeyRange) {
        self.batch.delete_range_in(space, range.clone());
        self.state.retain(|(id, key), _| *id != space.id() || !range.contains(key));
    }
}

impl Walk {
    fn step(&mut self, back: bool, lending: bool) {
        let lent = |entry: Option<(&[u8], &[u8])>| entry.map(|(key, value)| (key.to_vec(), value.into()));
        let found: Option<(Vec<u8>, Value)> = match (back, lending) {
            (false, true) => lent(self.iter.advance().unwrap()),
            (true, true) => lent(self.iter.advance_back().unwrap()),
            (false, false) => self.iter.next().map(owned),
            (true, false) => self.iter.next_back().map(owned),
        };
        let expected = if back { self.rest.pop_back() } else { self.rest.pop_front() };
        assert_eq!(found, expected, "from the {}", if back { "back" } else { "front" });
    }
}

fn value<'a>(state: &'a State, space: &Keyspace, key: &[u8]) -> Option<&'a [u8]> {
    state.get(&(space.id(), key.to_vec())).map(|value| &value[..])
}

fn entries(state: &State, space: &Keyspace, range: &KeyRange) -> VecDeque<(Vec<u8>, Value)> {
    let inside = state.iter().filter(|((id, key), _)| *id == space.id() && range.contains(key));
    inside.map(|((_, key), value)| (key.clone(), value.clone())).collect()
}

/// An entry that an iterator has shown.
fn owned(entry: terrace::Result<(Slice, Slice)>) -> (Vec<u8>, Value) {
    let (key, value) = entry.unwrap();
    (key.to_vec(), (&value[..]).into())
}

/// Up to three of four letters, so that keys collide, are neighbours and prefixes of each other; the empty one, too.
fn key_of(byte: u8) -> Vec<u8> {
    let letter = |place: u8| [0, b'a', b'b', 255][usize::from(byte >> (2 * place) & 3)];
    (0..byte >> 6).map(letter).collect()
}

/// The rest of the bytes. When they are used up there are zeros.
struct Input(VecDeque<u8>);

impl Input {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        self.0.pop_front().unwrap_or(0)
    }

    fn coin(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()].clone()
    }

    fn key(&mut self) -> Vec<u8> {
        key_of(self.byte())
    }

    /// A value that tells its batch, or none: the key is to be deleted.
    fn value(&mut self, batch: u32) -> Option<Value> {
        let bytes = self.pick(&[Some(4), None, Some(60), Some(300), Some(700), Some(0)])?;
        let mut value = batch.to_le_bytes().to_vec();
        value.resize(bytes, b'v');
        Some(value.into())
    }

    fn survival(&mut self) -> Survival {
        match self.byte() {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            seed => Survival::Random(seed.into()),
        }
    }

    /// Any two bounds: the range may be inverted.
    fn range(&mut self) -> KeyRange {
        (self.bound(), self.bound())
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.byte() % 3 {
            0 => Bound::Included(self.key()),
            1 => Bound::Excluded(self.key()),
            _ => Bound::Unbounded,
        }
    }

    /// Options under which a hundred entries make every kind of job run. One compaction thread: starting threads is most of a run.
    fn options(&mut self) -> Options {
        // In the order in which the inputs of the corpus have them.
        let table_bytes = self.pick(&[1 << 10, 4 << 10]);
        let packs = self.pick(&[PackLayout::Many { bytes_max: 1 << 20 }, PackLayout::OneTable]);
        let bytes = self.pick(&[0, 4 << 10]);
        let window = |group| Picker::RatioWindow(RatioWindow { group, window_tables: 4, oldest_runs: 2 });
        let picker = self.pick(&[Picker::Cursor as fn(Group) -> Picker, Picker::LeastOverlap, window]);
        let picker = picker(Group { bytes, parts: 2, settle: self.coin() });
        let descriptors = self.pick(&[Descriptors::PerPack, Descriptors::PerTable]);
        let flushes = if self.coin() { Flushes::Whole } else { Flushes::Cut };
        let block_bytes = self.pick(&[256, 4 << 10]);
        let (is_leveled, l0_due) = (self.pick(&[true, false]), self.pick(&[1, 2]));
        let (pacer, keyspace) = (self.pacer(), self.keyspace_options());
        let (level1_bytes, ratio, l0_trigger) = (4 << 10, 2, l0_due);
        let tiered = self.pick(&[None, Some((1, 1)), Some((2, 2)), Some((2, 1)), Some((2, 1000))]);
        let (layout, picker) = match tiered {
            Some((runs, last_runs)) => {
                let tiered = Tiered { level1_bytes, ratio, runs, last_runs, l0_trigger };
                (Layout::Tiered(tiered), Picker::Levels(Levels { part_bytes: bytes }))
            }
            None if is_leveled => (Layout::Leveled(Leveled { level1_bytes, ratio, l0_trigger }), picker),
            None => (Layout::Adaptive(Adaptive { l0_bytes: level1_bytes, l0_runs: l0_due }), picker),
        };
        let size = TableSize { table_bytes, flushes };
        let cutter = self.pick(&[Cutter::Size as fn(TableSize) -> Cutter, Cutter::Prefix])(size);
        let components = Components {
            moves: self.pick(&[true, false]),
            access_bytes: self.pick(&[0, 1 << 10]),
            accesses_min: 1,
            job_bytes: self.pick(&[4 << 10, 1 << 20]),
        };
        let (layout, picker) = if self.pick(&[false, true]) {
            let limits = Prefixed { level1_bytes: 4 << 10, ratio: 2, l0_trigger: l0_due };
            (Layout::Prefixed(limits), Picker::Components(components))
        } else {
            (layout, picker)
        };
        let tree = TreeOptions {
            layout,
            picker,
            cutter,
            pacer,
            files: Files { packs, descriptors },
            block_bytes,
            ..TreeOptions::default()
        };
        let mut options = Options {
            memory_bytes: Some(1 << 20),
            memtable_bytes: 4 << 10,
            wal_bytes_max: 64 << 10,
            background_threads: Some(1),
            keyspace,
            tree,
            ..Options::default()
        };
        // Few bytes, so that most inputs of the corpus keep their layout.
        change_levels(self.byte(), &mut options, TableSize { table_bytes, flushes }, l0_due);
        options
    }

    fn pacer(&mut self) -> Pacer {
        let limits = Governor { l0_slow: 4, l0_stop: 6, ..Governor::default() };
        let bandwidth = Bandwidth { device: Some(4 << 20), floor_percent: 5 };
        let (estimator, interval) = (LoadEstimator::Operations, Duration::from_millis(1));
        let burst = self.pick(&[Burst::Never, Burst::Full { runs: 3 }, Burst::Part { runs: 2, parts: 1 }]);
        let silk = Silk { limits, bandwidth, estimator, interval, pause_percent: 1 };
        let dlc = Dlc {
            limits,
            bandwidth,
            estimator,
            interval,
            high_percent: 1,
            low_percent: 0,
            burst,
            ..Dlc::default()
        };
        self.pick(&[
            Pacer::Governor(limits),
            Pacer::SoftSleep(SoftSleep { l0_free: 2, nanos_per_run: 1 }),
            Pacer::Silk(silk),
            Pacer::Dlc(dlc),
            Pacer::Gear(Gear { limits, spring_percent: 50, spring: Duration::from_millis(1) }),
        ])
    }

    fn keyspace_options(&mut self) -> KeyspaceOptions {
        KeyspaceOptions {
            compression: self.pick(&[Compression::None, Compression::Lz4]),
            filter_bits_per_key: self.pick(&[10, 0]),
            prefix: self.pick(&[
                None,
                Some(Prefix::Fixed(1)),
                Some(Prefix::Delimited { delimiter: b'a', count: 1 }),
            ]),
            separate_from: None,
            ttl: None,
        }
    }
}

/// Sometimes changes to another layout, or to a buffer.
fn change_levels(byte: u8, options: &mut Options, tables: TableSize, l0_due: usize) {
    if let (1, Layout::Adaptive(adaptive)) = (byte % 8, options.tree.layout) {
        options.tree.layout = Layout::Auto(adaptive);
    }
    if byte % 4 == 3 {
        let guards = Guarded { l0_trigger: l0_due, top_bits: 8, bits_step: 1, ..Guarded::default() };
        options.tree.layout = Layout::Guarded(Guarded { guard_bytes: 4 << 10, ..guards });
        options.tree.picker = Picker::Guards;
        options.tree.cutter = Cutter::Guards(tables);
    }
    if byte % 16 == 6 {
        options.tree.layout = Layout::Geared(Geared { level1_bytes: 8 << 10, ratio: 2, l0_trigger: l0_due });
        options.tree.picker = Picker::Drain(Drain { unit_bytes: 4 << 10 });
    }
    if byte % 8 >= 5
        && let Layout::Adaptive(_) | Layout::Auto(_) | Layout::Leveled(_) | Layout::Geared(_) =
            options.tree.layout
    {
        let period = Duration::from_millis(1 + u64::from(byte / 16));
        options.tree.retainer = Retainer::Buffer(Buffer { cached_percent: 10, period, share_percent: 100 });
    }
}
