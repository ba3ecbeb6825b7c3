//! The retainer: decides what becomes of the inputs of a compaction once its outputs are installed.
//!
//! `Drop`: their extents go to the reclaimer with their last holder, as in LevelDB.

use crate::policy::plan::{Plan, PlanInput};

/// The retainers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retainer {
    /// Nothing is kept.
    Drop,
}

/// What becomes of a compacted table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It leaves the tree.
    Dropped,
}

impl Retainer {
    /// What becomes of `input` of `plan`.
    #[must_use]
    pub fn fate(&self, _plan: &Plan, _input: &PlanInput) -> Fate {
        match self {
            Self::Drop => Fate::Dropped,
        }
    }
}
