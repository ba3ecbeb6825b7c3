//! Options of the picker: what is compacted next.

use super::range;
use crate::error::Result;

/// Which tables a compaction takes together. With `Cursor` and `LeastOverlap`, that is about levels below level 0: level 0
/// is compacted by sections, oldest runs first.
///
/// ```
/// use terrace::tree::{Group, Picker};
/// assert_eq!(Picker::default(), Picker::Cursor(Group::default()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Picker {
    /// Neighbours in key order, round and round the level (LevelDB: `compact_pointer_`).
    Cursor(Group),
    /// Those that overlap the fewest bytes of the next level for each byte of their own, wherever they lie (BoLT,
    /// section 3.4); and an eighth of the group in key order, so that every table has its turn.
    LeastOverlap(Group),
    /// Neighbours that hold most for each byte of the next level that they overlap; of level 0 its oldest runs, all of them
    /// (HyperLevelDB: `PickCompaction`).
    RatioWindow(RatioWindow),
    /// What lies between two guards goes down together, the fullest first (PebblesDB: `PickCompactionForGuards`). Level 0 goes
    /// down as a whole. For [`Layout::Guarded`](super::Layout::Guarded) alone.
    Guards,
    /// Tables that overlap each other, directly or through others, are merged where they overlap much, and the others move
    /// (PTierDB, section III-B2: coexisted merge and move). In the largest level, tables are merged that readers ask often. Level 0
    /// goes down as a whole. For [`Layout::Prefixed`](super::Layout::Prefixed) alone.
    Components(Components),
    /// Whole levels: goes with [`Layout::Tiered`](super::Layout::Tiered), and with no other layout.
    Levels(Levels),
    /// The component of a level that goes down, in key order, a unit at a time (bLSM; LSbM-tree, algorithm 1). Goes with
    /// [`Layout::Geared`](super::Layout::Geared), and with no other layout.
    Drain(Drain),
}

/// HyperLevelDB's choice, [`Picker::RatioWindow`] (`db/version_set.cc`):
///
/// * Which level: level 0 if it is due and level 1 is not over its limit; else the first level that is due and not less full than
///   the next one.
/// * In level 0, its oldest runs as a whole.
/// * Below, all tables that overlap nothing of the next level move there at once. If there are none, that window of neighbours is
///   compacted that has most bytes for each byte that it overlaps; of equal windows the smaller one. If none is small enough, it is
///   the table that overlaps fewest tables.
///
/// ```
/// use terrace::tree::{Group, RatioWindow};
/// let hyper = RatioWindow::default();
/// assert_eq!((hyper.group, hyper.window_tables, hyper.oldest_runs), (Group::SINGLE, 16, 32));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RatioWindow {
    /// With [`Group::SINGLE`] windows of all sizes compete, which HyperLevelDB has them do. Otherwise those that are as large as
    /// a group allows (HyperBoLT). Default: [`Group::SINGLE`].
    pub group: Group,
    /// A window has, together with what it overlaps, fewer bytes than this many tables, or groups where these are larger; 2 to
    /// 1000. Default: 16.
    pub window_tables: u32,
    /// As many runs a compaction takes of level 0, at most; 1 to 10,000. Default: 32.
    pub oldest_runs: usize,
}

/// How much of a level is merged at a time.
///
/// ```
/// use terrace::tree::Levels;
/// assert_eq!(Levels::default(), Levels { part_bytes: 0 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Levels {
    /// Bytes of its level that a merge takes together, about; 0 to 4 GiB, 0 for the whole level, as the tiered stores of
    /// the literature have it. In parts, each merge is durable and gives back its space by itself, and several run at the
    /// same time. A part is larger where the tables that overlap each other are. Default: 0.
    pub part_bytes: u64,
}

/// How much of a component goes down at a time.
///
/// ```
/// use terrace::tree::Drain;
/// assert_eq!(Drain::default(), Drain { unit_bytes: 20 << 20 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drain {
    /// Bytes that a merge takes from its component, at most, but at least one table; 0 to 4 GiB. Default: 20 MiB, LSbM's
    /// super-file.
    pub unit_bytes: u64,
}

/// How many tables a compaction takes from its level, and what becomes of those that need no compaction.
///
/// ```
/// use terrace::tree::Group;
/// let paper = Group { bytes: 64 << 20, parts: 1, settle: true };
/// assert_eq!(Group::SINGLE, Group { bytes: 0, settle: false, ..paper });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// Bytes of its level that a compaction takes together, at most; 0 to 4 GiB, 0 for one table. Large groups mean
    /// few barriers; small ones need little space for inputs and outputs at the same time (BoLT, section 3: group
    /// compaction). Default: 16 MiB.
    pub bytes: u64,
    /// Below level 0, a group is at most one of this many equal parts of its level, but at least one table; 1 to 1000,
    /// 1 for no such bound. In a small level, a group of the whole level would be compacted with all of the next one.
    /// Default: 4.
    pub parts: u32,
    /// Whether each table of a group is judged by itself (BoLT, section 3.4: settled compaction). If so, tables that
    /// overlap nothing in the next level sink there unread, while the others are compacted; and tables of the next
    /// level that overlap none of the group stay as they are. Otherwise a group sinks as a whole or not at all, and is
    /// compacted with all that lies between its first key and its last. Default: true.
    pub settle: bool,
}

/// Which tables [`Picker::Components`] merges.
///
/// ```
/// use terrace::tree::Components;
/// // Tiering: all that overlaps is merged, and nothing but that.
/// let split = Components { moves: false, access_bytes: 0, ..Components::default() };
/// assert_ne!(split, Components::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Components {
    /// Whether tables that overlap little go down unread: one that overlaps none, and of two that overlap each other the two
    /// if one has a single prefix and the other has several. Otherwise all that overlaps is merged. Default: true.
    pub moves: bool,
    /// A table of the largest level is merged with those that overlap it once lookups have searched it this often: its size
    /// divided by this number of bytes, but at least `accesses_min` times; 1 KiB to 1 GiB, or 0 for never. Default: 16 KiB
    /// (LevelDB's seeks, `db/version_set.cc`).
    pub access_bytes: u64,
    /// A smaller table is searched this often before it is merged; 1 to 1,000,000. Default: 100 (LevelDB's `allowed_seeks`).
    pub accesses_min: u64,
    /// Bytes that one job takes of tables that overlap each other, about; 4 KiB to 1 TiB. A small number means jobs that take
    /// little space and time. A large one leaves fewer tables that overlap each other. Default: 256 MiB.
    pub job_bytes: u64,
}

impl Default for Components {
    fn default() -> Self {
        Self { moves: true, access_bytes: 16 << 10, accesses_min: 100, job_bytes: 256 << 20 }
    }
}

impl Group {
    /// One table for each compaction, as LevelDB has it.
    pub const SINGLE: Self = Self { bytes: 0, parts: 1, settle: false };
}

impl Default for Picker {
    fn default() -> Self {
        Self::Cursor(Group::default())
    }
}

impl Default for RatioWindow {
    fn default() -> Self {
        Self { group: Group::SINGLE, window_tables: 16, oldest_runs: 32 }
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self { unit_bytes: 20 << 20 }
    }
}

impl Default for Group {
    fn default() -> Self {
        Self { bytes: 16 << 20, parts: 4, settle: true }
    }
}

impl Picker {
    pub(super) fn validate(&self) -> Result<()> {
        match self {
            Self::Cursor(group) | Self::LeastOverlap(group) => group.validate(),
            Self::RatioWindow(RatioWindow { group, window_tables, oldest_runs }) => {
                group.validate()?;
                range("tree.picker.window_tables", (*window_tables).into(), 2, 1000)?;
                range("tree.picker.oldest_runs", *oldest_runs as u64, 1, 10_000)
            }
            Self::Guards => Ok(()),
            Self::Components(Components { moves: _, access_bytes, accesses_min, job_bytes }) => {
                if *access_bytes > 0 {
                    range("tree.picker.access_bytes", *access_bytes, 1 << 10, 1 << 30)?;
                }
                range("tree.picker.accesses_min", *accesses_min, 1, 1_000_000)?;
                range("tree.picker.job_bytes", *job_bytes, 4 << 10, 1 << 40)
            }
            Self::Drain(Drain { unit_bytes }) => range("tree.picker.unit_bytes", *unit_bytes, 0, 4 << 30),
            Self::Levels(Levels { part_bytes }) => range("tree.picker.part_bytes", *part_bytes, 0, 4 << 30),
        }
    }
}

impl Group {
    fn validate(&self) -> Result<()> {
        let Self { bytes, parts, settle: _ } = *self;
        range("tree.picker.bytes", bytes, 0, 4 << 30)?;
        range("tree.picker.parts", parts.into(), 1, 1000)
    }
}
