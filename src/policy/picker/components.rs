//! Components: PTierDB's merge and split, and its coexisted merge and move (sections III-B2 and III-C).
//!
//! A *component* is the tables of a level that overlap each other, directly or through others. Level 0 goes down
//! component by component, each merged as a whole; what overlaps nothing moves. A deeper level that is over its limit
//! drains, a component or a part of one with each job, round and round the level behind its cursor.
//!
//! **Which tables are merged.** The paper judges by prefixes: tables are merged that share a prefix with two others, or
//! with one that is of the same kind; a table of a single prefix and one of several that share a prefix both move. Here a
//! prefix counts as shared where the ranges of tables overlap. Tables are cut between prefixes, so ranges end where
//! prefixes do, and nothing has to be stored: the list of a table's prefixes would tell apart only tables one of which
//! has none of a prefix in the midst of its range. Whether a table has a single prefix, its first and last key say. A
//! table that was cut by another rule has several.
//!
//! **Groups.** Tables that are merged with each other, directly or through others, make a *group*. It is convex: with it
//! are merged all tables of middle age that overlap its hull. (Without that, the outputs would bring old entries above newer
//! ones of such a table. The paper's rule does: `policy/tests/recency.rs`.) Groups that meet thereby are one.
//!
//! **A job** takes one group. Older tables that overlap it must not stay above it (I2), so they move in the same
//! edit. None of them belongs to another group if the group is taken that has the oldest table, for each is older than all of
//! the group, or it would be of middle age. What is left is judged again by the next job. A group that is too
//! large for one job goes in parts: tables from its oldest runs up to a key, and newer ones that lie over nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cursor::cursor_behind;
use super::{PickerConfig, Source};
use crate::catalog::{LevelState, TableMeta};
use crate::policy::closure::{components, convex, downward};
use crate::policy::plan::{OutputAge, Plan, PlanInput, PlanKind, Reason};
use crate::types::{Epoch, Key, KeyRange, Prefix, TableId, UpperBound};

/// Tables that one edit moves, at most.
const MOVES_MAX: usize = 64;

/// Parameters of the picker of components.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ComponentsConfig {
    /// For manual compactions, and tables that are compacted alone.
    pub base: PickerConfig,
    /// Whether tables that overlap little move, or else all that overlaps is merged.
    pub moves: bool,
    /// Bytes of a table of the largest level for each search by a lookup before it is merged; 0 for never.
    pub access_bytes: u64,
    /// Bytes that one job takes of a group, about.
    pub job_bytes: u64,
}

/// Tables that go to the next level together.
#[derive(Default)]
struct Taken<'a> {
    /// To be merged; newest run first, in key order.
    merged: Vec<&'a Arc<TableMeta>>,
    moved: Vec<&'a Arc<TableMeta>>,
}

/// What to take next.
pub(super) fn choose(source: Source<'_>, config: &ComponentsConfig) -> Option<Plan> {
    let components = components(source.state);
    let first = match &source.state.cursor {
        // Level 0 has no cursor: parts of its oldest run go first, for only an emptied run lowers the count.
        _ if source.level == 0 => components.iter().position(|tables| has_oldest(source.state, tables))?,
        Some(cursor) => components.partition_point(|tables| start(tables) < Some(cursor)),
        None => 0,
    };
    let (before, behind) = components.split_at(first);
    let mut moves = Taken::default();
    let mut bytes = 0;
    for tables in behind.iter().chain(before) {
        let taken = source.take(tables, config);
        let is_free = taken.claim().is_some_and(|claim| !source.is_busy(&claim));
        if !is_free {
            continue;
        }
        if !taken.merged.is_empty() {
            // Moves are cheap and make the level smaller, so they go first.
            return if moves.moved.is_empty() { taken.plan(source) } else { moves.plan(source) };
        }
        bytes += taken.moved.iter().map(|table| table.bytes()).sum::<u64>();
        moves.moved.extend(taken.moved);
        if moves.moved.len() >= MOVES_MAX || bytes >= source.excess_bytes() {
            break;
        }
    }
    moves.plan(source)
}

fn start<'a>(tables: &[&'a Arc<TableMeta>]) -> Option<&'a Key> {
    tables.first().map(|table| &table.range.start)
}

/// Whether one of `tables` is of the oldest run of `state`.
fn has_oldest(state: &LevelState, tables: &[&Arc<TableMeta>]) -> bool {
    let oldest = state.runs.last().and_then(|run| run.first()).map(|table| table.epoch);
    tables.iter().any(|table| Some(table.epoch) == oldest)
}

impl Source<'_> {
    /// Bytes that the level has above its limit; of level 0 all.
    fn excess_bytes(self) -> u64 {
        let bytes = self.state.bytes();
        let score = self.view.shape.scores[usize::from(self.level)];
        if self.level == 0 { bytes } else { (bytes as f64 * (1.0 - 1.0 / score.max(1.0))) as u64 }
    }
}

impl<'a> Source<'a> {
    /// What the next job takes of the component of `tables`.
    fn take(self, tables: &[&'a Arc<TableMeta>], config: &ComponentsConfig) -> Taken<'a> {
        if tables.len() == 1 {
            return Taken { merged: Vec::new(), moved: tables.to_vec() };
        }
        let rule = self.view.shape.prefix;
        let is_whole = self.level == 0 || !config.moves;
        let groups = if is_whole { vec![tables.to_vec()] } else { groups(self.state, tables, rule) };
        let age = |group: &Vec<&Arc<TableMeta>>| group.iter().map(|table| table.epoch).min();
        let Some(group) = groups.into_iter().min_by_key(age) else {
            return Taken { merged: Vec::new(), moved: tables.to_vec() };
        };
        let closed = if planted!("group-without-the-older-tables-below-it") {
            group.clone()
        } else {
            downward(self.state, &group)
        };
        let bytes: u64 = group.iter().map(|table| table.bytes()).sum();
        let is_part = self.level > 0 && bytes > config.job_bytes;
        let closed = if is_part { part(self.state, &closed, config.job_bytes) } else { closed };
        let is_of_group = |table: &&Arc<TableMeta>| group.iter().any(|other| other.id == table.id);
        let (merged, moved): (Vec<_>, Vec<_>) = closed.into_iter().partition(is_of_group);
        let oldest = merged.iter().map(|table| table.epoch).min();
        debug_assert!(
            oldest.is_none() || moved.iter().all(|table| Some(table.epoch) <= oldest),
            "I3: what moves below a group is as old as its oldest table, or older"
        );
        match merged[..] {
            // A table alone is not worth writing.
            [_] => Taken { merged: Vec::new(), moved: merged.into_iter().chain(moved).collect() },
            _ => Taken { merged, moved },
        }
    }
}

/// The groups of the component of `tables`, which are given by their starts.
fn groups<'a>(
    state: &'a LevelState,
    tables: &[&'a Arc<TableMeta>],
    rule: Option<Prefix>,
) -> Vec<Vec<&'a Arc<TableMeta>>> {
    let is_single: Vec<bool> =
        tables.iter().map(|table| rule.is_some_and(|rule| rule.of_all(&table.range).is_some())).collect();
    let mut sets = Sets::new(tables.len());
    // Tables that overlap the place that has been reached. They become more only where a table begins.
    let mut here: Vec<usize> = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        here.retain(|other| tables[*other].range.end.admits(&table.range.start));
        here.push(at);
        match here[..] {
            [_] => {}
            [one, other] if is_single[one] != is_single[other] => {}
            _ => here.iter().for_each(|other| _ = sets.join(*other, at)),
        }
    }
    let places: BTreeMap<TableId, usize> =
        tables.iter().enumerate().map(|(at, table)| (table.id, at)).collect();
    loop {
        let mut is_closed = true;
        for members in sets.members().into_iter().filter(|members| members.len() > 1) {
            let group: Vec<_> = members.iter().map(|at| tables[*at]).collect();
            // A component has all that overlaps it.
            let wider = convex(state, &group).into_iter().filter_map(|table| places.get(&table.id));
            for at in wider {
                is_closed &= planted!("group-without-tables-of-middle-age") || !sets.join(*at, members[0]);
            }
        }
        if is_closed {
            let groups = sets.members().into_iter().filter(|members| members.len() > 1);
            return groups.map(|members| members.iter().map(|at| tables[*at]).collect()).collect();
        }
    }
}

/// The part of `closed`, which is downward closed, up to some key: up to `bytes_max`, or the least that there is.
/// Downward closed, newest run first, in key order.
fn part<'a>(state: &LevelState, closed: &[&'a Arc<TableMeta>], bytes_max: u64) -> Vec<&'a Arc<TableMeta>> {
    let mut ends: Vec<&UpperBound> = closed.iter().map(|table| &table.range.end).collect();
    ends.sort_unstable();
    ends.dedup();
    // More tables lie before a later end.
    let fits = |end: &&UpperBound| {
        before(state, closed, end).iter().map(|table| table.bytes()).sum::<u64>() <= bytes_max
    };
    let fitting = ends.partition_point(fits);
    let (fit, larger) = ends.split_at(fitting);
    let ends = fit.last().into_iter().chain(larger);
    ends.map(|end| before(state, closed, end))
        .find(|part| !part.is_empty())
        .unwrap_or_else(|| closed.to_vec())
}

/// Those of `closed` that end at `end` or before, and lie over no table that is not among them.
fn before<'a>(
    state: &LevelState,
    closed: &[&'a Arc<TableMeta>],
    end: &UpperBound,
) -> Vec<&'a Arc<TableMeta>> {
    let mut taken: BTreeMap<TableId, Epoch> = BTreeMap::new();
    // Oldest run first.
    for table in closed.iter().rev().filter(|table| table.range.end <= *end) {
        let mut older = state.overlapping(&table.range).filter(|other| other.epoch < table.epoch);
        if older.all(|other| taken.contains_key(&other.id)) {
            taken.insert(table.id, table.epoch);
        }
    }
    closed.iter().copied().filter(|table| taken.contains_key(&table.id)).collect()
}

impl<'a> Taken<'a> {
    fn tables(&self) -> impl Iterator<Item = &'a Arc<TableMeta>> {
        self.merged.iter().chain(&self.moved).copied()
    }

    /// Hull of all.
    fn claim(&self) -> Option<KeyRange> {
        self.tables().map(|table| table.range.clone()).reduce(|hull, range| hull.hull(&range))
    }

    /// The plan that puts this on top of the next level; `None` if it is nothing.
    fn plan(mut self, source: Source<'_>) -> Option<Plan> {
        let Source { view, level, .. } = source;
        let range = self.claim()?;
        self.moved.sort_by(|one, other| one.range.start.cmp(&other.range.start));
        let is_move = self.merged.is_empty();
        // Components that move are apart from each other.
        let claims = if is_move { islands(&self.moved) } else { vec![range.clone()] };
        // A component of which something is left goes on with the next job.
        let cursor = if is_move { cursor_behind(&range) } else { range.start.clone() };
        Some(Plan {
            keyspace: view.keyspace,
            kind: if is_move { PlanKind::Move } else { PlanKind::Compact },
            source: level,
            target: level + 1,
            stacks: true,
            age: OutputAge::Newest,
            inputs: self.merged.iter().map(|table| PlanInput { level, table: table.id }).collect(),
            moves: self.moved.iter().map(|table| table.id).collect(),
            fences: Vec::new(),
            range,
            claims,
            bytes: self.tables().map(|table| table.bytes()).sum(),
            cursor: (level > 0).then_some(cursor),
            reason: if level == 0 { Reason::Level0Runs } else { Reason::LevelBytes },
        })
    }
}

/// The hulls of those of `tables` that overlap each other. They are given by their starts.
fn islands(tables: &[&Arc<TableMeta>]) -> Vec<KeyRange> {
    let mut islands: Vec<KeyRange> = Vec::new();
    for table in tables {
        match islands.last_mut().filter(|island| island.overlaps(&table.range)) {
            Some(island) => *island = island.hull(&table.range),
            None => islands.push(table.range.clone()),
        }
    }
    islands
}

/// Disjoint sets of numbers.
struct Sets(Vec<usize>);

impl Sets {
    /// So many numbers, each in a set of its own.
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// The number that stands for the set of `number`.
    fn root(&mut self, mut number: usize) -> usize {
        while self.0[number] != number {
            self.0[number] = self.0[self.0[number]];
            number = self.0[number];
        }
        number
    }

    /// Makes one set of those of two numbers; whether there were two.
    fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one] = other;
        one != other
    }

    /// The sets.
    fn members(&mut self) -> Vec<Vec<usize>> {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for number in 0..self.0.len() {
            members.entry(self.root(number)).or_default().push(number);
        }
        members.into_values().collect()
    }
}
