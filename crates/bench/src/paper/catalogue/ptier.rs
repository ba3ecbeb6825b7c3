//! "PTierDB: Building Better Read-Write Cost Balanced Key-Value Stores for Small Data on SSD".

use crate::paper::experiment::{Experiment, State};
use crate::paper::figures::ptier;

const STORES: &str = "l_LSM, t_LSM, ll_LSM, PebblesDB, SILK, WiscKey, PTierDB";

const LAYOUTS: &str =
    "100 M random writes, then 100 M operations of YCSB A, records of 256 B, ratio 6, 1 thread";

const YCSB: &str =
    "YCSB, order load A B C F D, then load E; 100 M records of 16 + 100 B, 100 M operations a phase";

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "ptier-2a",
        title: "Amplifications and latency by layout",
        workload: LAYOUTS,
        configurations: "LevelDB, l_LSM, t_LSM, ll_LSM",
        metric: "amplification of writes, space, reads; mean latency",
        expected: "writes: l highest, t lowest, ll just above t; reads the reverse; latency of l worst",
        device: "datacenter-sata-ssd",
        scale: 64.0,
        state: State::Runs { figure: ptier::figure_2_left, missing: &[] },
    },
    Experiment {
        id: "ptier-2b",
        title: "Latencies of leveling and fragmented leveling",
        workload: LAYOUTS,
        configurations: "LevelDB, l_LSM",
        metric: "distribution of latencies",
        expected: "l_LSM better for about half of the operations, with a long tail",
        device: "datacenter-sata-ssd",
        scale: 64.0,
        state: State::Runs { figure: ptier::figure_2_right, missing: &[] },
    },
    Experiment {
        id: "ptier-6a",
        title: "Random writes by size of records",
        workload: "50 M random writes, 124 B to 1 KB",
        configurations: STORES,
        metric: "write throughput",
        expected: "WiscKey best; PTierDB near t and ll, above l and SILK",
        device: "datacenter-sata-ssd",
        scale: 64.0,
        state: State::Runs { figure: ptier::figure_6a, missing: &[] },
    },
    Experiment {
        id: "ptier-6b",
        title: "Random reads by size of records",
        workload: "50 M random reads, 124 B to 1 KB",
        configurations: STORES,
        metric: "read throughput",
        expected: "PTierDB best at 124 B and 1 KB; 1.5 to 2 times the others",
        device: "datacenter-sata-ssd",
        scale: 64.0,
        state: State::Runs { figure: ptier::figure_6b, missing: &[] },
    },
    Experiment {
        id: "ptier-7",
        title: "YCSB",
        workload: YCSB,
        configurations: STORES,
        metric: "mean latency",
        expected: "PTierDB lowest in all; 1.2 to 2.5 times against leveled stores",
        device: "datacenter-sata-ssd",
        scale: 64.0,
        state: State::Runs { figure: ptier::figure_7, missing: &[] },
    },
    Experiment {
        id: "ptier-table1",
        title: "Write amplification and size",
        workload: YCSB,
        configurations: STORES,
        metric: "write amplification; bytes on disk",
        expected: "25.34, 4.91, 7.3, 6.32, 17.54, 2.8, 12.34; 7.91, 14.84, 7.9, 12.7, 10.5, 27.2, 8.1 GB",
        device: "datacenter-sata-ssd",
        scale: 64.0,
        state: State::Runs { figure: ptier::table_1, missing: &[] },
    },
    Experiment {
        id: "ptier-1",
        title: "Write amplification against leveled stores (section I)",
        workload: YCSB,
        configurations: "PTierDB, leveled",
        metric: "write amplification",
        expected: "30 to 50 % lower",
        device: "datacenter-sata-ssd",
        scale: 64.0,
        state: State::Runs { figure: ptier::section_1, missing: &[] },
    },
    Experiment {
        id: "ptier-reads",
        title: "Reads after the load (ours)",
        workload: "reads alone after the load",
        configurations: "PTierDB",
        metric: "merges within a level, tables per lookup, latency over time",
        expected: "merges die out; one table per lookup in the deepest level",
        device: "datacenter-sata-ssd",
        scale: 64.0,
        state: State::Runs { figure: ptier::figure_reads, missing: &[] },
    },
    Experiment {
        id: "ptier-deletes",
        title: "Deletes (ours)",
        workload: "30 % deletes",
        configurations: "PTierDB, l_LSM, t_LSM",
        metric: "bytes on disk",
        expected: "PTierDB between; with a trigger on tombstones near l",
        device: "datacenter-sata-ssd",
        scale: 64.0,
        state: State::Runs { figure: ptier::figure_deletes, missing: &[] },
    },
    Experiment {
        id: "ptier-recency",
        title: "Which version is the newest (ours)",
        workload: "random prefixes against a model",
        configurations: "the paper's rule of epochs; closure",
        metric: "stale reads",
        expected: "above 0; 0",
        device: "datacenter-sata-ssd",
        scale: 64.0,
        state: State::Runs { figure: ptier::figure_recency, missing: &[] },
    },
];
