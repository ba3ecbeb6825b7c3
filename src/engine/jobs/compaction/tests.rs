//! Jobs as algebra: plans of every picker run over random trees with data, in memory, by the code that compactions
//! use.
//!
//! No answer changes (I4), the tree stays valid (I1 to I3), and a plan that was tampered with is refused or does no
//! harm.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

mod components;
mod guards;

use super::*;
use crate::catalog::testing::Dice;
use crate::catalog::{Lease, check_edit, check_merged, check_version};
use crate::engine::jobs::compaction_iterator::{KeptRange, Sink};
use crate::engine::jobs::expiry::RecordFilter;
use crate::engine::jobs::output::take_before;
use crate::format::edit::TableRecord;
use crate::merge::{Cursor, newest_over};
use crate::policy::{
    Claims, Cutter, Evenness, LoadState, Picker, PickerConfig, PlanInput, PolicyConfig, RangePick,
    SizeConfig, SpaceView, TreeShape, TreeView, WindowConfig, next_plan,
};
use crate::types::{
    DeviceId, Extent, Holders, Holds, KeyspaceId, Kind, PackId, Prefix, RangeTombstone, Stamp, UpperBound,
    ValueShare,
};

mod stacked;

const KEYS: u64 = 48;

/// The deepest level that a random tree has at first.
const DEEPEST: u8 = 3;

fn key(n: u64) -> Vec<u8> {
    format!("{n:02}").into_bytes()
}

/// Key, stamp, value: in this order, the newest version of a key first.
type Entry = (Vec<u8>, Reverse<Stamp>, Vec<u8>);

/// What a table holds.
#[derive(Default)]
struct Contents {
    entries: Vec<Entry>,
    tombstones: Vec<RangeTombstone>,
    holds: Holds,
}

impl Contents {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.tombstones.is_empty()
    }

    fn bytes(&self) -> u64 {
        10 * (self.entries.len() + self.tombstones.len()) as u64
    }

    fn record(&self, id: u64, epoch: Epoch) -> TableRecord {
        let seqs = || {
            let entries = self.entries.iter().map(|(_, stamp, _)| stamp.0.seq());
            entries.chain(self.tombstones.iter().map(|tombstone| tombstone.seq))
        };
        let ends = self.entries.first().zip(self.entries.last());
        let keys = ends.map(|(first, last)| KeyRange::new(&first.0[..], &last.0[..]));
        let deleted = self.tombstones.iter().map(|tombstone| tombstone.range.clone());
        let tombstones = self.entries.iter().filter(|(_, stamp, _)| stamp.0.kind() == Kind::Delete);
        TableRecord {
            id: TableId(id),
            extent: Extent { device: DeviceId(0), pack: PackId(id), offset: 0, length: self.bytes() },
            range: deleted.chain(keys).reduce(|hull, range| hull.hull(&range)).unwrap(),
            min_seq: seqs().min().unwrap(),
            max_seq: seqs().max().unwrap(),
            epoch,
            entries: self.entries.len() as u64,
            tombstones: tombstones.count() as u64,
            range_tombstones: self.tombstones.len() as u64,
            timestamps: None,
            holds: self.holds.clone(),
            keys: None,
            values: ValueShare::default(),
        }
    }
}

type Written = Vec<(TableRecord, Rc<Contents>)>;

/// Tables in memory.
struct Tables {
    epoch: Epoch,
    /// Of the next table.
    id: u64,
    current: Contents,
    rest: VecDeque<KeptRange>,
    finished: Written,
}

impl Tables {
    fn new(epoch: Epoch, id: u64) -> Self {
        Self { epoch, id, current: Contents::default(), rest: VecDeque::new(), finished: Vec::new() }
    }
}

impl Sink for Tables {
    fn set_range_tombstones(&mut self, tombstones: Vec<KeptRange>) {
        self.rest = tombstones.into();
    }

    fn has_range_tombstones(&self) -> bool {
        !self.rest.is_empty()
    }

    fn reaches(&self, bound: &UpperBound) -> bool {
        !self.current.is_empty()
            || self.rest.front().is_some_and(|next| bound.admits(&next.tombstone.range.start))
    }

    fn add(&mut self, key: &[u8], stamp: Stamp, value: &[u8], held: Option<Holders>) -> Result<()> {
        if let Some(holders) = held {
            self.current.holds.note(holders, 1, 10);
        }
        self.current.entries.push((key.to_vec(), Reverse(stamp), value.to_vec()));
        Ok(())
    }

    fn table_bytes(&self) -> u64 {
        self.current.bytes()
    }

    fn cut(&mut self, bound: &UpperBound) -> Result<()> {
        for KeptRange { tombstone, held } in take_before(&mut self.rest, bound) {
            if let Some(holders) = held {
                self.current.holds.note(holders, 1, 10);
            }
            self.current.tombstones.push(tombstone);
        }
        let contents = std::mem::take(&mut self.current);
        if !contents.is_empty() {
            self.finished.push((contents.record(self.id, self.epoch), Rc::new(contents)));
            self.id += 1;
        }
        Ok(())
    }
}

/// A walk along entries.
struct Walk {
    entries: Vec<Entry>,
    at: usize,
}

impl Walk {
    fn at(&self) -> &Entry {
        &self.entries[self.at]
    }

    fn lower_bound(&self, key: &[u8], stamp: Stamp) -> usize {
        self.entries.partition_point(|(k, s, _)| (&k[..], *s) < (key, Reverse(stamp)))
    }

    fn to(&mut self, at: Option<usize>) -> Result<()> {
        self.at = at.unwrap_or(self.entries.len());
        Ok(())
    }
}

impl Cursor for Walk {
    type Error = Error;

    fn valid(&self) -> bool {
        self.at < self.entries.len()
    }

    fn key(&self) -> &[u8] {
        &self.at().0
    }

    fn stamp(&self) -> Stamp {
        self.at().1.0
    }

    fn value(&self) -> &[u8] {
        &self.at().2
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        self.to(Some(self.lower_bound(key, stamp)))
    }

    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        self.to(self.lower_bound(key, stamp).checked_sub(1))
    }

    fn seek_first(&mut self) -> Result<()> {
        self.to(Some(0))
    }

    fn seek_last(&mut self) -> Result<()> {
        self.to(self.entries.len().checked_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        self.to(Some(self.at + 1))
    }

    fn prev(&mut self) -> Result<()> {
        self.to(self.at.checked_sub(1))
    }
}

/// An operation of the history.
enum Op {
    Put(Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(KeyRange),
}

/// A random range of the keys, of any kind of end.
fn random_range(dice: &mut Dice) -> KeyRange {
    let start = dice.below(KEYS);
    match dice.below(8) {
        0 => KeyRange::half_open(key(start), UpperBound::Unbounded),
        1 => KeyRange::new(key(start), key(start)),
        _ => {
            let end = key(start + 1 + dice.below(9));
            KeyRange::half_open(key(start), UpperBound::Excluded(end.into()))
        }
    }
}

/// Some operations, most of them close to others.
fn random_ops(dice: &mut Dice) -> Vec<Op> {
    let mut ops = Vec::new();
    for _ in 0..1 + dice.below(5) {
        let start = dice.below(KEYS);
        for n in start..(start + 1 + dice.below(7)).min(KEYS) {
            for _ in 0..dice.below(3) {
                ops.push(if dice.below(4) > 0 { Op::Put(key(n)) } else { Op::Delete(key(n)) });
            }
        }
    }
    for _ in 0..dice.below(3) {
        ops.push(Op::DeleteRange(random_range(dice)));
    }
    for last in (1..ops.len()).rev() {
        ops.swap(last, dice.below(last as u64 + 1) as usize);
    }
    ops
}

/// The value of each key.
type Answers = Vec<Option<Vec<u8>>>;

/// Where cutters cut between prefixes: between tens.
const RULE: Prefix = Prefix::Fixed(1);

/// A tree with data.
#[derive(Clone)]
struct Lab {
    version: Version,
    contents: HashMap<TableId, Rc<Contents>>,
    /// Sequence numbers at which somebody reads, ascending.
    snapshots: Vec<Seq>,
    /// What each of them, and a reader of the newest state, finds of each key.
    answers: Rc<Vec<(Seq, Answers)>>,
    /// Of the next table.
    next_id: u64,
    /// The next new one.
    epoch: Cell<u64>,
}

/// How a random tree came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Levels {
    /// One run in each level below level 0.
    Merged,
    /// Up to three flushes on top of each other in each level.
    Stacked,
}

impl Lab {
    /// Older history lies deeper, as I2 has it; runs are cut anywhere.
    fn random(levels: Levels, dice: &mut Dice) -> Self {
        let mut lab = Self {
            version: Version::empty(),
            contents: HashMap::new(),
            snapshots: Vec::new(),
            answers: Rc::default(),
            next_id: 1,
            epoch: Cell::new(1),
        };
        let mut history = Vec::new();
        let deep = (1..=DEEPEST).rev().flat_map(|level| match levels {
            Levels::Merged => vec![level],
            Levels::Stacked => vec![level; 1 + dice.below(3) as usize],
        });
        let deep: Vec<u8> = deep.collect();
        for level in deep.into_iter().chain((0..dice.below(5)).map(|_| 0)) {
            // Of disjoint tables the epochs mean nothing.
            let epoch = if levels == Levels::Merged && level > 0 { Epoch(0) } else { lab.next_epoch() };
            let ops = random_ops(dice);
            let tables = written(&ops, history.len() as u64 + 1, Tables::new(epoch, lab.next_id), dice);
            history.extend(ops);
            let add = tables.iter().map(|(record, _)| (level, record.clone())).collect();
            lab.apply(&TreeEdit { add, ..TreeEdit::default() }, tables).unwrap();
        }
        for seq in 0..=history.len() as u64 {
            if dice.below(24) == 0 {
                lab.snapshots.push(Seq(seq));
            }
        }
        let readers = lab.snapshots.iter().copied().chain([Seq::MAX]);
        let answers = |upto| (0..KEYS).map(|n| answer_of(&history, &key(n), upto)).collect();
        lab.answers = Rc::new(readers.map(|upto| (upto, answers(upto))).collect());
        lab
    }

    /// What a reader at `upto` finds of `key`, slot by slot.
    fn answer(&self, key: &[u8], upto: Seq) -> Option<&[u8]> {
        for (_, run) in self.version.runs() {
            let Some(table) = run.find(key) else { continue };
            let Contents { entries, tombstones, .. } = &*self.contents[&table.id];
            let from = entries.partition_point(|(k, s, _)| (&k[..], *s) < (key, Reverse(Stamp::upto(upto))));
            let entry = entries.get(from).filter(|entry| entry.0 == key);
            let over = newest_over(tombstones, key, upto);
            match entry {
                Some((_, stamp, value)) if over.is_none_or(|over| over < stamp.0.seq()) => {
                    return (stamp.0.kind() == Kind::Put).then_some(&value[..]);
                }
                None if over.is_none() => {}
                _ => return None,
            }
        }
        None
    }

    /// Fails with a question that is not answered as it must be.
    fn check_answers(&self) -> std::result::Result<(), String> {
        for (upto, answers) in &*self.answers {
            for (n, expected) in (0..KEYS).zip(answers) {
                let found = self.answer(&key(n), *upto);
                if found != expected.as_deref() {
                    let version = &self.version;
                    return Err(format!(
                        "{n:02} at {upto}: {found:?} instead of {expected:?} in {version:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn next_epoch(&self) -> Epoch {
        Epoch(self.epoch.replace(self.epoch.get() + 1))
    }

    /// Applies the edit of a plan, with all checks of an install.
    fn install(&mut self, stacks: bool, edit: &TreeEdit, tables: Written) -> std::result::Result<(), String> {
        let merged = if stacks { Ok(()) } else { check_merged(&self.version, edit) };
        let checked = merged.and_then(|()| check_edit(&self.version, edit));
        checked.map_err(|error| error.to_string())?;
        self.apply(edit, tables)
    }

    fn apply(&mut self, edit: &TreeEdit, tables: Written) -> std::result::Result<(), String> {
        let next = self.version.apply(edit, &mut |_| Lease::none()).map_err(|error| error.to_string())?;
        check_version(&next).map_err(|error| error.to_string())?;
        self.version = next;
        for (record, contents) in tables {
            self.next_id = self.next_id.max(record.id.0 + 1);
            self.contents.insert(record.id, contents);
        }
        Ok(())
    }

    /// What `plan` comes to when it starts now: as in `JobContext::compact_tables`.
    fn carry_out(&self, plan: &Plan, cutter: &Cutter, id: u64) -> (TreeEdit, Written) {
        let (version, snapshots) = (&concerned(&self.version, plan), &self.snapshots);
        let arriving = Arriving::of(version, plan, || self.next_epoch()).unwrap();
        let mut edit = tree_edit(version, plan, &arriving).unwrap();
        let mut inputs = Inputs::of(version, plan).unwrap();
        let tables = inputs.lists.values().flatten();
        let tombstones: Vec<_> =
            tables.flat_map(|table| self.contents[&table.id].tombstones.iter().cloned()).collect();
        let coverage = Coverage::new(fragment(&tombstones, snapshots));
        for list in inputs.lists.values_mut() {
            list.retain(|table| !is_hidden(table, &coverage, snapshots));
        }
        let iterator = CompactionIterator {
            output: Tables::new(arriving.outputs, id),
            cutting: Some(
                cutter
                    .start_into(plan.target, grandparents(version, plan), &plan.fences)
                    .with_prefixes(Some(RULE), inputs.bytes),
            ),
            snapshots: snapshots.clone(),
            coverage,
            outside: Outside { version, inputs: &inputs.ids },
            record_filter: RecordFilter::idle(),
            pointers: Pointers::none(),
        };
        let walk = |list: &Vec<Arc<TableMeta>>| {
            let entries = list.iter().flat_map(|table| self.contents[&table.id].entries.iter().cloned());
            let entries: Vec<_> = entries.collect();
            Walk { at: entries.len(), entries }
        };
        let merge = MergeForward::new(inputs.lists.values().map(walk).collect());
        let (mut output, ..) = iterator.run(merge, |_, _| Ok(())).unwrap();
        output.cut(&UpperBound::Unbounded).unwrap();
        edit.add.extend(output.finished.iter().map(|(record, _)| (plan.target, record.clone())));
        (edit, output.finished)
    }

    /// Up to three jobs beside each other. Each starts on the same tree, with a plan of `next` that no running job is in the
    /// way of, and ends whenever it does, with all checks of an install. Returns their plans, or what is wrong.
    fn run_beside(
        &mut self,
        cutter: &Cutter,
        dice: &mut Dice,
        mut next: impl FnMut(&Self, &Claims, &mut Dice) -> Option<Plan>,
    ) -> std::result::Result<Vec<Plan>, String> {
        let mut running: Vec<(Plan, TreeEdit, Written)> = Vec::new();
        let mut busy = Claims::default();
        for number in 1..4 {
            let Some(plan) = next(self, &busy, dice) else { continue };
            let inputs = Inputs::of(&self.version, &plan).unwrap();
            if !inputs.lie_in(&plan.claims) {
                return Err(format!("I5: {plan} reads outside of its claims"));
            }
            busy.claim(&plan);
            let (edit, tables) = self.carry_out(&plan, cutter, self.next_id + 1000 * number);
            running.push((plan, edit, tables));
        }
        let mut ended = Vec::new();
        while !running.is_empty() {
            let (plan, edit, tables) = running.remove(dice.below(running.len() as u64) as usize);
            let was = self.version.clone();
            let result = self.install(plan.stacks, &edit, tables).and_then(|()| self.check_answers());
            result.map_err(|wrong| format!("{plan}: {wrong}, from {was:?}"))?;
            ended.push(plan);
        }
        Ok(ended)
    }
}

fn value_of(seq: u64) -> Vec<u8> {
    seq.to_string().into_bytes()
}

/// What a reader at `upto` finds of `key` after `history`, numbered from 1 on.
fn answer_of(history: &[Op], key: &[u8], upto: Seq) -> Option<Vec<u8>> {
    let visible = history.iter().zip(1..).take_while(|(_, seq)| Seq(*seq) <= upto);
    let newest = visible.filter_map(|(op, seq)| match op {
        Op::Put(put) => (put == key).then(|| Some(value_of(seq))),
        Op::Delete(deleted) => (deleted == key).then_some(None),
        Op::DeleteRange(range) => range.contains(key).then_some(None),
    });
    newest.last().flatten()
}

/// The run that `ops` make, numbered from `first` on, cut anywhere between keys.
fn written(ops: &[Op], first: u64, mut tables: Tables, dice: &mut Dice) -> Written {
    let mut entries: Vec<Entry> = Vec::new();
    let mut tombstones = Vec::new();
    for (op, seq) in ops.iter().zip(first..) {
        let mut add = |key: &[u8], kind, value| {
            entries.push((key.to_vec(), Reverse(Stamp::new(Seq(seq), kind)), value))
        };
        match op {
            Op::Put(key) => add(key, Kind::Put, value_of(seq)),
            Op::Delete(key) => add(key, Kind::Delete, Vec::new()),
            Op::DeleteRange(range) => tombstones.push(RangeTombstone { range: range.clone(), seq: Seq(seq) }),
        }
    }
    entries.sort();
    let every_seq: Vec<_> = (0..first + ops.len() as u64).map(Seq).collect();
    let kept = fragment(&tombstones, &every_seq).into_iter();
    tables.set_range_tombstones(kept.map(|tombstone| KeptRange { tombstone, held: None }).collect());
    for key in (0..KEYS).map(key) {
        if dice.below(5) == 0 {
            tables.cut(&UpperBound::Excluded(key[..].into())).unwrap();
        }
        for (_, stamp, value) in entries.iter().filter(|entry| entry.0 == key) {
            tables.add(&key, stamp.0, value, None).unwrap();
        }
    }
    tables.cut(&UpperBound::Unbounded).unwrap();
    tables.finished
}

fn random_policies(dice: &mut Dice) -> (Picker, Cutter) {
    let mut one_of = |choices: [u64; 3]| choices[dice.below(3) as usize];
    let grandparent_bytes_max = one_of([20, 60, 1000]);
    let config = PickerConfig {
        group_bytes: one_of([0, 80, 200]),
        group_parts: one_of([1, 1, 3]),
        settle: one_of([0, 1, 1]) == 1,
        expansion_bytes_max: one_of([1, 200, 1000]),
        grandparent_bytes_max,
    };
    let table_bytes = one_of([1, 50, 150]);
    let cutter = Cutter::Size(SizeConfig { table_bytes, grandparent_bytes_max, cuts_flushes: true });
    let picker = match one_of([0, 1, 2]) {
        0 => Picker::Cursor(config),
        1 => Picker::LeastOverlap(config),
        _ => Picker::RatioWindow(WindowConfig {
            victims: config,
            bytes_max: 300,
            oldest_runs: one_of([1, 2, 32]),
        }),
    };
    (picker, cutter)
}

/// Plans that can run at the same time.
fn random_plans(lab: &Lab, picker: &Picker, dice: &mut Dice) -> Vec<Plan> {
    let (mut busy, shape) = (Claims::default(), TreeShape::default());
    let mut plans: Vec<Plan> = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let view = TreeView::of(&lab.version, &busy, &shape);
        let level = dice.below(u64::from(DEEPEST) + 1) as u8;
        let plan = if level == 0 && dice.below(3) == 0 {
            let (from, runs) = (dice.below(2) as usize, lab.version.level(0).runs.len());
            let window = from..(from + 2 + dice.below(3) as usize).min(runs).max(from);
            picker.intra_l0(&view, &window, Evenness::Any)
        } else if dice.below(4) > 0 {
            picker.pick(&view, level)
        } else {
            match picker.pick_range(&view, level, Some(&random_range(dice))) {
                RangePick::Plan(plan) => Some(plan),
                RangePick::Busy | RangePick::Done => None,
            }
        };
        if let Some(plan) = plan {
            busy.claim(&plan);
            plans.push(plan);
        }
    }
    plans
}

/// What is wrong with a plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    NoTargetInput,
    NoVictim,
    NoFence,
    MovedThoughCompacted,
}

const FAULTS: [Fault; 4] =
    [Fault::NoTargetInput, Fault::NoVictim, Fault::NoFence, Fault::MovedThoughCompacted];

/// `plan` with a fault somewhere, if it has a place for it.
fn tampered(plan: &Plan, fault: Fault, dice: &mut Dice) -> Option<Plan> {
    let mut plan = plan.clone();
    let of_level = |level| move |(_, input): &(usize, &PlanInput)| input.level == level;
    let mut some_input = |level| {
        let places: Vec<_> =
            plan.inputs.iter().enumerate().filter(of_level(level)).map(|(at, _)| at).collect();
        (!places.is_empty()).then(|| places[dice.below(places.len() as u64) as usize])
    };
    match fault {
        Fault::NoTargetInput | Fault::NoVictim => {
            let at = some_input(if fault == Fault::NoVictim { plan.source } else { plan.target })?;
            plan.inputs.remove(at);
        }
        Fault::MovedThoughCompacted => {
            let at = some_input(plan.source)?;
            plan.moves.push(plan.inputs.remove(at).table);
        }
        Fault::NoFence if plan.fences.is_empty() => return None,
        Fault::NoFence => {
            plan.fences.remove(dice.below(plan.fences.len() as u64) as usize);
        }
    }
    Some(plan)
}

/// Whether the edit of a plan with a fault is refused. If it is one that a layout of many runs might want, it does no
/// harm.
fn check_tampered(
    lab: &Lab,
    (fault, plan): (Fault, &Plan),
    edit: &TreeEdit,
    tables: Written,
) -> std::result::Result<bool, String> {
    if lab.clone().install(plan.stacks, edit, tables.clone()).is_ok() {
        let mut other = lab.clone();
        other.install(true, edit, tables)?;
        let harm = |wrong| format!("{fault:?} in {plan} passes, and {wrong}, from {:?}", lab.version);
        return other.check_answers().map_err(harm).map(|()| false);
    }
    let mut other = lab.clone();
    let stacked = other.install(true, edit, tables);
    let harm = |wrong| format!("{fault:?} in {plan} would pass on top, and {wrong}, from {:?}", lab.version);
    stacked.map_or(Ok(true), |()| other.check_answers().map_err(harm).map(|()| true))
}

/// Those of `faults` that are refused when `plan` is tampered with. Fails if one passes and does harm.
fn refused_of(
    lab: &Lab,
    cutter: &Cutter,
    plan: &Plan,
    faults: &[Fault],
    dice: &mut Dice,
) -> std::result::Result<Vec<Fault>, String> {
    let mut refused = Vec::new();
    for fault in faults {
        let Some(plan) = tampered(plan, *fault, dice) else { continue };
        let (edit, tables) = lab.carry_out(&plan, cutter, lab.next_id);
        if check_tampered(lab, (*fault, &plan), &edit, tables)? {
            refused.push(*fault);
        }
    }
    Ok(refused)
}

#[test]
fn i4_no_plan_changes_an_answer_and_no_tampered_one_passes_that_does() {
    let (mut jobs, mut mixed, mut out_of_level0, mut fenced, mut beside, mut intra_l0) = (0, 0, 0, 0, 0, 0);
    let mut refused: BTreeMap<Fault, u32> = BTreeMap::new();
    for seed in 0..560 {
        let mut dice = Dice(seed);
        // A store of another layout that was opened with this one has several runs here and there.
        let levels = if seed % 4 == 3 { Levels::Stacked } else { Levels::Merged };
        let mut lab = Lab::random(levels, &mut dice);
        lab.check_answers().unwrap_or_else(|wrong| panic!("seed {seed}: at first {wrong}"));
        let (picker, cutter) = random_policies(&mut dice);
        for _ in 0..4 {
            let mut running = Vec::new();
            // Each starts on the same tree, and ends whenever it does.
            for (plan, number) in random_plans(&lab, &picker, &mut dice).into_iter().zip(1..) {
                let inputs = Inputs::of(&lab.version, &plan).unwrap();
                assert!(inputs.lie_in(&plan.claims), "I5: seed {seed}: {plan} reads outside of its claims");
                let (edit, tables) = lab.carry_out(&plan, &cutter, lab.next_id + 1000 * number);
                let found = refused_of(&lab, &cutter, &plan, &FAULTS, &mut dice);
                for fault in found.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")) {
                    *refused.entry(fault).or_default() += 1;
                }
                running.push((plan, edit, tables));
            }
            beside += u32::from(running.len() > 1);
            while !running.is_empty() {
                let (plan, edit, tables) = running.remove(dice.below(running.len() as u64) as usize);
                for (record, _) in &tables {
                    let inside = plan.claims.iter().filter(|claim| claim.covers(&record.range)).count();
                    assert_eq!(inside, 1, "seed {seed}: {plan} writes {record:?} outside of its claims");
                }
                let was = lab.version.clone();
                let result = lab.install(plan.stacks, &edit, tables).and_then(|()| lab.check_answers());
                result.unwrap_or_else(|wrong| panic!("seed {seed}: {plan}: {wrong}, from {was:?}"));
                let moves_beside_compaction = !plan.moves.is_empty() && !plan.inputs.is_empty();
                jobs += 1;
                mixed += u32::from(moves_beside_compaction);
                out_of_level0 += u32::from(moves_beside_compaction && plan.source == 0);
                fenced += u32::from(!plan.fences.is_empty());
                intra_l0 += u32::from(plan.target == 0);
            }
        }
    }
    let counts = [jobs, mixed, out_of_level0, fenced, beside, intra_l0];
    let enough = counts.iter().zip([1000, 100, 50, 80, 400, 60]).all(|(count, least)| *count >= least);
    let all_refused = FAULTS.iter().all(|fault| refused.get(fault).is_some_and(|count| *count >= 40));
    assert!(enough && all_refused, "{counts:?}, refused {refused:?}");
}

/// The next compaction of tables that hold much for readers that have gone.
fn next_release(lab: &Lab, picker: &Picker) -> Option<Plan> {
    let (busy, shape) = (Claims::default(), TreeShape::default());
    let (version, pins) = (&lab.version, &lab.snapshots[..]);
    let view = TreeView {
        keyspace: KeyspaceId(0),
        version,
        busy: &busy,
        shape: &shape,
        pins,
        deletes: &[],
        collection: None,
    };
    let config = PolicyConfig { picker: *picker, ..PolicyConfig::leveldb() };
    let plan = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config);
    // A level of several runs is folded once nothing is left to release.
    plan.filter(|plan| plan.reason != Reason::Fold)
}

#[test]
fn i4_what_readers_held_goes_after_them_and_no_answer_changes() {
    let (mut jobs, mut records, mut in_level0, mut above) = (0, 0, 0, 0);
    for seed in 0..400 {
        let mut dice = Dice(1000 + seed);
        let levels = if seed % 4 == 3 { Levels::Stacked } else { Levels::Merged };
        let mut lab = Lab::random(levels, &mut dice);
        let (picker, cutter) = random_policies(&mut dice);
        for _ in 0..6 {
            let Some(plan) = random_plans(&lab, &picker, &mut dice).into_iter().next() else { continue };
            let (edit, tables) = lab.carry_out(&plan, &cutter, lab.next_id);
            lab.install(plan.stacks, &edit, tables)
                .unwrap_or_else(|wrong| panic!("seed {seed}: {plan}: {wrong}"));
        }
        while !lab.snapshots.is_empty() {
            let gone = lab.snapshots.remove(dice.below(lab.snapshots.len() as u64) as usize);
            let answers = lab.answers.iter().filter(|(upto, _)| *upto != gone);
            lab.answers = Rc::new(answers.cloned().collect());
            let mut tables_left = lab.version.len();
            while let Some(plan) = next_release(&lab, &picker) {
                assert_eq!(plan.reason, Reason::Released, "seed {seed}: {plan}");
                let inputs = Inputs::of(&lab.version, &plan).unwrap();
                assert!(inputs.lie_in(&plan.claims), "I5: seed {seed}: {plan} reads outside of its claims");
                let held = inputs.lists.values().flatten();
                let released: u64 = held.map(|table| table.holds.released(&lab.snapshots).records).sum();
                let (edit, tables) = lab.carry_out(&plan, &cutter, lab.next_id);
                for (record, _) in &tables {
                    let left = record.holds.released(&lab.snapshots);
                    assert_eq!(left.records, 0, "seed {seed}: {plan} leaves what nobody holds in {record:?}");
                }
                tables_left = tables_left.checked_sub(plan.inputs.len()).expect("no table is due twice");
                let deepest = lab.version.deepest();
                lab.install(plan.stacks, &edit, tables)
                    .and_then(|()| lab.check_answers())
                    .unwrap_or_else(|wrong| panic!("seed {seed}: {plan}: {wrong}"));
                jobs += 1;
                records += released;
                in_level0 += u32::from(plan.target == 0);
                above += u32::from(deepest > Some(plan.target));
            }
        }
    }
    let counts = [jobs, records as u32, in_level0, above];
    let enough = counts.iter().zip([200, 1000, 10, 30]).all(|(count, least)| *count >= least);
    assert!(enough, "{counts:?}");
}
