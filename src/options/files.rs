//! Options of files: how tables share packs and descriptors.

use super::range;
use crate::error::Result;

/// How tables share files and descriptors, on every device.
///
/// ```
/// use terrace::tree::{Descriptors, Files, PackLayout};
/// let leveldb = Files { packs: PackLayout::OneTable, descriptors: Descriptors::PerTable };
/// assert_ne!(leveldb, Files::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Files {
    /// How tables share files.
    pub packs: PackLayout,
    /// What descriptors are kept for; fixed while the store is open.
    pub descriptors: Descriptors,
}

/// How tables share files.
///
/// ```
/// use terrace::tree::PackLayout;
/// assert_eq!(PackLayout::default(), PackLayout::Many { bytes_max: 32 << 20 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PackLayout {
    /// A file for each table, synced by itself, as LevelDB does.
    OneTable,
    /// A file for all the tables of one flush or compaction, synced once (BoLT, section 3: compaction files). Its name
    /// is made durable before the job begins.
    Many {
        /// Size of a file beyond which a compaction or an ingest begins a new one, in bytes; 1 MiB to 4 GiB. A flush
        /// has one file, as large as its memtable. Default: 32 MiB.
        bytes_max: u64,
    },
}

/// What has a descriptor of its own among the open files that are kept at hand; their number is bounded.
///
/// ```
/// use terrace::tree::Descriptors;
/// assert_eq!(Descriptors::default(), Descriptors::PerPack);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Descriptors {
    /// A pack: its tables are read through one descriptor (BoLT, section 3: descriptor cache).
    #[default]
    PerPack,
    /// A table, as in LevelDB's table cache, though tables share a pack: each opens it again.
    PerTable,
}

impl Default for PackLayout {
    fn default() -> Self {
        Self::Many { bytes_max: 32 << 20 }
    }
}

impl Files {
    pub(super) fn validate(&self) -> Result<()> {
        let Self { packs, descriptors: Descriptors::PerPack | Descriptors::PerTable } = self;
        match packs {
            PackLayout::OneTable => Ok(()),
            PackLayout::Many { bytes_max } => {
                range("tree.files.packs bytes_max", *bytes_max, 1 << 20, 4 << 30)
            }
        }
    }
}
