//! From what was counted in a phase to its figures.

use crate::closed::{BIN, Findings};
use crate::process::{Rest, Usage};
use crate::results::{DRAINED_OPS_PER_S, OPS_PER_S, PhaseResult, ROWS_PER_S};
use crate::scorecard::{Phase, Workload};
use crate::statistics::geometric_mean;
use crate::store::Durability;

/// Bins of a second.
const SECOND: usize = 1000 / BIN.as_millis() as usize;

/// Size of a page of the operating system.
const PAGE_BYTES: f64 = 4096.0;

/// Phases of which the geometric mean is reported, and its name.
const TOGETHER: ([&str; 3], &str) = (["ycsb-b", "ycsb-d", "ycsb-f"], "ycsb-bdf");

/// What was counted in a phase.
pub struct Phased<'a> {
    pub phase: &'a Phase,
    pub found: &'a Findings,
    pub before: Usage,
    /// Once the store was at rest again, if it was waited for.
    pub after: Usage,
    pub barriers: Option<u64>,
    pub rest: Option<Rest>,
    pub durability: Durability,
    pub record_bytes: u64,
    /// Whether memory was limited.
    pub limited: bool,
}

impl Phased<'_> {
    /// The figures.
    pub fn result(&self) -> PhaseResult {
        let (phase, found) = (self.phase, self.found);
        let writes = phase.work.writes();
        let mut result = PhaseResult::new(phase.name, writes.then_some(self.durability));
        // An operation is a key, or a scan.
        let width = phase.work.width() as f64;
        let operations = found.operations as f64 * width;
        if phase.workload != Workload::Tail {
            self.rates(&mut result, found.rate * width, operations);
        }
        let cpu = self.after.cpu - self.before.cpu;
        result.less("cpu", "us/op", cpu.as_secs_f64() * 1e6 / operations);
        if writes {
            self.writing(&mut result);
        } else if self.limited {
            let pages = (self.after.read_bytes - self.before.read_bytes) as f64 / PAGE_BYTES;
            result.less("pages read", "pages/op", pages / operations);
        }
        for (name, course) in [("read", &found.reads), ("write", &found.writes)] {
            let Some(percentiles) = course.all().percentiles() else { continue };
            for (quantile, micros) in [
                ("p50", percentiles.p50),
                ("p99", percentiles.p99),
                ("p99.9", percentiles.p999),
                ("p99.99", percentiles.p9999),
            ] {
                result.less(&format!("{name} {quantile}"), "us", micros);
            }
            result.latency.insert(name.to_owned(), percentiles);
            result.p99.insert(name.to_owned(), course.p99());
        }
        result.series.clone_from(&found.series);
        result
    }

    fn rates(&self, result: &mut PhaseResult, rate: f64, operations: f64) {
        let work = self.phase.work;
        if work.scans() {
            result.more(ROWS_PER_S, "rows/s", self.found.row_rate);
        } else {
            result.more(OPS_PER_S, "ops/s", rate);
        }
        if let Some(rest) = self.rest {
            let seconds = operations / rate + rest.time.as_secs_f64();
            result.more(DRAINED_OPS_PER_S, "ops/s", operations / seconds);
            if rest.cut_off {
                result.notes.push("was not at rest in time: its drained rate is too good".to_owned());
            }
        }
        if let Some((worst, variation)) = seconds(&self.found.series) {
            result.more("worst second", "ops/s", worst * work.width() as f64);
            result.less("variation", "ratio", variation);
        }
    }

    fn writing(&self, result: &mut PhaseResult) {
        let puts = self.found.effect.puts as f64;
        let user_bytes = puts * self.record_bytes as f64;
        let written = (self.after.written_bytes - self.before.written_bytes) as f64;
        result.less("write amplification", "ratio", written / user_bytes);
        let Some(barriers) = self.barriers else { return };
        if self.durability == Durability::Power {
            result.less("syncs", "1/op", barriers as f64 / puts);
        } else {
            result.less("syncs", "1/GB", barriers as f64 / (user_bytes / 1e9));
        }
    }
}

/// Operations in the worst second, and the coefficient of variation of the seconds; `None` of fewer than two whole ones.
fn seconds(series: &[u64]) -> Option<(f64, f64)> {
    // The last bin is not whole.
    let whole = &series[..series.len().saturating_sub(1)];
    let sums: Vec<f64> = whole.chunks_exact(SECOND).map(|second| second.iter().sum::<u64>() as f64).collect();
    if sums.len() < 2 {
        return None;
    }
    let count = sums.len() as f64;
    let mean = sums.iter().sum::<f64>() / count;
    let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / count;
    let worst = sums.iter().copied().fold(f64::INFINITY, f64::min);
    Some((worst, variance.sqrt() / mean))
}

/// Results that sum up several phases.
pub fn derive(results: &[PhaseResult]) -> Option<PhaseResult> {
    let (names, name) = TOGETHER;
    let of = |name: &&str| results.iter().find(|result| result.workload == **name);
    let parts: Vec<&PhaseResult> = names.iter().filter_map(of).collect();
    let rates: Vec<f64> = parts.iter().filter_map(|part| part.value(OPS_PER_S)).collect();
    if rates.len() < names.len() {
        return None;
    }
    let mut result = PhaseResult::new(name, parts[0].durability);
    result.more(OPS_PER_S, "ops/s", geometric_mean(rates));
    Some(result)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::scorecard::{Group, phases};
    use crate::work::Effect;

    fn usage(cpu_s: u64, written_bytes: u64, read_bytes: u64) -> Usage {
        Usage { cpu: Duration::from_secs(cpu_s), written_bytes, read_bytes }
    }

    fn found() -> Findings {
        Findings {
            rate: 1000.0,
            operations: 10_000,
            effect: Effect { puts: 10_000, ..Effect::default() },
            series: [vec![100; 10], vec![50; 10], vec![1]].concat(),
            ..Findings::new()
        }
    }

    fn result(workload: Workload, durability: Durability) -> PhaseResult {
        let group = workload.group();
        let phased = Phased {
            phase: &phases(group, &[workload])[0],
            found: &found(),
            before: usage(1, 0, 0),
            after: usage(3, 4_000_000, 40_960_000),
            barriers: Some(500),
            rest: Some(Rest { time: Duration::from_secs(10), cut_off: false }),
            durability,
            record_bytes: 100,
            limited: group == Group::Large,
        };
        phased.result()
    }

    fn assert_figures(result: &PhaseResult, expected: &[(&str, f64)]) {
        for &(metric, value) in expected {
            let got = result.value(metric).unwrap();
            assert!((got / value - 1.0).abs() < 1e-9, "{metric}: {got}, expected {value}");
        }
    }

    #[test]
    fn loads_count_rest_bytes_and_barriers() {
        let result = result(Workload::LoadR, Durability::Kill);
        assert_figures(
            &result,
            &[
                (OPS_PER_S, 1000.0),
                (DRAINED_OPS_PER_S, 500.0),
                ("cpu", 200.0),
                ("write amplification", 4.0),
                ("syncs", 500.0 / 0.001),
                ("worst second", 500.0),
                ("variation", 1.0 / 3.0),
            ],
        );
        assert_eq!(result.durability, Some(Durability::Kill));
    }

    #[test]
    fn synced_puts_count_barriers_per_put() {
        assert_figures(&result(Workload::Sync, Durability::Power), &[("syncs", 0.05)]);
    }

    #[test]
    fn batches_count_their_records() {
        let result = result(Workload::LoadS, Durability::Kill);
        assert_figures(&result, &[(OPS_PER_S, 100_000.0), ("worst second", 50_000.0), ("cpu", 2.0)]);
    }

    #[test]
    fn lookups_under_a_limit_count_pages_and_have_no_class() {
        let result = result(Workload::GetL, Durability::Kill);
        assert_figures(&result, &[("pages read", 1.0)]);
        assert_eq!((result.durability, result.value("write amplification")), (None, None));
    }

    #[test]
    fn a_mean_needs_all_of_its_parts() {
        let part = |name: &str, rate| {
            let mut part = PhaseResult::new(name, Some(Durability::Kill));
            part.more(OPS_PER_S, "ops/s", rate);
            part
        };
        let all = [part("ycsb-b", 1.0), part("ycsb-f", 10.0), part("ycsb-d", 100.0)];
        assert_figures(&derive(&all).unwrap(), &[(OPS_PER_S, 10.0)]);
        assert_eq!(derive(&all[..2]), None);
    }
}
