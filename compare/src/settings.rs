//! What a run measures: engines, workloads, sizes, and how much of their full time the phases get.

use serde::{Deserialize, Serialize};

use crate::records::KEY_BYTES;
use crate::scorecard::{GROUPS, Group, Workload, phases};
use crate::store::{Engine, Opening};

/// Size of a large value.
const LARGE_VALUE_BYTES: usize = 1024;

/// Least memory of the turns whose data is to be larger than it.
const LIMIT_BYTES_MIN: u64 = 256 << 20;

/// The part of its full time that a phase gets at least.
const SCALE_MIN: f64 = 0.02;

/// Microseconds to fill in a record, and more for each of its bytes.
const FILLING_US: (f64, f64) = (0.5, 0.0037);

/// Seconds around every turn, for calibration, checks and removal, and more for each phase that writes, to come to rest.
const AROUND_S: (f64, f64) = (3.0, 2.5);

/// Time to wait for the work of the background after a phase, at full length.
const DRAIN_S: f64 = 15.0;

/// About how long a turn of the empty engine takes.
pub const EMPTY_S: f64 = 4.0;

/// What determines a run; two runs with the same are comparable turn by turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Settings {
    pub engines: Vec<Engine>,
    pub workloads: Vec<Workload>,
    pub rounds: usize,
    /// Small records.
    pub records: u64,
    /// Size of their values.
    pub value_bytes: usize,
    /// Large ones.
    pub large_records: u64,
    /// Threads of `load-r`.
    pub load_threads: usize,
    /// Cache of the stores whose memory is not limited; what suits their data if there is none.
    pub cache_bytes: Option<u64>,
    pub seed: u64,
    /// Time for the whole run.
    pub seconds: f64,
    /// Share of its full time that each phase gets.
    pub scale: f64,
    /// Change of a calibration, as a share, that voids a turn.
    pub drift_max: f64,
    /// Share of stolen processor time that voids a turn.
    pub steal_max: f64,
    /// Times that a void turn is repeated, while there is time.
    pub retries: usize,
    /// Arrivals per second in the tail workload, reads and writes; found out in the first round if there are none.
    pub tail_rates: Option<(f64, f64)>,
}

impl Settings {
    /// Sets the scale so that the run takes about `seconds`, unless its phases are done before.
    pub fn fit(&mut self, seconds: f64) {
        self.seconds = seconds;
        let turns = (self.engines.len() * self.rounds) as f64;
        let sum = |of: &dyn Fn(Group) -> f64| self.groups().into_iter().map(of).sum::<f64>() * turns;
        let timed = sum(&|group| self.timed_s(group));
        let fixed = sum(&|group| self.fixed_s(group)) + EMPTY_S * self.groups().len() as f64;
        self.scale = ((seconds - fixed) / timed).clamp(SCALE_MIN, 1.0);
    }

    /// The groups that have phases.
    pub fn groups(&self) -> Vec<Group> {
        GROUPS.into_iter().filter(|&group| !phases(group, &self.workloads).is_empty()).collect()
    }

    /// About how long a turn of an engine takes.
    pub fn turn_s(&self, group: Group) -> f64 {
        self.timed_s(group) * self.scale + self.fixed_s(group)
    }

    fn timed_s(&self, group: Group) -> f64 {
        phases(group, &self.workloads).iter().map(|phase| phase.seconds).sum()
    }

    /// Estimated for an engine in the middle of the field, by the turns of the scorecard in `docs/benchmarks`, which took
    /// 56 s for each engine and round beside what was timed; some more than that here, so that rests can be longer.
    fn fixed_s(&self, group: Group) -> f64 {
        let writing = phases(group, &self.workloads).iter().filter(|phase| phase.work.writes()).count();
        let (record, byte) = if group.filled() { FILLING_US } else { (0.0, 0.0) };
        let filling_us = self.records_of(group) as f64 * record + self.data_bytes(group) as f64 * byte;
        AROUND_S.0 + AROUND_S.1 * writing as f64 + filling_us / 1e6
    }

    /// Records of the data set of `group`.
    pub fn records_of(&self, group: Group) -> u64 {
        if group.large() { self.large_records } else { self.records }
    }

    /// Size of the values of `group`.
    pub fn value_bytes_of(&self, group: Group) -> usize {
        if group.large() { LARGE_VALUE_BYTES } else { self.value_bytes }
    }

    /// The records that are used, and who loads them, in words.
    pub fn data(&self) -> String {
        let mut sets: Vec<String> = Vec::new();
        for group in self.groups() {
            let (records, value_bytes) = (self.records_of(group), self.value_bytes_of(group));
            let set = format!("{records} records of {KEY_BYTES} + {value_bytes} bytes");
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        if self.load_threads > 1 && self.workloads.contains(&Workload::LoadR) {
            sets.push(format!("load-r by {} threads", self.load_threads));
        }
        if let Some(bytes) = self.cache_bytes {
            sets.push(format!("a cache of {bytes} bytes"));
        }
        sets.join(", ")
    }

    /// Bytes of keys and values of the data set of `group`.
    fn data_bytes(&self, group: Group) -> u64 {
        self.records_of(group) * (KEY_BYTES + self.value_bytes_of(group)) as u64
    }

    /// Memory that a turn of `group` may use, page cache included, if it is limited: a quarter of its data.
    pub fn limit_bytes(&self, group: Group) -> Option<u64> {
        group.large().then(|| (self.data_bytes(group) / 4).max(LIMIT_BYTES_MIN))
    }

    /// How the stores of `group` are opened. Twice the data fits in the cache, at most 3.75 GiB, unless it is given; a quarter of
    /// the limit where there is one.
    pub fn opening(&self, group: Group) -> Opening {
        let (cache, memtable) = match self.limit_bytes(group) {
            None => {
                let twice = (2 * self.data_bytes(group)).clamp(64 << 20, 3840 << 20);
                (self.cache_bytes.unwrap_or(twice), 64 << 20)
            }
            Some(limit) => (limit / 4, limit / 16),
        };
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Opening { cache_bytes: bytes(cache), memtable_bytes: bytes(memtable), durability: group.durability() }
    }

    /// Time to wait for the work of the background after a phase.
    pub fn drain_s(&self) -> f64 {
        (DRAIN_S * self.scale).max(3.0)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn full() -> Settings {
        Settings {
            engines: vec![Engine::Terrace, Engine::Lmdb],
            workloads: Workload::scorecard(),
            rounds: 2,
            records: 10_000_000,
            value_bytes: 100,
            large_records: 4_000_000,
            load_threads: 1,
            cache_bytes: None,
            seed: 1,
            seconds: f64::MAX,
            scale: 1.0,
            drift_max: 0.1,
            steal_max: 0.02,
            retries: 1,
            tail_rates: None,
        }
    }

    #[test]
    fn a_run_fits_its_time() {
        let mut settings = full();
        settings.fit(800.0);
        let turns: f64 = settings.groups().into_iter().map(|group| settings.turn_s(group)).sum();
        let all = turns * 4.0 + EMPTY_S * 5.0;
        assert!((all - 800.0).abs() < 1.0, "{turns} s for each engine and round, {all} s in all");
        settings.fit(1e9);
        assert!((settings.scale - 1.0).abs() < 1e-12, "no phase takes longer than its full time");
        settings.fit(0.0);
        assert!(settings.scale >= SCALE_MIN);
    }

    #[test]
    fn large_data_is_four_times_its_memory() {
        let settings = full();
        let limit = settings.limit_bytes(Group::Large).unwrap();
        assert_eq!(limit, 4_000_000 * 1040 / 4);
        assert!((settings.opening(Group::Large).memory_bytes() as u64) < limit / 2);
        assert_eq!(settings.limit_bytes(Group::Small), None);
        assert!(settings.opening(Group::Small).cache_bytes as u64 > 10_000_000 * 116);
    }

    #[test]
    fn the_size_of_the_small_values_sets_caches_and_estimates_and_is_told() {
        let small = Settings { records: 1_000_000, ..full() };
        let wide = Settings { value_bytes: 1024, load_threads: 2, ..small.clone() };
        assert_eq!(small.opening(Group::Small).cache_bytes, 2 * 116_000_000);
        assert_eq!(wide.opening(Group::Small).cache_bytes, 2 * 1_040_000_000);
        assert!(wide.turn_s(Group::Small) > small.turn_s(Group::Small) + 3.0);
        assert_eq!(wide.limit_bytes(Group::Large), small.limit_bytes(Group::Large));
        let large = "4000000 records of 16 + 1024 bytes";
        assert_eq!(small.data(), format!("1000000 records of 16 + 100 bytes, {large}"));
        assert_eq!(wide.data(), format!("1000000 records of 16 + 1024 bytes, {large}, load-r by 2 threads"));
        let given = Settings { cache_bytes: Some(64 << 20), ..small.clone() };
        assert_eq!(given.opening(Group::Small).cache_bytes, 64 << 20);
        assert_eq!(given.opening(Group::Large).cache_bytes, small.opening(Group::Large).cache_bytes);
        assert_eq!(given.data(), format!("{}, a cache of 67108864 bytes", small.data()));
    }
}
