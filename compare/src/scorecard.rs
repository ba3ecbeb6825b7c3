//! The workloads: which phases each of them has, how long they may take, and which of them share a store.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use terrace_bench::ycsb::keys::InsertOrder;

use crate::store::{Direction, Durability};
use crate::work::{Choice, KEYS_AT_ONCE, Work};

/// A workload of the scorecard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Single puts of small records in random order
    LoadR,
    /// Batches of 100 small records in ascending order
    LoadS,
    /// Synced puts by 1, 4 and 8 threads
    Sync,
    /// Lookups of any key, a tenth of them absent, by 1 and by 2 threads, and 32 at once
    GetU,
    /// Lookups by popularity (YCSB C)
    GetZ,
    /// Short scans in both directions, and scans of everything
    Scan,
    /// Half reads, half updates
    YcsbA,
    /// 5 % updates; half read-modify-write; reads of the latest with 5 % inserts
    YcsbBdf,
    /// More lookups and scans: by 4 threads, of absent keys, 10 and 100 at once, of 1 and 1,000 rows; not of the scorecard
    Reads,
    /// Scans of up to 100 rows, 5 % inserts
    YcsbE,
    /// Updates of any of more large records than memory holds
    OverwriteL,
    /// Lookups of those
    GetL,
    /// Reads and writes that arrive whether or not the store is done with the last ones
    Tail,
}

/// Workloads that share a store, and so a turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    Small,
    Ascending,
    Synced,
    Large,
    Tail,
}

/// All groups, in the order of their turns.
pub const GROUPS: [Group; 5] = [Group::Small, Group::Ascending, Group::Synced, Group::Large, Group::Tail];

/// A phase of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Name in reports.
    pub name: &'static str,
    pub workload: Workload,
    pub work: Work,
    pub choice: Choice,
    pub threads: usize,
    /// Time that it may take, at full length.
    pub seconds: f64,
    /// Whether each operation is timed.
    pub timed: bool,
}

impl Workload {
    /// The turn that it is a part of.
    pub fn group(self) -> Group {
        match self {
            Self::LoadS => Group::Ascending,
            Self::Sync => Group::Synced,
            Self::OverwriteL | Self::GetL => Group::Large,
            Self::Tail => Group::Tail,
            _ => Group::Small,
        }
    }

    /// Those of the scorecard.
    pub fn scorecard() -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|&workload| workload != Self::Reads).collect()
    }

    /// Those of the quick run.
    pub fn quick() -> Vec<Self> {
        vec![Self::LoadR, Self::Sync, Self::GetU, Self::Scan, Self::YcsbA, Self::OverwriteL]
    }
}

impl Group {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Ascending => "ascending",
            Self::Synced => "synced",
            Self::Large => "large",
            Self::Tail => "tail",
        }
    }

    /// What writes are to survive.
    pub fn durability(self) -> Durability {
        if self == Self::Synced { Durability::Power } else { Durability::Kill }
    }

    /// Order of the keys by the numbers of their records.
    pub fn order(self) -> InsertOrder {
        if self == Self::Ascending { InsertOrder::Ordered } else { InsertOrder::Hashed }
    }

    /// Whether its records are the large ones, and its memory limited.
    pub fn large(self) -> bool {
        self == Self::Large
    }

    /// Whether its store holds all records before its phases, but a load, begin.
    pub fn filled(self) -> bool {
        !matches!(self, Self::Ascending | Self::Synced)
    }
}

/// The phases of `workloads` that belong to `group`, in their order.
pub fn phases(group: Group, workloads: &[Workload]) -> Vec<Phase> {
    let chosen = |phase: &&Phase| phase.workload.group() == group && workloads.contains(&phase.workload);
    PHASES.iter().filter(chosen).copied().collect()
}

const UNIFORM: Choice = Choice::Uniform;
const ZIPFIAN: Choice = Choice::Zipfian;
const FORWARD: Direction = Direction::Forward;
const BACKWARD: Direction = Direction::Backward;

/// Reads, and so many percent of updates, of read-modify-writes and of inserts.
const fn mix(updates: u64, modifies: u64, inserts: u64) -> Work {
    Work::Mix { updates, modifies, inserts }
}

const fn phase(
    name: &'static str,
    workload: Workload,
    work: Work,
    choice: Choice,
    threads: usize,
    seconds: f64,
) -> Phase {
    Phase { name, workload, work, choice, threads, seconds, timed: false }
}

const fn timed(phase: Phase) -> Phase {
    Phase { timed: true, ..phase }
}

/// All phases, those of a group in the order in which they run.
#[rustfmt::skip]
const PHASES: &[Phase] = &[
    timed(phase("load-r", Workload::LoadR, Work::Load, UNIFORM, 1, 60.0)),
    phase("get-u-1", Workload::GetU, Work::Gets { absent: 10 }, UNIFORM, 1, 5.0),
    phase("get-u-2", Workload::GetU, Work::Gets { absent: 10 }, UNIFORM, 2, 5.0),
    phase("multiget-u", Workload::GetU, Work::MultiGets { keys: KEYS_AT_ONCE }, UNIFORM, 2, 5.0),
    phase("get-z", Workload::GetZ, Work::Gets { absent: 0 }, ZIPFIAN, 2, 10.0),
    phase("scan-10", Workload::Scan, Work::Scans { rows: 10, direction: FORWARD }, UNIFORM, 2, 4.0),
    phase("scan-100", Workload::Scan, Work::Scans { rows: 100, direction: FORWARD }, UNIFORM, 2, 4.0),
    phase("scan-100-back", Workload::Scan, Work::Scans { rows: 100, direction: BACKWARD }, UNIFORM, 2, 3.0),
    phase("scan-full", Workload::Scan, Work::FullScans, UNIFORM, 1, 4.0),
    phase("get-u-4", Workload::Reads, Work::Gets { absent: 10 }, UNIFORM, 4, 4.0),
    phase("get-absent", Workload::Reads, Work::Gets { absent: 100 }, UNIFORM, 2, 4.0),
    phase("multiget-10", Workload::Reads, Work::MultiGets { keys: 10 }, UNIFORM, 2, 4.0),
    phase("multiget-100", Workload::Reads, Work::MultiGets { keys: 100 }, UNIFORM, 2, 4.0),
    phase("scan-1", Workload::Reads, Work::Scans { rows: 1, direction: FORWARD }, UNIFORM, 2, 4.0),
    phase("scan-1000", Workload::Reads, Work::Scans { rows: 1000, direction: FORWARD }, UNIFORM, 2, 4.0),
    timed(phase("ycsb-a", Workload::YcsbA, mix(50, 0, 0), ZIPFIAN, 2, 20.0)),
    timed(phase("ycsb-b", Workload::YcsbBdf, mix(5, 0, 0), ZIPFIAN, 2, 8.0)),
    timed(phase("ycsb-f", Workload::YcsbBdf, mix(0, 50, 0), ZIPFIAN, 2, 8.0)),
    timed(phase("ycsb-d", Workload::YcsbBdf, mix(0, 0, 5), Choice::Latest, 2, 8.0)),
    timed(phase("ycsb-e", Workload::YcsbE, Work::ScanMix { inserts: 5 }, ZIPFIAN, 2, 15.0)),
    phase("load-s", Workload::LoadS, Work::LoadBatches, UNIFORM, 1, 15.0),
    timed(phase("sync-1", Workload::Sync, mix(0, 0, 100), UNIFORM, 1, 6.0)),
    timed(phase("sync-4", Workload::Sync, mix(0, 0, 100), UNIFORM, 4, 6.0)),
    timed(phase("sync-8", Workload::Sync, mix(0, 0, 100), UNIFORM, 8, 6.0)),
    timed(phase("overwrite-l", Workload::OverwriteL, mix(100, 0, 0), UNIFORM, 2, 25.0)),
    phase("get-l", Workload::GetL, Work::Gets { absent: 0 }, UNIFORM, 2, 5.0),
    phase("get-l-zipf", Workload::GetL, Work::Gets { absent: 0 }, ZIPFIAN, 2, 5.0),
    phase("multiget-l", Workload::GetL, Work::MultiGets { keys: KEYS_AT_ONCE }, UNIFORM, 2, 5.0),
    timed(phase("tail", Workload::Tail, mix(50, 0, 0), ZIPFIAN, 2, 40.0)),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_workload_has_phases_and_every_phase_a_name_of_its_own() {
        let all = Workload::value_variants();
        assert_eq!((all.len(), Workload::scorecard().len()), (13, 12));
        let in_groups: Vec<Phase> = GROUPS.iter().flat_map(|&group| phases(group, all)).collect();
        assert_eq!(in_groups.len(), PHASES.len());
        let covered: BTreeSet<Workload> = in_groups.iter().map(|phase| phase.workload).collect();
        assert_eq!(covered.len(), 13);
        let names: BTreeSet<&str> = in_groups.iter().map(|phase| phase.name).collect();
        assert_eq!(names.len(), PHASES.len());
    }

    #[test]
    fn loads_have_one_thread_and_come_first() {
        for group in GROUPS {
            let phases = phases(group, Workload::value_variants());
            for (index, phase) in phases.iter().enumerate().filter(|(_, phase)| phase.work.loads()) {
                assert_eq!((index, phase.threads), (0, 1));
            }
        }
    }
}
