//! Options of the layout: how the levels of a tree are built.

use super::range;
use crate::error::Result;
use crate::types::LEVELS;

/// How the levels of a tree are built, and when one is too large.
///
/// ```
/// use terrace::tree::{Adaptive, Layout};
/// assert_eq!(Layout::default(), Layout::Adaptive(Adaptive { l0_bytes: 192 << 20, l0_runs: 3 }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Layout {
    /// One run in each level below level 0. The number of levels, and the ratio between them, follow the data: those
    /// that cost least in writes and in space. Level 0 is due by its bytes, and compacted in sections.
    Adaptive(Adaptive),
    /// As [`Layout::Adaptive`], but level 0 may be as wide as makes a fifth of the data obsolete. What users do with a keyspace
    /// is measured: a level 0 of new records may be as large as the rest, so a load writes less (`docs/mechanisms/auto.md`).
    Auto(Adaptive),
    /// LevelDB's: one run in each level below level 0, each level larger than the one above by a given ratio. Level 0
    /// is due by its number of runs.
    Leveled(Leveled),
    /// PebblesDB's: some keys, drawn by their hash, part each level into ranges within which tables may overlap. What comes
    /// from above is added there, not merged with it: fewer bytes are written, and lookups ask several tables of a level.
    /// It goes with [`Picker::Guards`](super::Picker::Guards) and [`Cutter::Guards`](super::Cutter::Guards) alone.
    Guarded(Guarded),
    /// PTierDB's: what comes from above is put on top of a level, not merged with what is there, so a byte is written about
    /// once for each level or not at all, and lookups ask several tables of a level. It goes with
    /// [`Picker::Components`](super::Picker::Components) alone, and is made for [`Cutter::Prefix`](super::Cutter::Prefix).
    Prefixed(Prefixed),
    /// Several runs in a level, or one, merged level by level (`docs/mechanisms/layouts.md`): tiering, lazy leveling, and
    /// leveling by whole levels. Goes with [`Picker::Levels`](super::Picker::Levels).
    Tiered(Tiered),
    /// bLSM's: each level has two components. One takes what comes from above, while the other goes down in key order, unit by
    /// unit, as much as comes in (`docs/mechanisms/lsbm.md`). A component is a numbered level of its own here, so there are four
    /// levels of two. Goes with [`Picker::Drain`](super::Picker::Drain).
    Geared(Geared),
}

/// Limits of [`Layout::Adaptive`] and of [`Layout::Auto`].
///
/// ```
/// use terrace::tree::Adaptive;
/// let small = Adaptive { l0_bytes: 32 << 20, ..Adaptive::default() };
/// assert_eq!(small.l0_runs, 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Adaptive {
    /// Bytes that level 0 may hold before it is compacted; 4 KiB to 1 PiB. It may hold up to six times as much if that
    /// is at most a fifth of the data. Default: 192 MiB, three full memtables.
    pub l0_bytes: u64,
    /// Runs of level 0 that hold `l0_bytes` if each is a full memtable; 1 to 1000. Level 0 is also due at twice as
    /// many runs as full ones would be, up to six tenths of [`Governor::l0_slow`](super::Governor::l0_slow). Default:
    /// 3.
    pub l0_runs: usize,
}

/// Limits of [`Layout::Leveled`]. The defaults are LevelDB's (`db/dbformat.h`, `db/version_set.cc`).
///
/// ```
/// use terrace::tree::Leveled;
/// let rocksdb = Leveled { level1_bytes: 256 << 20, ..Leveled::default() };
/// assert_eq!((rocksdb.ratio, rocksdb.l0_trigger), (10, 4));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leveled {
    /// Bytes at which level 1 is compacted; 4 KiB to 1 PiB. Default: 10 MiB.
    pub level1_bytes: u64,
    /// How many times larger each further level is; 2 to 100. A large ratio means fewer levels for readers, and more
    /// bytes written for each byte that sinks. Default: 10.
    pub ratio: u32,
    /// Flushed runs in level 0 that start a compaction; 1 to 1000. Default: 4.
    pub l0_trigger: usize,
}

/// Limits of [`Layout::Guarded`]. The defaults are PebblesDB's (`src/db/write_batch.cc`, `src/db/version_set.cc`).
///
/// ```
/// use terrace::tree::Guarded;
/// // For a hundredth of the data: about one guard of level 1 in 500,000 keys.
/// let small = Guarded { top_bits: 21, guard_bytes: 1 << 20, ..Guarded::default() };
/// assert_eq!((small.bits_step, small.runs_max, small.l0_trigger), (2, 2, 2));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guarded {
    /// Flushed runs in level 0 that start a compaction; 1 to 1000. Default: 2.
    pub l0_trigger: usize,
    /// A key is a guard of level `L` if its hash ends in `top_bits - L * bits_step` ones, so about one key in two to that
    /// power is one; more than seven times `bits_step`, to 63. Default: 27.
    pub top_bits: u32,
    /// How many ones fewer each further level takes; 1 to 8. Default: 2, four times as many guards.
    pub bits_step: u32,
    /// Runs that the range of a guard may have; it is compacted when it has more; 1 to 100. More runs mean fewer bytes
    /// written, and more tables to ask. Default: 2.
    pub runs_max: usize,
    /// Half of the bytes at which the range of a guard of level 1 is compacted; each deeper level may have twice as many, up
    /// to 32 times this; 4 KiB to 1 PiB. Default: 64 MiB.
    pub guard_bytes: u64,
}

/// Limits of [`Layout::Prefixed`]. The defaults are the paper's ("PTierDB", section IV-A): LevelDB's.
///
/// ```
/// use terrace::tree::Prefixed;
/// let motivation = Prefixed { ratio: 6, ..Prefixed::default() };
/// assert_eq!((motivation.level1_bytes, motivation.l0_trigger), (10 << 20, 4));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefixed {
    /// Bytes at which level 1 is due; 4 KiB to 1 PiB. Default: 10 MiB.
    pub level1_bytes: u64,
    /// How many times larger each further level may be; 2 to 100. Default: 10.
    pub ratio: u32,
    /// Flushed runs in level 0 that start a compaction; 1 to 1000. Default: 4.
    pub l0_trigger: usize,
}

/// Limits of [`Layout::Tiered`]. The members of the family differ by `runs` and `last_runs` (the K and Z of fluid LSM:
/// Dayan and Idreos, "Dostoevsky").
///
/// * Leveling keeps one run in each level ([`Tiered::LEVELING`]).
/// * Tiering keeps as many runs in each level as it is larger than the one above ([`Tiered::TIERING`]).
/// * Lazy leveling does so above the last level, the deepest one that holds anything ([`Tiered::LAZY_LEVELING`]).
/// * Stepped merge is tiering that merges its last level only when it is full ([`Tiered::STEPPED_MERGE`]).
///
/// A level that keeps several runs is due by their number; a level that keeps one, and a last level that keeps another
/// number than the others do, by its bytes.
///
/// ```
/// use terrace::tree::Tiered;
/// let small = Tiered { level1_bytes: 1 << 20, ..Tiered::LAZY_LEVELING };
/// assert_eq!((small.runs, small.last_runs), (10, 1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tiered {
    /// Bytes at which a level 1 that is due by its bytes is merged; 4 KiB to 1 PiB. Default: 10 MiB.
    pub level1_bytes: u64,
    /// How many times that it is for each further level; 2 to 100. Default: 10.
    pub ratio: u32,
    /// Runs at which a level above the last one is due; 1 to 1000. 1 means that what arrives is merged with what is there.
    /// Default: 10.
    pub runs: u32,
    /// The same for the last level; 1 to 1000. Default: 10.
    pub last_runs: u32,
    /// Flushed runs in level 0 that start a merge; 1 to 1000. Default: 4.
    pub l0_trigger: usize,
}

/// Limits of [`Layout::Geared`]. The defaults are those of LSbM's experiments (Teng et al., "LSbM-tree", section VI-A).
///
/// ```
/// use terrace::tree::Geared;
/// let small = Geared { level1_bytes: 16 << 20, ..Geared::default() };
/// assert_eq!((small.ratio, small.l0_trigger), (10, 1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geared {
    /// Bytes that both components of the first level may hold together; 4 KiB to 1 PiB. Default: 1000 MiB.
    pub level1_bytes: u64,
    /// How many times larger each further level may be; 2 to 100. Default: 10.
    pub ratio: u32,
    /// Flushed runs in level 0 that start a compaction; 1 to 1000. Default: 1.
    pub l0_trigger: usize,
}

impl Tiered {
    /// Leveling, by whole levels.
    pub const LEVELING: Self = Self { runs: 1, last_runs: 1, ..Self::TIERING };

    /// Tiering.
    pub const TIERING: Self =
        Self { level1_bytes: 10 << 20, ratio: 10, runs: 10, last_runs: 10, l0_trigger: 4 };

    /// Tiering above the last level, and one run in it.
    pub const LAZY_LEVELING: Self = Self { last_runs: 1, ..Self::TIERING };

    /// Tiering, and a last level that is merged only when it is full by its bytes.
    pub const STEPPED_MERGE: Self = Self { last_runs: 1000, ..Self::TIERING };
}

impl Default for Tiered {
    fn default() -> Self {
        Self::TIERING
    }
}

impl Default for Layout {
    fn default() -> Self {
        Self::Adaptive(Adaptive::default())
    }
}

impl Default for Adaptive {
    fn default() -> Self {
        Self { l0_bytes: 192 << 20, l0_runs: 3 }
    }
}

impl Default for Leveled {
    fn default() -> Self {
        Self { level1_bytes: 10 << 20, ratio: 10, l0_trigger: 4 }
    }
}

impl Default for Guarded {
    fn default() -> Self {
        Self { l0_trigger: 2, top_bits: 27, bits_step: 2, runs_max: 2, guard_bytes: 64 << 20 }
    }
}

impl Default for Prefixed {
    fn default() -> Self {
        Self { level1_bytes: 10 << 20, ratio: 10, l0_trigger: 4 }
    }
}

impl Default for Geared {
    fn default() -> Self {
        Self { level1_bytes: 1000 << 20, ratio: 10, l0_trigger: 1 }
    }
}

impl Layout {
    pub(super) fn validate(&self) -> Result<()> {
        let level_bytes = |name, bytes| range(name, bytes, 4 << 10, 1 << 50);
        let runs = |name, runs: usize| range(name, runs as u64, 1, 1000);
        match self {
            Self::Adaptive(Adaptive { l0_bytes, l0_runs }) | Self::Auto(Adaptive { l0_bytes, l0_runs }) => {
                level_bytes("tree.layout.l0_bytes", *l0_bytes)?;
                runs("tree.layout.l0_runs", *l0_runs)
            }
            Self::Leveled(Leveled { level1_bytes, ratio, l0_trigger })
            | Self::Prefixed(Prefixed { level1_bytes, ratio, l0_trigger })
            | Self::Geared(Geared { level1_bytes, ratio, l0_trigger }) => {
                level_bytes("tree.layout.level1_bytes", *level1_bytes)?;
                range("tree.layout.ratio", (*ratio).into(), 2, 100)?;
                runs("tree.layout.l0_trigger", *l0_trigger)
            }
            Self::Guarded(Guarded { l0_trigger, top_bits, bits_step, runs_max, guard_bytes }) => {
                runs("tree.layout.l0_trigger", *l0_trigger)?;
                range("tree.layout.bits_step", (*bits_step).into(), 1, 8)?;
                // In the deepest level not every key may be a guard.
                let least = u64::from(*bits_step) * (LEVELS as u64 - 1) + 1;
                range("tree.layout.top_bits", (*top_bits).into(), least, 63)?;
                range("tree.layout.runs_max", *runs_max as u64, 1, 100)?;
                level_bytes("tree.layout.guard_bytes", *guard_bytes)
            }
            Self::Tiered(Tiered { level1_bytes, ratio, runs: inner, last_runs, l0_trigger }) => {
                level_bytes("tree.layout.level1_bytes", *level1_bytes)?;
                range("tree.layout.ratio", (*ratio).into(), 2, 100)?;
                runs("tree.layout.runs", *inner as usize)?;
                runs("tree.layout.last_runs", *last_runs as usize)?;
                runs("tree.layout.l0_trigger", *l0_trigger)
            }
        }
    }
}
