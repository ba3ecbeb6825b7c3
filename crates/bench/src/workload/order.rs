//! The orders in which the papers run YCSB's phases.
//!
//! Workloads D and E insert, so both papers wipe the store before E: an order is a list of stores, each with its phases.

/// Phases by store; each begins with a load.
pub type Order = &'static [&'static [&'static str]];

/// BoLT, section 4.1: 50 million records, 10 million operations a phase, four threads.
pub const BOLT: Order = &[&["load", "a", "b", "c", "f", "d"], &["load", "e"]];

/// PTierDB, section IV: 100 million records, 100 million operations a phase.
pub const PTIER: Order = &[&["load", "a", "b", "c", "f", "d"], &["load", "e"]];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ycsb::workload::shipped;

    #[test]
    fn each_store_is_loaded_first_and_each_phase_is_a_shipped_one() {
        for order in [BOLT, PTIER] {
            for phases in order {
                assert_eq!(phases[0], "load");
                assert!(phases.iter().all(|phase| shipped(phase).unwrap().is_some()), "{phases:?}");
            }
            let mut all = order.concat();
            all.sort_unstable();
            assert_eq!(all, ["a", "b", "c", "d", "e", "f", "load", "load"]);
        }
    }
}
