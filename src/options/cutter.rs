//! Options of the cutter: where one output table ends and the next begins.

use super::range;
use crate::error::Result;

/// Where the outputs of flushes and compactions are cut into tables.
///
/// ```
/// use terrace::tree::{Cutter, TableSize};
/// assert_eq!(Cutter::default(), Cutter::Size(TableSize::default()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cutter {
    /// By size, and earlier where a table overlaps much of the level after the next one (LevelDB: `ShouldStopBefore`).
    Size(TableSize),
    /// By size, and at the guards of the level that receives them (PebblesDB). For [`Layout::Guarded`](super::Layout::Guarded)
    /// alone.
    Guards(TableSize),
    /// Between two prefixes, once a table has its size (PTierDB, section III-B1: prefix-based data split). So a table holds whole
    /// prefixes, unless one alone has more than eight times that size, and no small rest is left. Prefixes are those of the
    /// keyspace ([`KeyspaceOptions::prefix`](crate::KeyspaceOptions::prefix)). Where it has no rule, a length is chosen for which
    /// most prefixes take up to a quarter of a table: at the opening, and again as the data grow.
    Prefix(TableSize),
}

/// How large tables are.
///
/// ```
/// use terrace::tree::{Flushes, TableSize};
/// let leveldb = TableSize { table_bytes: 2 << 20, flushes: Flushes::Whole };
/// assert_ne!(leveldb, TableSize::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableSize {
    /// Size of a table, in bytes; 1 KiB to 1 GiB. Smaller tables are compacted and cached in smaller pieces (BoLT,
    /// section 3: logical tables). Default: 1 MiB.
    pub table_bytes: u64,
    /// Whether flushes are cut as well.
    pub flushes: Flushes,
}

/// How a memtable is flushed.
///
/// ```
/// use terrace::tree::Flushes;
/// assert_eq!(Flushes::default(), Flushes::Cut);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Flushes {
    /// Into tables of about `table_bytes`, so that level 0 can be compacted by sections.
    #[default]
    Cut,
    /// Into one table, however large, as LevelDB and the authors of BoLT do.
    Whole,
}

impl Default for Cutter {
    fn default() -> Self {
        Self::Size(TableSize::default())
    }
}

impl Default for TableSize {
    fn default() -> Self {
        Self { table_bytes: 1 << 20, flushes: Flushes::Cut }
    }
}

impl Cutter {
    pub(super) fn validate(&self) -> Result<()> {
        match self {
            Self::Size(TableSize { table_bytes, flushes: Flushes::Cut | Flushes::Whole })
            | Self::Guards(TableSize { table_bytes, flushes: Flushes::Cut | Flushes::Whole })
            | Self::Prefix(TableSize { table_bytes, flushes: Flushes::Cut | Flushes::Whole }) => {
                range("tree.cutter.table_bytes", *table_bytes, 1 << 10, 1 << 30)
            }
        }
    }
}
