//! A plan: what a job is to do, as a plain value.

use std::fmt;

use crate::types::{DeviceId, Key, KeyRange, KeyspaceId, TableId};

/// One background change of one tree: tables to compact into the next level, tables to move there unread, or both at
/// once. Or a change within one level: tables of level 0 to compact into one of its runs; tables of which much has
/// expired or is released to compact alone; runs of any level to merge into one; tables to drop, for all of them has expired, is deleted or is hidden; tables to copy to another
/// place on the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Whose tree.
    pub keyspace: KeyspaceId,
    /// What is to be done.
    pub kind: PlanKind,
    /// Level whose excess, or whose request, is the reason.
    pub source: u8,
    /// Level that receives the outputs.
    pub target: u8,
    /// Whether what arrives in the target lies on top of what is there. If so, outputs and moved tables get new epochs,
    /// in the order of their ages. Otherwise they overlap no table that stays.
    pub stacks: bool,
    /// Which epoch outputs have that are not on top of the target.
    pub age: OutputAge,
    /// Tables to compact: of the source level, then of the target level, newest run first, in key order. Of a rewrite,
    /// the tables to copy. Source and target are the same level in an intra-L0 compaction, in a compaction of tables
    /// alone, in a drop and in a rewrite.
    pub inputs: Vec<PlanInput>,
    /// Tables of the source level that go to the target as they are, in key order.
    pub moves: Vec<TableId>,
    /// Keys before which outputs are cut, ascending. Around each, between inputs, lie tables that the plan moves or
    /// leaves in the target; or, in an intra-L0 compaction, keys that its outputs are to leave to others.
    pub fences: Vec<Key>,
    /// Hull of all tables concerned.
    pub range: KeyRange,
    /// What the plan claims in the source and in the target level: disjoint ranges, ascending, in which all tables
    /// concerned and all outputs lie.
    pub claims: Vec<KeyRange>,
    /// Length of all tables concerned, in bytes.
    pub bytes: u64,
    /// New cursor of the source level; `None` leaves it.
    pub cursor: Option<Key>,
    /// Why.
    pub reason: Reason,
}

/// What a plan does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanKind {
    /// Inputs are read and written anew; what moves does so in the same edit.
    Compact,
    /// Metadata alone: tables change their level.
    Move,
    /// Metadata alone: inputs go, for nothing of them is alive, or newer tables hide them.
    Drop,
    /// Inputs are copied as they are, so that nothing is left of the packs that they lie in.
    Rewrite,
    /// Inputs are copied as they are to this device.
    Relocate(DeviceId),
}

/// Which epoch of its inputs a compaction gives to its outputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputAge {
    /// The highest. No table that stays in the target is of middle age: inputs are convex, or overlap nothing there.
    Newest,
    /// The lowest. All that stays in the target and overlaps an input is newer than it: inputs are downward closed.
    Oldest,
}

/// A table to compact, or to copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanInput {
    /// The level that it is in.
    pub level: u8,
    /// The table.
    pub table: TableId,
}

/// Why a plan was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Level 0 has as many runs as the layout allows, or as many bytes.
    Level0Runs,
    /// The level has as many bytes as the layout allows.
    LevelBytes,
    /// A level below level 0 has as many runs as the layout allows.
    LevelRuns,
    /// A level that is to have one run has several, and no compaction waits for the fold.
    Fold,
    /// Level 0 has many runs, and the pacer lets none of it be compacted away: flushed ones become one.
    Part,
    /// Readers have paid for fewer runs in level 0.
    Readers,
    /// Lookups search tables of the largest level often that overlap each other.
    Searched,
    /// Tables hold many tombstones, and others in the same level or the next one what they hide.
    Tombstones,
    /// Nobody is there.
    Idle,
    /// Values have expired.
    Expiry,
    /// A range delete hides all of it.
    Deleted,
    /// Newer tables have every key.
    Hidden,
    /// Readers have gone for whom tables hold much.
    Released,
    /// Value tables hold much that is dead and cannot be punched.
    Values,
    /// Packs hold little that lives.
    DeadSpace,
    /// Users read it much, and reads wait less elsewhere.
    Read,
    /// Users read others more, for which there is no room.
    Room,
    /// The user asked for it.
    Manual,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Level0Runs => "level 0 runs",
            Self::LevelBytes => "level bytes",
            Self::LevelRuns => "level runs",
            Self::Fold => "fold",
            Self::Part => "part",
            Self::Readers => "readers",
            Self::Searched => "searched",
            Self::Tombstones => "tombstones",
            Self::Idle => "idle",
            Self::Expiry => "expiry",
            Self::Deleted => "deleted",
            Self::Hidden => "hidden",
            Self::Released => "released",
            Self::Values => "values",
            Self::DeadSpace => "dead space",
            Self::Read => "read",
            Self::Room => "room",
            Self::Manual => "manual",
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keyspace, source, target, range, bytes, reason, .. } = self;
        let onto = if self.stacks { "+" } else { "" };
        let kind = match self.kind {
            PlanKind::Compact => "compact",
            PlanKind::Move => "move",
            PlanKind::Drop => "drop",
            PlanKind::Rewrite => "rewrite",
            PlanKind::Relocate(_) => "relocate",
        };
        write!(f, "{kind} {keyspace:?} L{source}->{onto}L{target} {range} {bytes}B")?;
        let mut level = None;
        for input in &self.inputs {
            if level.replace(input.level) == Some(input.level) {
                write!(f, ",{:?}", input.table)?;
            } else {
                write!(f, " L{}:{:?}", input.level, input.table)?;
            }
        }
        for table in &self.moves {
            write!(f, " move:{table:?}")?;
        }
        for fence in &self.fences {
            write!(f, " cut:{}", fence.escape_ascii())?;
        }
        write!(f, " ({reason})")
    }
}
