//! The phases of YCSB, as actions of clients in a closed loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::generator::{Rng, ScrambledZipfian, Zipfian};
use crate::workload::Action;

/// Rows of a scan, at most.
const SCAN_ROWS: u64 = 100;

/// YCSB's skew.
const THETA: f64 = 0.99;

/// A data set at the scale of a run.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) records: u64,
    /// Of each phase after the load.
    pub(super) operations: u64,
    /// Whether all records are equally popular.
    pub(super) uniform: bool,
    pub(super) seed: u64,
}

/// What clients do in a phase.
pub(super) struct Draw {
    pub(super) action: Arc<super::Draw>,
    pub(super) actions: u64,
    pub(super) operations: u64,
}

/// The phase of that name; `inserted` counts the records that there are.
pub(super) fn draw(phase: &str, size: Size, inserted: &Arc<AtomicU64>) -> Draw {
    let Size { records, operations, uniform, seed } = size;
    let popular = ScrambledZipfian::new(0, records);
    let any = Arc::new(move |rng: &mut Rng| if uniform { rng.below(records) } else { popular.next(rng) });
    let inserted = inserted.clone();
    let insert = {
        let inserted = inserted.clone();
        move || Action::Put(inserted.fetch_add(1, Ordering::Relaxed))
    };
    let mixed = |action| Draw { action, actions: operations, operations };
    let updates = |percent: u64| -> Arc<super::Draw> {
        let any = any.clone();
        Arc::new(move |_, rng| {
            let record = any(rng);
            if rng.below(100) < percent { Action::Put(record) } else { Action::Get(record) }
        })
    };
    match phase {
        "load" => {
            Draw { action: Arc::new(|number, _| Action::Put(number)), actions: records, operations: records }
        }
        "a" => mixed(updates(50)),
        "b" => mixed(updates(5)),
        "c" => mixed(updates(0)),
        "d" => {
            let ages = Zipfian::new(records, THETA);
            mixed(Arc::new(move |_, rng| match rng.below(100) {
                0..5 => insert(),
                _ => Action::Get(inserted.load(Ordering::Relaxed).saturating_sub(1 + ages.next(rng))),
            }))
        }
        "e" => mixed(Arc::new(move |_, rng| match rng.below(100) {
            0..5 => insert(),
            _ => Action::Scan { from: any(rng), records: 1 + rng.below(SCAN_ROWS) },
        })),
        // Half of the operations read, half write what they have read: three actions in two operations.
        _ => Draw {
            action: Arc::new(move |number, _| {
                let (pair, action) = (number / 3, number % 3);
                let record = any(&mut Rng::stream(seed, 2 * pair + action.min(1)));
                if action == 2 { Action::Put(record) } else { Action::Get(record) }
            }),
            actions: operations / 2 * 3,
            operations,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_does_what_ycsb_says() {
        let size = Size { records: 1000, operations: 600, uniform: false, seed: 1 };
        for (phase, shares) in [
            ("load", [0.0, 1.0, 0.0]),
            ("a", [0.5, 0.5, 0.0]),
            ("b", [0.95, 0.05, 0.0]),
            ("c", [1.0, 0.0, 0.0]),
            ("d", [0.95, 0.05, 0.0]),
            ("e", [0.0, 0.05, 0.95]),
            ("f", [2.0 / 3.0, 1.0 / 3.0, 0.0]),
        ] {
            let draw = draw(phase, size, &Arc::new(AtomicU64::new(1000)));
            let mut rng = Rng::new(1);
            let mut found = [0.0; 3];
            for number in 0..draw.actions {
                let kind = match (draw.action)(number, &mut rng) {
                    Action::Get(_) => 0,
                    Action::Put(_) | Action::Delete(_) => 1,
                    Action::Scan { .. } => 2,
                };
                found[kind] += 1.0 / draw.actions as f64;
            }
            for (found, share) in found.iter().zip(shares) {
                assert!((found - share).abs() < 0.06, "{phase}: {found} for {share}");
            }
        }
    }

    #[test]
    fn what_is_written_in_f_has_just_been_read() {
        let size = Size { records: 1000, operations: 600, uniform: true, seed: 1 };
        let draw = draw("f", size, &Arc::new(AtomicU64::new(1000)));
        for pair in 0..100 {
            let action = |at: u64| (draw.action)(3 * pair + at, &mut Rng::new(7));
            let Action::Get(read) = action(1) else { panic!("nothing is read first") };
            assert_eq!(action(2), Action::Put(read));
        }
    }
}
