//! Options of the placer: which of the devices of a store gets a table.

use super::range;
use crate::error::Result;

/// Which device gets a new table, where a store has several
/// ([`Builder::device`](crate::Builder::device)). With one device all are the same.
///
/// The fast device is the one that was measured to write fastest, the slow one the slowest. A device without room is passed
/// over.
///
/// ```
/// use terrace::tree::{Placer, Unit};
/// assert_eq!(Placer::default(), Placer::Heat { unit: Unit::Table });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Placer {
    /// All of them go to the directory of the store.
    Home,
    /// Every `n`-th goes to the slow device, the others to the fast one ("Improving Performance in LSM-Tree based Key-Value Stores
    /// using NVMe", section 3: Split-ModN).
    Mod {
        /// 2 to 1,000.
        n: u32,
        /// What is counted.
        unit: Unit,
    },
    /// The slow device gets so many of the bytes, the fast one the others: [`Placer::Mod`] by bytes.
    Weighted {
        /// Percent of the bytes for the slow device, 0 to 100.
        slow_percent: u8,
        /// What is dealt out.
        unit: Unit,
    },
    /// The upper levels go to the fast device, the others to the slow one (Chen et al., "SpanDB: A Fast, Cost-Effective LSM-tree
    /// Based KV Store on Hybrid Storage", FAST 2021, section 4.3).
    Level {
        /// The last level for the fast device, 0 to 6; with `adapt`, at first.
        upto: u8,
        /// Whether that level moves, once a second: up by one while more than 65 % of the bandwidth of the fast device is written to it,
        /// to none at last; down by one, to 4 at most, below 40 %. With less than an eighth of it free it is 1 at most, with
        /// less than a twelfth none.
        adapt: bool,
    },
    /// The device that is expected to have written it first: by what is still to be written there, by how fast it has been
    /// lately, and by whether readers wait for it.
    Dynamic {
        /// What is placed.
        unit: Unit,
    },
    /// As [`Placer::Dynamic`]. Besides, tables that users read much move to the device where reads take least, once that pays
    /// for the move, and what is read less makes room for them there.
    Heat {
        /// What is placed.
        unit: Unit,
    },
}

/// What is placed as a whole.
///
/// ```
/// use terrace::tree::Unit;
/// assert_eq!(Unit::default(), Unit::Table);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Unit {
    /// All tables of a flush or compaction.
    Job,
    /// Each table by itself: one job keeps all devices busy.
    #[default]
    Table,
}

impl Default for Placer {
    fn default() -> Self {
        Self::Heat { unit: Unit::Table }
    }
}

impl Placer {
    pub(super) fn validate(&self) -> Result<()> {
        match *self {
            Self::Home
            | Self::Dynamic { unit: Unit::Job | Unit::Table }
            | Self::Heat { unit: Unit::Job | Unit::Table } => Ok(()),
            Self::Mod { n, unit: Unit::Job | Unit::Table } => range("tree.placer n", u64::from(n), 2, 1000),
            Self::Weighted { slow_percent, unit: Unit::Job | Unit::Table } => {
                range("tree.placer slow_percent", u64::from(slow_percent), 0, 100)
            }
            Self::Level { upto, adapt: _ } => range("tree.placer upto", u64::from(upto), 0, LEVEL_MAX),
        }
    }
}

/// The deepest level.
const LEVEL_MAX: u64 = crate::types::LEVELS as u64 - 1;
