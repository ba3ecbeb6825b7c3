//! The cutter: decides where one output table ends and the next begins.
//!
//! **Compactions.** `Size` is LevelDB's `ShouldStopBefore`. It cuts at the target size, and earlier when the output
//! overlaps so much of the level after the target that its own compaction would cost too much.
//!
//! **Flushes** are cut where the run below was cut, as far as sizes allow. If each run were cut where its tables
//! happen to be full, a section of level 0 would reach one table further in each older run, and two sections would
//! compact the same part of level 1.
//!
//! A cut falls between two keys, and those of the next run lie elsewhere. So each run may reach a little over the
//! cuts of the last, and over ten runs everything hangs together. Therefore flushes are also cut at guards: some
//! starts of tables of level 1, each picked by its own hash, so that all flushes pick the same. (After PebblesDB's
//! guards: "PebblesDB: Building Key-Value Stores using Fragmented Log-Structured Compaction Trees", section 3.)
//! Guards change where level 1 is compacted, and that compaction takes from level 0 what was cut there before.
//!
//! **Guards of a level.** `Guards` also cuts at each key that is a guard of the target by its hash: so a table begins at each guard
//! that there is (`layout/guarded.rs`).
//!
//! **Prefixes.** `Prefix` is PTierDB's prefix-based data split (section III-B1). A table ends where a prefix does, once
//! it has its size and unless less than that is still to come. So tables hold whole prefixes, and those of different
//! jobs meet at the same places. What is to come is an estimate: the bytes of the inputs less those of the outputs. A
//! prefix alone may have more than any table should. From [`GIANT_TABLES`] times the size on, a table is cut inside it.
//!
//! # Invariants
//!
//! * A cut falls between user keys only (I1): the compaction asks once per user key, before its first entry.
//! * Outputs always end at the fences of the plan. Between fences lie tables that the job moves or leaves, which no
//!   output may span (I1), or keys that no output of an intra-L0 compaction should span (`picker/intra_l0.rs`).

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::catalog::{Run, TableMeta};
use crate::policy::layout::GuardedConfig;
use crate::types::{Key, Prefix, UpperBound};

/// The number of guards, or up to twice as many, unless the flush is small. A full level 0 makes about as many
/// sections of 20 MiB, and a full memtable about as many tables.
const GUARDS: u64 = 48;

/// Divisor: guards part a small flush into pieces of at least about this part of a table.
const GUARDED_PARTS: u64 = 8;

/// A table is cut inside a prefix once it has this many times the size of a table.
const GIANT_TABLES: u64 = 8;

/// The cutters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cutter {
    /// By size and by overlap with the level after the target.
    Size(SizeConfig),
    /// By size and at the guards of the target.
    Guards(SizeConfig, GuardedConfig),
    /// By size, between two prefixes.
    Prefix(SizeConfig),
}

/// Limits of an output table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeConfig {
    /// Bytes at which an output is complete.
    pub table_bytes: u64,
    /// An output is cut once it spans more than this many bytes of the level after the target.
    pub grandparent_bytes_max: u64,
    /// Whether a flush is cut, or else is one table.
    pub cuts_flushes: bool,
}

/// What the next cut depends on.
#[derive(Clone, Copy, Debug)]
pub struct CutView<'a> {
    /// Bytes in the current output; 0 while it is empty.
    pub output_bytes: u64,
    /// User key of the next entry, which is not the user key of the last one.
    pub next_key: &'a [u8],
}

/// The cutting of one sorted stream of outputs.
#[derive(Clone, Debug)]
pub struct CutState {
    config: SizeConfig,
    // The level after the target, or the run to be cut alike.
    beside: Run,
    alike: bool,
    // And the level whose guards cut.
    guards: Option<(GuardedConfig, u8)>,
    // Index behind `current`, the first table of `beside` that is not wholly before the last key.
    next: usize,
    current: Option<Arc<TableMeta>>,
    // Bytes of `beside` that the current output has passed.
    passed_bytes: u64,
    // Those that no key has reached, the next one last.
    fences: Vec<UpperBound>,
    // Where tables hold whole prefixes.
    prefixes: Option<Prefixes>,
}

/// Where a stream of keys may be cut between two prefixes.
#[derive(Clone, Debug)]
struct Prefixes {
    /// Without one, every key is a prefix.
    rule: Option<Prefix>,
    /// That of the last key; `None` if it had none.
    last: Option<Vec<u8>>,
    /// Bytes that are still to be written behind the current output, about.
    rest_bytes: u64,
}

impl Cutter {
    /// Whether a flush is cut, by [`Cutter::start_like`], or else is one table.
    #[must_use]
    pub fn cuts_flushes(&self) -> bool {
        self.size().cuts_flushes
    }

    /// Bytes of a table, about.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        self.size().table_bytes
    }

    /// Whether tables are cut between prefixes, by [`CutState::with_prefixes`].
    #[must_use]
    pub fn cuts_between_prefixes(&self) -> bool {
        match self {
            Self::Size(_) | Self::Guards(..) => false,
            Self::Prefix(_) => true,
        }
    }

    fn size(&self) -> &SizeConfig {
        match self {
            Self::Size(config) | Self::Guards(config, _) | Self::Prefix(config) => config,
        }
    }

    /// Starts to cut a stream of keys, in order. `grandparents` is the run of the level after the target; `fences` are
    /// those of the plan, ascending.
    #[must_use]
    pub fn start(&self, grandparents: Run, fences: &[Key]) -> CutState {
        debug_assert!(fences.is_sorted(), "fences must ascend");
        let config = *self.size();
        let fences = fences.iter().rev().cloned().map(UpperBound::Excluded).collect();
        let current = grandparents.first().cloned();
        let prefixes = match self {
            Self::Size(_) | Self::Guards(..) => None,
            Self::Prefix(_) => Some(Prefixes { rule: None, last: None, rest_bytes: u64::MAX }),
        };
        CutState {
            config,
            beside: grandparents,
            alike: false,
            guards: None,
            next: 1,
            current,
            passed_bytes: 0,
            fences,
            prefixes,
        }
    }

    /// The same for outputs that go into level `target`: also at its guards, where it has some.
    #[must_use]
    pub fn start_into(&self, target: u8, grandparents: Run, fences: &[Key]) -> CutState {
        let guards = match self {
            Self::Size(_) | Self::Prefix(_) => None,
            Self::Guards(_, guards) => Some((*guards, target)),
        };
        CutState { guards, ..self.start(grandparents, fences) }
    }

    /// Starts to cut a stream of keys, in order, at the places where `run`, the run below, is cut, and at `guards`,
    /// which ascend. Where `run` has tables, outputs have half to one and a half times the size of a table; where it
    /// has none, the size of a table.
    #[must_use]
    pub fn start_like(&self, run: Run, guards: &[Key]) -> CutState {
        CutState { alike: true, ..self.start(run, guards) }
    }

    /// The guards for a flush of this many bytes over `level1`. They include those for a smaller flush.
    #[must_use]
    pub fn guards(&self, level1: &Run, bytes: u64) -> Vec<Key> {
        let config = self.size();
        let count = (bytes.saturating_mul(GUARDED_PARTS) / config.table_bytes.max(1)).min(GUARDS);
        if count == 0 {
            return Vec::new();
        }
        let starts: Vec<_> = level1.iter().skip(1).map(|table| &table.range.start).collect();
        let hashes: Vec<u64> = starts.iter().map(|start| xxh3_64(start)).collect();
        let reach = starts.len() / 2 / count as usize;
        // The least of those around it: evenly spread, and none changes for what happens elsewhere.
        let is_guard = |at: usize| {
            (1..=reach).all(|away| {
                let around = [at.checked_sub(away), Some(at + away)].into_iter().flatten();
                around.filter_map(|other| hashes.get(other)).all(|other| *other > hashes[at])
            })
        };
        (0..starts.len()).filter(|at| is_guard(*at)).map(|at| starts[at].clone()).collect()
    }
}

impl CutState {
    /// The same, for inputs of `bytes` whose prefixes are those of `rule`. It matters where prefixes are not cut.
    #[must_use]
    pub fn with_prefixes(mut self, rule: Option<Prefix>, bytes: u64) -> Self {
        if let Some(prefixes) = &mut self.prefixes {
            (prefixes.rule, prefixes.rest_bytes) = (rule, bytes);
        }
        self
    }

    /// The next place at which the output ends whether or not a key follows.
    #[must_use]
    pub fn next_fence(&self) -> Option<&UpperBound> {
        self.fences.last()
    }

    /// The next place to ask at where there are range tombstones alone: a fence, or where the next table of the level
    /// after the target ends.
    #[must_use]
    pub fn next_boundary(&self) -> Option<&UpperBound> {
        let grandparent = self.current.as_ref().map(|table| &table.range.end);
        self.next_fence().into_iter().chain(grandparent).min()
    }

    /// Whether the current output ends before the next key.
    pub fn cut(&mut self, view: &CutView<'_>) -> bool {
        let before = self.next;
        while let Some(table) = self.current.take_if(|table| !table.range.end.admits(view.next_key)) {
            if view.output_bytes > 0 {
                self.passed_bytes += table.bytes();
            }
            self.current = self.beside.get(self.next).cloned();
            self.next += 1;
        }
        let mut fenced = false;
        while self.fences.pop_if(|fence| !fence.admits(view.next_key)).is_some() {
            fenced = true;
        }
        let full = if let Some(prefixes) = &mut self.prefixes {
            prefixes.cut(&self.config, view)
        } else if self.alike && !planted!("flush-cut-out-of-step") {
            view.output_bytes >= self.full_bytes(view.next_key, self.next > before)
        } else {
            view.output_bytes >= self.config.table_bytes
                || self.passed_bytes > self.config.grandparent_bytes_max
                || self.is_guard(view.next_key)
        };
        let cut = fenced || full && view.output_bytes > 0;
        if cut {
            self.passed_bytes = 0;
            if let Some(prefixes) = &mut self.prefixes {
                prefixes.rest_bytes = prefixes.rest_bytes.saturating_sub(view.output_bytes);
            }
        }
        cut
    }

    fn is_guard(&self, key: &[u8]) -> bool {
        !planted!("guard-not-cut") && self.guards.is_some_and(|(guards, level)| guards.is_guard(key, level))
    }

    /// Bytes at which an output that is to be cut like `beside` is complete, where a table of that ends or elsewhere.
    fn full_bytes(&self, next_key: &[u8], ends: bool) -> u64 {
        let size = self.config.table_bytes;
        match &self.current {
            _ if ends => size / 2,
            Some(table) if &*table.range.start <= next_key => size + size / 2,
            _ => size,
        }
    }
}

impl Prefixes {
    /// Whether an output of `view.output_bytes` is complete before the next key.
    fn cut(&mut self, config: &SizeConfig, view: &CutView<'_>) -> bool {
        let next = self.rule.and_then(|rule| rule.of(view.next_key));
        let begins = next.is_none() || next != self.last.as_deref();
        if begins {
            self.last = next.map(<[u8]>::to_vec);
        }
        let is_giant = view.output_bytes >= config.table_bytes.saturating_mul(GIANT_TABLES);
        let rest_bytes = self.rest_bytes.saturating_sub(view.output_bytes);
        let between = (begins || planted!("cut-inside-a-prefix")) && rest_bytes >= config.table_bytes;
        view.output_bytes >= config.table_bytes && between || is_giant
    }
}
