//! Recency under PTierDB's compactions: a store in memory, and random flushes, merges down, moves and merges within the
//! deepest level.
//!
//! The paper orders the tables of a level by file numbers, gives the output of a merge the newest number of its inputs, and
//! merges just the tables that share a prefix. So old entries of one input come to lie above newer ones of a table of middle age
//! that stays or moves, and lookups find them: [`Paper`] does it so. [`Ours`] carries out what the picker picks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::*;
use crate::catalog::{Lease, check_edit, check_version};

/// Entries of one prefix: keys of it with their sequence numbers.
type Entries = BTreeSet<(String, u64)>;

/// Entries in a table that is not the last of a job; less than those of eight tables are in one of a single prefix.
const TABLE_ENTRIES: usize = 6;

const ENTRY_BYTES: u64 = 64;

const RULE: Prefix = Prefix::Fixed(1);

fn prefix_of(key: &str) -> &str {
    &key[..1]
}

fn range_of(entries: &Entries) -> KeyRange {
    let (first, last) = (&entries.first().unwrap().0, &entries.last().unwrap().0);
    KeyRange::new(first.as_bytes(), last.as_bytes())
}

/// The newest version of `key` at or below `upto` in `entries`.
fn newest(entries: &Entries, key: &str, upto: u64) -> Option<u64> {
    entries.range((key.to_string(), 0)..=(key.to_string(), upto)).next_back().map(|(_, seq)| *seq)
}

/// Everything that was written, and the numbers at which somebody reads.
#[derive(Default)]
struct History {
    entries: Entries,
    last: u64,
    readers: Vec<u64>,
}

impl History {
    /// The entries of a memtable: some keys of a few prefixes.
    fn write(&mut self, dice: &mut Dice) -> Entries {
        let mut written = Entries::new();
        for _ in 0..1 + dice.below(3) {
            let prefix = char::from(b'a' + dice.below(6) as u8);
            for _ in 0..1 + dice.below(6) {
                self.last += 1;
                written.insert((format!("{prefix}{}", dice.below(6)), self.last));
            }
        }
        if dice.below(4) == 0 {
            self.readers.push(self.last);
        }
        self.entries.extend(written.iter().cloned());
        written
    }

    /// Reads that are answered wrongly, of all that anybody may ask.
    fn stale(&self, read: impl Fn(&str, u64) -> Option<u64>) -> usize {
        let keys: BTreeSet<&String> = self.entries.iter().map(|(key, _)| key).collect();
        let readers = || self.readers.iter().copied().chain([u64::MAX]);
        let reads = keys.into_iter().flat_map(|key| readers().map(move |upto| (key, upto)));
        reads.filter(|(key, upto)| read(key, *upto) != newest(&self.entries, key, *upto)).count()
    }
}

/// The paper's rules, as they are written.
#[derive(Default)]
struct Paper {
    levels: [Vec<(u64, Entries)>; 4],
    number: u64,
}

impl Paper {
    fn flush(&mut self, entries: Entries) {
        self.number += 1;
        self.levels[0].push((self.number, entries));
    }

    /// Newest number first within a level.
    fn read(&self, key: &str, upto: u64) -> Option<u64> {
        self.levels.iter().find_map(|tables| {
            let mut tables: Vec<_> = tables.iter().collect();
            tables.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
            tables.into_iter().find_map(|(_, entries)| newest(entries, key, upto))
        })
    }

    /// Merges tables, and cuts the result between prefixes. All parts have the newest number of the inputs.
    fn merge(tables: Vec<(u64, Entries)>) -> Vec<(u64, Entries)> {
        let number = tables.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let entries: Vec<_> =
            tables.into_iter().flat_map(|(_, entries)| entries).collect::<Entries>().into_iter().collect();
        let mut parts: Vec<Entries> = Vec::new();
        for prefix in entries.chunk_by(|one, other| prefix_of(&one.0) == prefix_of(&other.0)) {
            match parts.last_mut().filter(|part| part.len() < TABLE_ENTRIES) {
                Some(part) => part.extend(prefix.iter().cloned()),
                None => parts.push(prefix.iter().cloned().collect()),
            }
        }
        parts.into_iter().map(|part| (number, part)).collect()
    }

    fn merge_and_split(&mut self) {
        let tables = std::mem::take(&mut self.levels[0]);
        self.levels[1].extend(Self::merge(tables));
    }

    /// Section III-B2, over all tables of `level`.
    fn merge_and_move(&mut self, level: usize) {
        let mut tables = std::mem::take(&mut self.levels[level]);
        tables.sort_by(|one, other| one.1.first().cmp(&other.1.first()));
        let mut components: Vec<(KeyRange, Vec<(u64, Entries)>)> = Vec::new();
        for table in tables {
            let range = range_of(&table.1);
            match components.last_mut().filter(|(hull, _)| hull.overlaps(&range)) {
                Some((hull, tables)) => {
                    *hull = hull.hull(&range);
                    tables.push(table);
                }
                None => components.push((range, vec![table])),
            }
        }
        for (_, tables) in components {
            let merged = Self::merged(&tables);
            let (merged, moved): (Vec<_>, Vec<_>) =
                tables.into_iter().zip(merged).partition(|(_, is_merged)| *is_merged);
            let merged: Vec<_> = merged.into_iter().map(|(table, _)| table).collect();
            self.levels[level + 1].extend(Self::merge(merged));
            self.levels[level + 1].extend(moved.into_iter().map(|(table, _)| table));
        }
    }

    /// Which tables of a component are merged.
    fn merged(tables: &[(u64, Entries)]) -> Vec<bool> {
        let prefixes = |entries: &Entries| -> BTreeSet<String> {
            entries.iter().map(|(key, _)| prefix_of(key).to_string()).collect()
        };
        let prefixes: Vec<_> = tables.iter().map(|(_, entries)| prefixes(entries)).collect();
        let singles = prefixes.iter().filter(|prefixes| prefixes.len() == 1).count();
        match tables.len() {
            1 => vec![false],
            2 => vec![singles != 1; 2],
            _ => {
                let often =
                    |prefix: &String| prefixes.iter().filter(|other| other.contains(prefix)).count() >= 3;
                prefixes.iter().map(|prefixes| prefixes.iter().any(often)).collect()
            }
        }
    }

    fn merge_within(&mut self, level: usize, dice: &mut Dice) {
        let tables = std::mem::take(&mut self.levels[level]);
        if tables.is_empty() {
            return;
        }
        let target = range_of(&tables[dice.below(tables.len() as u64) as usize].1);
        let (merged, stay): (Vec<_>, Vec<_>) =
            tables.into_iter().partition(|(_, entries)| range_of(entries).overlaps(&target));
        self.levels[level].extend(Self::merge(merged).into_iter().chain(stay));
    }
}

/// The tables that a job writes.
type Written = Vec<(TableId, Entries)>;

/// A tree with the picker's plans carried out.
struct Ours {
    version: Version,
    contents: HashMap<TableId, Entries>,
    config: PolicyConfig,
    /// Of the next table, and the next epoch.
    next: (u64, u64),
    busy: Claims,
    running: Vec<(Plan, TreeEdit, Written)>,
    /// Merges, moves, merges that move something besides, merges within a level.
    counts: [u32; 4],
}

impl Ours {
    fn new(job_bytes: u64) -> Self {
        let mut config = PolicyConfig::leveldb_sized(TABLE_ENTRIES as u64 * ENTRY_BYTES, 1 << 10);
        config.prefixed();
        let Picker::Components(components) = &mut config.picker else { panic!("of components") };
        components.job_bytes = job_bytes;
        Self {
            version: Version::empty(),
            contents: HashMap::new(),
            config,
            next: (1, 1),
            busy: Claims::default(),
            running: Vec::new(),
            counts: [0; 4],
        }
    }

    fn epoch(&mut self) -> u64 {
        self.next.1 += 1;
        self.next.1
    }

    fn record(&mut self, epoch: u64, entries: &Entries) -> TableRecord {
        self.next.0 += 1;
        let seqs = || entries.iter().map(|(_, seq)| Seq(*seq));
        TableRecord {
            min_seq: seqs().min().unwrap(),
            max_seq: seqs().max().unwrap(),
            entries: entries.len() as u64,
            tombstones: 0,
            ..table(self.next.0, epoch, range_of(entries), entries.len() as u64 * ENTRY_BYTES)
        }
    }

    fn read(&self, key: &str, upto: u64) -> Option<u64> {
        let mut tables = self.version.runs().filter_map(|(_, run)| run.find(key.as_bytes()));
        tables.find_map(|table| newest(&self.contents[&table.id], key, upto))
    }

    fn flush(&mut self, entries: Entries) {
        let epoch = self.epoch();
        let record = self.record(epoch, &entries);
        self.contents.insert(record.id, entries);
        self.apply(&TreeEdit { add: vec![(0, record)], ..TreeEdit::default() });
    }

    fn apply(&mut self, edit: &TreeEdit) {
        check_edit(&self.version, edit)
            .unwrap_or_else(|error| panic!("{error}: {edit:?} on {:?}", self.version));
        self.version = self.version.apply(edit, &mut |_| Lease::none()).unwrap();
        check_version(&self.version).unwrap();
    }

    /// Starts a job, if one can start.
    fn start(&mut self, dice: &mut Dice) {
        let mut shape = self.config.layout.measure(&self.version);
        shape.prefix = Some(RULE);
        let ids: Vec<TableId> = self.version.tables().map(|(_, table)| table.id).collect();
        if !ids.is_empty() {
            shape
                .searched
                .iter_mut()
                .for_each(|place| *place = Some(ids[dice.below(ids.len() as u64) as usize]));
        }
        let (busy, version) = (self.busy.clone(), self.version.clone());
        let view = TreeView::of(&version, &busy, &shape);
        let picker = &self.config.picker;
        let plan = match dice.below(4) {
            3 => picker.pick_within(&view),
            level => picker.pick(&view, level as u8),
        };
        let Some(plan) = plan else { return };
        self.busy.claim(&plan);
        let (edit, tables) = self.carried_out(&plan);
        self.running.push((plan, edit, tables));
    }

    /// The edit of a plan that starts now, and what it writes.
    fn carried_out(&mut self, plan: &Plan) -> (TreeEdit, Written) {
        let version = self.version.clone();
        let epoch_of = |id: &TableId| version.table(*id).unwrap().1.epoch.0;
        let newest = plan.inputs.iter().map(|input| epoch_of(&input.table)).max().unwrap_or(0);
        // As `Arriving` has it: new epochs in the order of the old ones.
        let old: BTreeSet<u64> = plan.moves.iter().map(epoch_of).collect();
        let new: BTreeMap<u64, u64> = old.into_iter().map(|old| (old, self.epoch())).collect();
        assert!(plan.inputs.is_empty() || new.keys().all(|old| *old < newest), "what moves is older: {plan}");
        let epoch = if plan.stacks { self.epoch() } else { newest };
        let mut edit = TreeEdit::default();
        for id in &plan.moves {
            let record =
                TableRecord { epoch: Epoch(new[&epoch_of(id)]), ..version.table(*id).unwrap().1.record() };
            edit.drop.push((plan.source, *id));
            edit.add.push((plan.target, record));
        }
        edit.drop.extend(plan.inputs.iter().map(|input| (input.level, input.table)));
        edit.cursors.extend(plan.cursor.iter().map(|cursor| (plan.source, cursor.clone())));
        let entries = plan.inputs.iter().flat_map(|input| self.contents[&input.table].iter().cloned());
        let parts = self.cut(&entries.collect());
        let written: Vec<_> = parts.into_iter().map(|part| (self.record(epoch, &part), part)).collect();
        edit.add.extend(written.iter().map(|(record, _)| (plan.target, record.clone())));
        (edit, written.into_iter().map(|(record, part)| (record.id, part)).collect())
    }

    /// What the cutter makes of a merge's output: whole prefixes, unless one alone is too large.
    fn cut(&self, entries: &Entries) -> Vec<Entries> {
        let bytes = entries.len() as u64 * ENTRY_BYTES;
        let mut state = self.config.cutter.start(Run::empty(), &[]).with_prefixes(Some(RULE), bytes);
        let (mut parts, mut part, mut last) = (Vec::new(), Entries::new(), None);
        for (key, seq) in entries {
            let output_bytes = part.len() as u64 * ENTRY_BYTES;
            if last.replace(key) != Some(key)
                && state.cut(&CutView { output_bytes, next_key: key.as_bytes() })
            {
                let is_within = part.last().is_some_and(|(last, _)| prefix_of(last) == prefix_of(key));
                assert!(!is_within || part.len() >= 8 * TABLE_ENTRIES, "cut inside a prefix: {part:?}");
                parts.push(std::mem::take(&mut part));
            }
            part.insert((key.clone(), *seq));
        }
        parts.extend((!part.is_empty()).then_some(part));
        parts
    }

    /// Ends one of the running jobs.
    fn end(&mut self, dice: &mut Dice) {
        if self.running.is_empty() {
            return;
        }
        let (plan, edit, tables) = self.running.remove(dice.below(self.running.len() as u64) as usize);
        self.contents.extend(tables);
        self.apply(&edit);
        self.busy.release(&plan);
        let kinds = [
            plan.kind == PlanKind::Compact,
            plan.kind == PlanKind::Move,
            !plan.moves.is_empty() && !plan.inputs.is_empty(),
            plan.source == plan.target,
        ];
        self.counts.iter_mut().zip(kinds).for_each(|(count, is_so)| *count += u32::from(is_so));
    }
}

#[test]
fn i3_the_papers_rule_gives_stale_reads() {
    let (mut stale, mut by_moves) = (0, 0);
    for seed in 0..100 {
        let (mut dice, mut history, mut paper) = (Dice(seed), History::default(), Paper::default());
        for _ in 0..80 {
            match dice.below(6) {
                0 | 1 => paper.flush(history.write(&mut dice)),
                2 => paper.merge_and_split(),
                3 => {
                    let before = history.stale(|key, upto| paper.read(key, upto));
                    paper.merge_and_move(1 + dice.below(2) as usize);
                    let after = history.stale(|key, upto| paper.read(key, upto));
                    by_moves += u32::from(before == 0 && after > 0);
                }
                4 => paper.merge_within(3, &mut dice),
                _ => stale += history.stale(|key, upto| paper.read(key, upto)),
            }
        }
    }
    assert!(stale > 1000 && by_moves > 10, "{stale} stale reads, {by_moves} that a merge and move began");
}

#[test]
fn i3_convex_groups_and_new_epochs_give_none() {
    let mut counts = [0; 4];
    for seed in 0..300 {
        let job_bytes = if seed % 3 == 0 { 1 << 10 } else { u64::MAX };
        let (mut dice, mut history, mut ours) = (Dice(seed), History::default(), Ours::new(job_bytes));
        for step in 0..120 {
            match dice.below(6) {
                0 | 1 => ours.flush(history.write(&mut dice)),
                2 | 3 => ours.start(&mut dice),
                _ => ours.end(&mut dice),
            }
            let stale = history.stale(|key, upto| ours.read(key, upto));
            assert_eq!(stale, 0, "seed {seed}, {step}: {:?}", ours.version);
        }
        counts.iter_mut().zip(ours.counts).for_each(|(sum, count)| *sum += count);
    }
    let [merges, moves, mixed, within] = counts;
    assert!(merges > 1000 && moves > 500 && mixed > 20 && within > 200, "{counts:?}");
}
