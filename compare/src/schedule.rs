//! The order of the turns: group by group, the engines one after the other, in every other round in the opposite order, so
//! that what drifts on the machine hits all alike (A B, B A).

use serde::{Deserialize, Serialize};

use crate::scorecard::Group;
use crate::settings::Settings;
use crate::store::Engine;

/// Which turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Slot {
    /// From 0.
    pub round: usize,
    pub group: Group,
    pub engine: Engine,
}

/// All turns of a run, in their order. The empty engine has its turns in the first round alone.
pub fn slots(settings: &Settings) -> Vec<Slot> {
    let mut slots = Vec::new();
    for round in 0..settings.rounds {
        for group in settings.groups() {
            let mut engines = settings.engines.clone();
            if round % 2 == 1 {
                engines.reverse();
            }
            if round == 0 {
                engines.insert(0, Engine::Empty);
            }
            slots.extend(engines.into_iter().map(|engine| Slot { round, group, engine }));
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorecard::Workload;
    use crate::settings::tests::full;

    #[test]
    fn engines_alternate_within_each_group() {
        let engines = vec![Engine::Terrace, Engine::Rocksdb, Engine::Lmdb];
        let workloads = vec![Workload::LoadS, Workload::YcsbA];
        let settings = Settings { engines, workloads, rounds: 3, ..full() };
        let slots = slots(&settings);
        let of = |round, group| {
            let there = slots.iter().filter(|slot| (slot.round, slot.group) == (round, group));
            there.map(|slot| slot.engine).filter(|&engine| engine != Engine::Empty).collect::<Vec<_>>()
        };
        let (terrace, rocksdb, lmdb) = (Engine::Terrace, Engine::Rocksdb, Engine::Lmdb);
        for group in [Group::Small, Group::Ascending] {
            assert_eq!(of(0, group), [terrace, rocksdb, lmdb]);
            assert_eq!(of(1, group), [lmdb, rocksdb, terrace]);
            assert_eq!(of(2, group), [terrace, rocksdb, lmdb]);
        }
        assert_eq!(slots.len(), 3 * 2 * 3 + 2);
        assert!(slots.is_sorted_by_key(|slot| (slot.round, slot.group)));
    }
}
