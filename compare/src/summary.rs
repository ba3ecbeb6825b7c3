//! From the measurements of all rounds to tables: rates as geometric means, latencies as medians, and what Terrace
//! reaches of each peer's rate, round by round.

use std::collections::BTreeMap;

use terrace_bench::report::{LatencySummary, table};

use crate::job::Measurement;
use crate::store::Engine;

/// One measurement in a line, to be watched as it comes.
pub fn line(one: &Measurement) -> String {
    format!(
        "{:8} {:11} {:>9.0} ops/s, {:>9.0} drained, {:6.2} us CPU per operation",
        one.engine.name(),
        one.phase,
        one.ops_per_s,
        one.drained_ops_per_s,
        one.cpu_us_per_op
    )
}

/// The tables.
pub fn text(rounds: &[Vec<Measurement>]) -> String {
    let groups = groups(rounds);
    let mut parts = vec![figures(&groups), latencies(&groups)];
    if groups.iter().any(|group| group.engine == Engine::Terrace) {
        parts.push(ratios(&groups));
    }
    parts.join("\n")
}

/// The measurements of one engine in one phase, a round each.
struct Group<'a> {
    phase: &'a str,
    engine: Engine,
    rounds: Vec<&'a Measurement>,
}

/// Phase by phase, in the order of the first round.
fn groups(rounds: &[Vec<Measurement>]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for one in rounds.iter().flatten() {
        match groups.iter_mut().find(|group| (group.phase, group.engine) == (&one.phase, one.engine)) {
            Some(group) => group.rounds.push(one),
            None => groups.push(Group { phase: &one.phase, engine: one.engine, rounds: vec![one] }),
        }
    }
    let phases: Vec<&str> = groups.iter().map(|group| group.phase).collect();
    groups.sort_by_key(|group| phases.iter().position(|&phase| phase == group.phase));
    groups
}

impl Group<'_> {
    fn mean(&self, figure: impl Fn(&Measurement) -> f64) -> f64 {
        geometric_mean(self.rounds.iter().map(|&one| figure(one)))
    }
}

fn figures(groups: &[Group]) -> String {
    let head = [
        "phase",
        "engine",
        "ops/s",
        "drained",
        "cpu us/op",
        "of it harness",
        "w-amp",
        "space/data",
        "space MB",
    ];
    let rows = groups.iter().map(|group| {
        let amplification = group.mean(|one| one.written_bytes as f64 / one.user_bytes as f64);
        vec![
            group.phase.to_owned(),
            group.engine.name().to_owned(),
            format!("{:.0}", group.mean(|one| one.ops_per_s)),
            format!("{:.0}", group.mean(|one| one.drained_ops_per_s)),
            format!("{:.2}", group.mean(|one| one.cpu_us_per_op)),
            format!("{:.2}", group.mean(|one| one.harness_us_per_op)),
            if amplification.is_finite() { format!("{amplification:.2}") } else { "-".to_owned() },
            format!("{:.2}", group.mean(|one| one.space_bytes as f64 / one.logical_bytes as f64)),
            format!("{:.0}", group.mean(|one| one.space_bytes as f64 / 1e6)),
        ]
    });
    table(&head, rows.collect())
}

fn latencies(groups: &[Group]) -> String {
    let head = ["phase", "engine", "latency, us", "p50", "p99", "p99.9", "max"];
    let mut rows = Vec::new();
    for group in groups {
        let mut by_operation: BTreeMap<&str, Vec<&LatencySummary>> = BTreeMap::new();
        for (operation, latency) in group.rounds.iter().flat_map(|one| &one.latency_us) {
            by_operation.entry(operation).or_default().push(latency);
        }
        for (operation, rounds) in by_operation {
            let of =
                |figure: fn(&LatencySummary) -> f64| median(rounds.iter().map(|&one| figure(one)).collect());
            let max = rounds.iter().map(|one| one.max).fold(0.0, f64::max);
            let mut row = vec![group.phase.to_owned(), group.engine.name().to_owned(), operation.to_owned()];
            row.extend(
                [of(|one| one.p50), of(|one| one.p99), of(|one| one.p999), max].map(|us| format!("{us:.1}")),
            );
            rows.push(row);
        }
    }
    table(&head, rows)
}

/// Terrace's rate over each peer's; the peer with the least is the best.
fn ratios(groups: &[Group]) -> String {
    let head = ["phase", "terrace over", "ops/s", "drained", "cpu us/op", "rounds"];
    let mut rows = Vec::new();
    for terrace in groups.iter().filter(|group| group.engine == Engine::Terrace) {
        let peers =
            groups.iter().filter(|peer| peer.phase == terrace.phase && peer.engine != Engine::Terrace);
        let paired = |peer: &Group, figure: fn(&Measurement) -> f64| {
            let pairs = terrace.rounds.iter().zip(&peer.rounds);
            geometric_mean(pairs.map(|(terrace, peer)| figure(terrace) / figure(peer)))
        };
        let mut of_phase: Vec<_> = peers.map(|peer| (paired(peer, |one| one.ops_per_s), peer)).collect();
        of_phase.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        for (place, (ratio, peer)) in of_phase.into_iter().enumerate() {
            let best = if place == 0 { ", the best" } else { "" };
            rows.push(vec![
                terrace.phase.to_owned(),
                format!("{}{best}", peer.engine.name()),
                format!("{ratio:.2}"),
                format!("{:.2}", paired(peer, |one| one.drained_ops_per_s)),
                format!("{:.2}", paired(peer, |one| one.cpu_us_per_op)),
                terrace.rounds.len().min(peer.rounds.len()).to_string(),
            ]);
        }
    }
    table(&head, rows)
}

fn geometric_mean(figures: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = figures.len() as f64;
    (figures.map(f64::ln).sum::<f64>() / count).exp()
}

/// The middle one, or the lower of the middle two.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(engine: Engine, phase: &str, ops_per_s: f64) -> Measurement {
        Measurement {
            engine,
            phase: phase.to_owned(),
            threads: 1,
            operations: 1,
            ops_per_s,
            drained_ops_per_s: ops_per_s / 2.0,
            cpu_us_per_op: 1.0,
            harness_us_per_op: 0.1,
            latency_us: BTreeMap::new(),
            user_bytes: 0,
            written_bytes: 0,
            space_bytes: 1,
            logical_bytes: 1,
        }
    }

    #[test]
    fn ratios_pair_the_rounds_and_name_the_best_peer() {
        let rounds = vec![
            vec![
                measured(Engine::Terrace, "load", 200.0),
                measured(Engine::Leveldb, "load", 100.0),
                measured(Engine::Fjall, "load", 400.0),
            ],
            vec![
                measured(Engine::Fjall, "load", 200.0),
                measured(Engine::Leveldb, "load", 50.0),
                measured(Engine::Terrace, "load", 400.0),
            ],
        ];
        let text = ratios(&groups(&rounds));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["load", "fjall,", "the", "best", "1.00", "1.00", "1.00", "2"]);
        assert_eq!(lines[2], ["load", "leveldb", "4.00", "4.00", "1.00", "2"]);
    }

    #[test]
    fn phases_stay_in_their_order() {
        let round = vec![
            measured(Engine::Terrace, "load", 1.0),
            measured(Engine::Terrace, "a", 1.0),
            measured(Engine::Fjall, "load", 1.0),
            measured(Engine::Fjall, "a", 1.0),
        ];
        let rounds = [round];
        let order: Vec<_> = groups(&rounds).iter().map(|group| (group.phase, group.engine)).collect();
        let (terrace, fjall) = (Engine::Terrace, Engine::Fjall);
        assert_eq!(order, [("load", terrace), ("load", fjall), ("a", terrace), ("a", fjall)]);
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!((median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0])), (2.0, 1.0));
    }
}
