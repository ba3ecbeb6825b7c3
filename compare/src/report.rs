//! From finished turns to one object: the figures of each engine over the rounds, and Terrace's advantage over each peer.
//!
//! Turns that are void count for nothing. An advantage pairs the figures of the same round, of engines that promise the
//! same: the same durability where anything is written, and both with LZ4 or both without.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use terrace_bench::recording::Recording;
use terrace_bench::report::Provenance;

use crate::calibration::Calibration;
use crate::latency::Percentiles;
use crate::machine::Machine;
use crate::results::{Figure, PhaseResult};
use crate::settings::Settings;
use crate::state::Finished;
use crate::statistics::{bootstrap, median};
use crate::store::{Durability, Engine};

/// Everything that a run found.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// The command line.
    pub command: String,
    /// Of Terrace.
    pub version: String,
    pub machine: Machine,
    pub commit: String,
    pub seed: u64,
    pub calibration: Vec<Calibrated>,
    pub results: Vec<Summary>,
    pub ratios: Vec<Ratio>,
    pub settings: Settings,
    pub engines: Vec<About>,
    pub turns: Vec<Detail>,
    /// Workloads that were left out, and why.
    pub skipped: Vec<String>,
}

/// The machine around a turn.
#[derive(Debug, Serialize, Deserialize)]
pub struct Calibrated {
    /// From 1.
    pub round: usize,
    pub group: String,
    pub engine: Engine,
    pub before: Calibration,
    pub after: Calibration,
    /// Share of processor time.
    pub steal: f64,
    pub attempts: usize,
    /// That all of them took.
    pub seconds: f64,
    pub void: Option<String>,
}

/// One figure of one engine.
#[derive(Debug, Serialize, Deserialize)]
pub struct Summary {
    pub engine: Engine,
    pub workload: String,
    pub metric: String,
    pub unit: String,
    pub higher_is_better: bool,
    pub median: f64,
    /// One of each round that counts.
    pub rounds: Vec<f64>,
    pub durability: Option<Durability>,
}

/// Terrace's advantage in one figure.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ratio {
    pub workload: String,
    pub metric: String,
    pub peer: Engine,
    /// Geometric mean of the rounds' ratios; above 1, Terrace is better.
    pub advantage: f64,
    pub low: f64,
    pub high: f64,
    /// Rounds in which both count.
    pub pairs: usize,
    pub durability: Option<Durability>,
}

/// An engine, as it was opened.
#[derive(Debug, Serialize, Deserialize)]
pub struct About {
    pub engine: Engine,
    pub version: String,
    pub compression: bool,
    pub checksums_verified: bool,
}

/// One phase of one turn that counts.
#[derive(Debug, Serialize, Deserialize)]
pub struct Detail {
    pub engine: Engine,
    pub workload: String,
    /// From 1.
    pub round: usize,
    pub series: Vec<u64>,
    pub latency: BTreeMap<String, Percentiles>,
    #[serde(default)]
    pub p99: BTreeMap<String, Vec<Option<f64>>>,
    pub notes: Vec<String>,
    /// What Terrace says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terrace_course: Option<Box<Recording>>,
}

/// What tells figures apart.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    engine: Engine,
    /// Place of the phase, so that the order of the scorecard stays.
    place: usize,
    workload: String,
    metric: String,
}

/// A figure of all rounds that count.
struct Rounds {
    unit: String,
    higher_is_better: bool,
    durability: Option<Durability>,
    by_round: BTreeMap<usize, f64>,
}

type Table = BTreeMap<Key, Rounds>;

impl Report {
    /// Of finished turns.
    pub fn new(
        machine: Machine,
        commit: String,
        settings: &Settings,
        finished: &[Finished],
        skipped: Vec<String>,
    ) -> Self {
        let table = table(finished);
        let Provenance { command, version, .. } = Provenance::here();
        Self {
            command,
            version,
            machine,
            commit,
            seed: settings.seed,
            calibration: finished.iter().map(calibrated).collect(),
            results: table.iter().map(|(key, rounds)| summary(key, rounds)).collect(),
            ratios: ratios(&table, settings.seed),
            settings: settings.clone(),
            engines: engines(finished),
            turns: finished.iter().filter(|turn| turn.void.is_none()).flat_map(details).collect(),
            skipped,
        }
    }
}

fn table(finished: &[Finished]) -> Table {
    let mut names: Vec<&str> = Vec::new();
    let mut table = Table::new();
    for turn in finished.iter().filter(|turn| turn.void.is_none()) {
        for PhaseResult { workload, durability, figures, .. } in &turn.phases {
            let place = names.iter().position(|name| name == workload).unwrap_or_else(|| {
                names.push(workload);
                names.len() - 1
            });
            for Figure { metric, unit, higher_is_better, value } in figures {
                let (workload, metric) = (workload.clone(), metric.clone());
                let rounds = table
                    .entry(Key { engine: turn.slot.engine, place, workload, metric })
                    .or_insert(Rounds {
                        unit: unit.clone(),
                        higher_is_better: *higher_is_better,
                        durability: *durability,
                        by_round: BTreeMap::new(),
                    });
                rounds.by_round.insert(turn.slot.round, *value);
            }
        }
    }
    table
}

fn summary(key: &Key, rounds: &Rounds) -> Summary {
    let figures: Vec<f64> = rounds.by_round.values().copied().collect();
    Summary {
        engine: key.engine,
        workload: key.workload.clone(),
        metric: key.metric.clone(),
        unit: rounds.unit.clone(),
        higher_is_better: rounds.higher_is_better,
        median: median(&figures),
        rounds: figures,
        durability: rounds.durability,
    }
}

fn ratios(table: &Table, seed: u64) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for (key, ours) in table.iter().filter(|(key, _)| key.engine.is_terrace()) {
        for (peer, theirs) in table.iter().filter(|(peer, _)| comparable(key.engine, peer.engine)) {
            if (&peer.workload, &peer.metric, theirs.durability)
                == (&key.workload, &key.metric, ours.durability)
            {
                ratios.extend(ratio(key, ours, peer.engine, theirs, seed));
            }
        }
    }
    ratios.sort_by_key(|ratio| place(table, &ratio.workload));
    ratios
}

fn place(table: &Table, workload: &str) -> Option<usize> {
    table.keys().find(|key| key.workload == workload).map(|key| key.place)
}

fn comparable(terrace: Engine, peer: Engine) -> bool {
    !peer.is_terrace() && peer != Engine::Empty && peer.compresses() == terrace.compresses()
}

fn ratio(key: &Key, ours: &Rounds, peer: Engine, theirs: &Rounds, seed: u64) -> Option<Ratio> {
    let both = ours.by_round.iter().filter_map(|(round, our)| Some((our, theirs.by_round.get(round)?)));
    let advantages = both.map(|(our, their)| if ours.higher_is_better { our / their } else { their / our });
    // Of nothing there is no ratio.
    let advantages: Vec<f64> = advantages.filter(|ratio| ratio.is_finite() && *ratio > 0.0).collect();
    let interval = bootstrap(&advantages, seed)?;
    Some(Ratio {
        workload: key.workload.clone(),
        metric: key.metric.clone(),
        peer,
        advantage: interval.mean,
        low: interval.low,
        high: interval.high,
        pairs: advantages.len(),
        durability: ours.durability,
    })
}

fn engines(finished: &[Finished]) -> Vec<About> {
    let mut versions: BTreeMap<Engine, &str> = BTreeMap::new();
    for turn in finished {
        let version = versions.entry(turn.slot.engine).or_default();
        // A turn that failed tells none.
        if !turn.version.is_empty() {
            *version = &turn.version;
        }
    }
    let about = |(engine, version): (Engine, &str)| About {
        engine,
        version: version.to_owned(),
        compression: engine.compresses(),
        checksums_verified: engine.verifies(),
    };
    versions.into_iter().map(about).collect()
}

fn calibrated(turn: &Finished) -> Calibrated {
    Calibrated {
        round: turn.slot.round + 1,
        group: turn.slot.group.name().to_owned(),
        engine: turn.slot.engine,
        before: turn.before,
        after: turn.after,
        steal: turn.steal,
        attempts: turn.attempts,
        seconds: turn.seconds,
        void: turn.void.clone(),
    }
}

fn details(turn: &Finished) -> impl Iterator<Item = Detail> {
    let interesting = |result: &&PhaseResult| {
        !result.series.is_empty() || !result.latency.is_empty() || !result.notes.is_empty()
    };
    turn.phases.iter().filter(interesting).map(|result| Detail {
        engine: turn.slot.engine,
        workload: result.workload.clone(),
        round: turn.slot.round + 1,
        series: result.series.clone(),
        latency: result.latency.clone(),
        p99: result.p99.clone(),
        notes: result.notes.clone(),
        terrace_course: result.terrace_course.clone(),
    })
}

#[cfg(test)]
mod tests;
