//! The report: what was measured, as one object for programs and as tables for people.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Settings;
use super::capacity::Capacity;
use super::waits::Waits;
use crate::latency::LatencySummary;
use crate::recording::{Curve, Sample, lines};
use crate::report::{Provenance, table};

/// A run: one or several engines, measured alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CalmRun {
    /// Where it comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Names the streams of random numbers.
    pub seed: u64,
    /// What was asked for.
    pub settings: Settings,
    /// What was measured.
    pub calm: Vec<EngineReport>,
}

/// One engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EngineReport {
    /// Its name.
    pub engine: String,
    /// Name of its configuration.
    pub profile: String,
    /// Its version; empty where it is that of the program.
    pub version: String,
    /// Seconds of the load, until the store was at rest.
    pub load_s: f64,
    /// What 100 % of the load is.
    pub capacity: Capacity,
    /// The levels of load.
    pub levels: Vec<LevelReport>,
    /// Answers that were not right.
    pub wrong: u64,
}

/// One level of load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LevelReport {
    /// In percent of the capacity.
    pub percent: f64,
    /// Operations per second that were asked for.
    pub rate: f64,
    /// Those that arrived, in windows that count.
    pub offered_per_s: f64,
    /// Those that ended.
    pub completed_per_s: f64,
    /// Operations that had arrived and had not begun when the time was up.
    pub unfinished: u64,
    /// Whether the store had come to rest before.
    pub rested: bool,
    /// How many windows there were.
    pub windows: WindowCounts,
    /// Share of the seconds in which as much ended as arrived, to 5 %.
    pub seconds_kept_up: Option<f64>,
    /// The worst ten seconds.
    pub worst: Worst,
    /// All windows that count.
    pub all: KindReport,
    /// The same with and without background work: told from outside, and from inside where the engine tells.
    pub splits: Vec<Split>,
    /// What an engine that does nothing shows at this rate, in microseconds.
    pub floor: BTreeMap<String, LatencySummary>,
    /// Samples of the load, from which what a pacer decides can be told again; none of engines other than Terrace.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "lines")]
    pub samples: Vec<Sample>,
    /// Window by window.
    #[serde(serialize_with = "lines")]
    pub course: Vec<Row>,
}

/// How many windows there were.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct WindowCounts {
    /// At the beginning, which do not count.
    pub warm_up: usize,
    /// Left out, since more than 2 % of the machine's time was stolen.
    pub stolen: usize,
    /// That count.
    pub kept: usize,
    /// Share of the machine's time that was stolen, in all but the warm-up.
    pub stolen_share: f64,
    /// Share that other processes and threads of the kernel took; writeback is one of those.
    pub others_share: f64,
}

/// The worst ten seconds, each figure of its own.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Worst {
    /// Operations that ended over those that arrived.
    pub throughput_share: f64,
    /// 99th percentile of reads from the arrival, in microseconds.
    pub read_p99_us: f64,
    /// That of writes.
    pub write_p99_us: f64,
}

/// The windows of one kind together; latencies in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KindReport {
    /// How many.
    pub windows: usize,
    /// Operations that ended in them.
    pub operations: u64,
    /// Reads, from the scheduled arrival to the end.
    pub read: Option<LatencySummary>,
    /// Writes, likewise.
    pub write: Option<LatencySummary>,
    /// Reads, from the call to its return.
    pub read_service: Option<LatencySummary>,
    /// Writes, likewise.
    pub write_service: Option<LatencySummary>,
    /// What slow reads waited for.
    pub read_waits: Waits,
    /// What slow writes waited for.
    pub write_waits: Waits,
    /// What clients waited for between operations, when they lost their processor for so long.
    pub between_waits: Waits,
    /// Distributions from the arrival, as quantile and microseconds.
    pub curves: BTreeMap<String, Curve>,
}

/// Who says that there was background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Told {
    /// The operating system: processor time of threads that are no client's, and bytes written beyond the log's.
    Outside,
    /// The engine: bytes of flushes and compactions, and jobs that run.
    Inside,
}

/// Windows with and without background work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Split {
    /// Who says which is which.
    pub told: Told,
    /// Whether `with` are the windows with as much work as the median or more, since too few had none, or any.
    pub by_median: bool,
    /// Those with.
    pub with: KindReport,
    /// Those without.
    pub without: KindReport,
    /// 99th percentile of reads with over that without.
    pub read_p99_ratio: Option<f64>,
    /// The same of writes.
    pub write_p99_ratio: Option<f64>,
    /// How well each signal gives the work away: above 0.5, it is worse with work; 0.5 is invisible.
    pub auc: BTreeMap<String, f64>,
    /// The same of a logistic regression over all that clients notice: all signals but space.
    pub auc_clients: Option<f64>,
    /// The same with the change of space as well.
    pub auc_all: Option<f64>,
}

/// One window.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// Seconds from the start.
    pub start_s: f64,
    /// Whether it counts.
    pub counts: bool,
    /// Operations that arrived.
    pub offered: u64,
    /// Operations that ended.
    pub completed: u64,
    /// Of reads from the arrival, in microseconds; none where none ended.
    pub read_p99_us: Option<f64>,
    /// Of writes.
    pub write_p99_us: Option<f64>,
    /// Whether there was background work, told from outside.
    pub with_outside: bool,
    /// The same told by the engine; none where it does not.
    pub with_inside: Option<bool>,
    /// Processor time of threads that are no client's, as a share of one processor.
    pub background_share: f64,
    /// Share of the machine's time that went to others.
    pub stolen_share: f64,
    /// Share that other processes and threads of the kernel took.
    pub others_share: f64,
    /// Bytes that the process wrote.
    pub written_bytes: u64,
    /// Those beyond the log's.
    pub written_beyond_log: u64,
    /// Bytes that devices read for the process.
    pub read_bytes: u64,
    /// Those of them that were read for clients.
    pub client_read_bytes: u64,
    /// Disk space at the end.
    pub space_bytes: u64,
    /// Bytes in level 0; none where the engine does not tell, as the next two.
    pub level0_bytes: Option<u64>,
    /// Bytes that compactions owe.
    pub debt_bytes: Option<u64>,
    /// Time that writers were held up, by the engine's own account.
    pub stall_ms: Option<f64>,
}

impl EngineReport {
    /// Engine and configuration.
    #[must_use]
    pub fn name(&self) -> String {
        match self.profile.as_str() {
            "" | "default" => self.engine.clone(),
            profile => format!("{} ({profile})", self.engine),
        }
    }
}

/// Names of the signals of a window, as [`Split::auc`] and the tables list them.
pub const SIGNALS: [&str; 6] = ["read p99", "write p99", "hit ratio", "disk reads", "throughput", "space"];

/// Windows of each kind that are wanted.
pub const WINDOWS_WANTED: usize = 30;

/// A share of the machine that others may take before it is told.
const OTHERS_NOTED: f64 = 0.1;

impl LevelReport {
    /// Whether there are too few windows with or without background work to tell much.
    #[must_use]
    pub fn has_few(&self) -> bool {
        self.outside().is_none_or(|split| split.with.windows.min(split.without.windows) < WINDOWS_WANTED)
    }

    /// The split that is told from outside, which all engines have.
    #[must_use]
    pub fn outside(&self) -> Option<&Split> {
        self.splits.iter().find(|split| split.told == Told::Outside)
    }
}

/// The run for people: for each engine its capacity, then tables of levels, visibility and causes.
#[must_use]
pub fn text(run: &CalmRun) -> String {
    let Settings { records, key_bytes, value_bytes, update_percent, distribution, .. } = &run.settings;
    let mut text = format!(
        "{records} records of {key_bytes} + {value_bytes} bytes, {update_percent} % updates, {}, seed {}\n\
         latencies in ms from the scheduled arrival, p99 unless said otherwise; \"with\" and \"without\" background work\n",
        format!("{distribution:?}").to_lowercase(),
        run.seed,
    );
    for engine in &run.calm {
        text += &format!("\n{}: {}\n", engine.name(), capacity_words(&engine.capacity));
        if engine.wrong > 0 {
            text += &format!("WRONG ANSWERS: {}\n", engine.wrong);
        }
        text += "\n";
        text += &table(&LEVEL_HEAD, engine.levels.iter().flat_map(level_rows).collect());
        text += &warnings(engine);
        text += "\n";
        text += &table(&TAIL_HEAD, engine.levels.iter().flat_map(tail_rows).collect());
        text += "\n";
        text += &table(&AUC_HEAD, engine.levels.iter().flat_map(auc_rows).collect());
        let waits: Vec<_> = engine.levels.iter().flat_map(wait_rows).collect();
        if !waits.is_empty() {
            let slow = run.settings.slow_ms;
            text += &format!(
                "\noperations of {slow} ms and more, and gaps between operations (none), by what was waited for, in ms\n"
            );
            text += &table(&WAIT_HEAD, waits);
        }
    }
    text
}

/// What takes value from the figures.
fn warnings(engine: &EngineReport) -> String {
    let mut text = String::new();
    for level in &engine.levels {
        if level.has_few() {
            text +=
                &format!("{}: fewer than {WINDOWS_WANTED} windows of a kind tell little\n", percent(level));
        }
        let others = level.windows.others_share;
        if others > OTHERS_NOTED {
            let share = others * 100.0;
            text += &format!("{}: others took {share:.0} % of the machine's processors\n", percent(level));
        }
        if !level.rested {
            text += &format!("{}: the store had not come to rest before\n", percent(level));
        }
    }
    text
}

/// The capacity in words.
pub fn capacity_words(capacity: &Capacity) -> String {
    let rate = capacity.ops_per_s;
    if capacity.given {
        return format!("100 % is {rate:.0} operations/s, as given");
    }
    let seconds: f64 = capacity.blocks.iter().map(|block| block.seconds).sum();
    let steady = if capacity.steady { "steady" } else { "NOT STEADY" };
    let written = capacity
        .write_amplification
        .map_or_else(String::new, |wa| format!(", {wa:.1} bytes written per byte put"));
    format!("sustained capacity {rate:.0} operations/s, {steady} after {seconds:.0} s{written}")
}

const LEVEL_HEAD: [&str; 12] = [
    "level",
    "rate/s",
    "told",
    "split",
    "with",
    "without",
    "stolen",
    "kept up %",
    "worst 10 s: %",
    "reads",
    "writes",
    "unfinished",
];

const TAIL_HEAD: [&str; 11] = [
    "level",
    "told",
    "operation",
    "p50 without",
    "with",
    "p99 without",
    "with",
    "ratio",
    "p99.9 without",
    "with",
    "max",
];

const AUC_HEAD: [&str; 10] = [
    "level",
    "told",
    "read p99",
    "write p99",
    "hit ratio",
    "disk reads",
    "throughput",
    "space",
    "clients",
    "all",
];

const WAIT_HEAD: [&str; 12] = [
    "level",
    "windows",
    "operation",
    "slow",
    "ms",
    "processor",
    "running",
    "disk",
    "blocked",
    "MB read",
    "major faults",
    "minor faults",
];

fn percent(level: &LevelReport) -> String {
    format!("{:.0} %", level.percent)
}

/// Who told.
pub fn told(split: &Split) -> String {
    match split.told {
        Told::Outside => "outside".to_owned(),
        Told::Inside => "inside".to_owned(),
    }
}

/// How windows were told apart.
pub fn by(split: &Split) -> &'static str {
    if split.by_median { "median" } else { "any" }
}

/// Microseconds as milliseconds.
pub fn ms(us: f64) -> String {
    if us < 1000.0 { format!("{:.3}", us / 1000.0) } else { format!("{:.1}", us / 1000.0) }
}

fn optional(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
}

fn level_rows(level: &LevelReport) -> Vec<Vec<String>> {
    let rows = level.splits.iter().map(|split| {
        vec![
            percent(level),
            format!("{:.0}", level.rate),
            told(split),
            by(split).to_owned(),
            split.with.windows.to_string(),
            split.without.windows.to_string(),
            level.windows.stolen.to_string(),
            optional(level.seconds_kept_up.map(|share| share * 100.0), 1),
            format!("{:.1}", level.worst.throughput_share * 100.0),
            ms(level.worst.read_p99_us),
            ms(level.worst.write_p99_us),
            level.unfinished.to_string(),
        ]
    });
    rows.collect()
}

/// The operations of a split, with their latencies without and with background work.
pub fn operations(split: &Split) -> impl Iterator<Item = (&'static str, &LatencySummary, &LatencySummary)> {
    let Split { with, without, .. } = split;
    let kinds = [
        ("read", &without.read, &with.read),
        ("write", &without.write, &with.write),
        ("read, service", &without.read_service, &with.read_service),
        ("write, service", &without.write_service, &with.write_service),
    ];
    kinds.into_iter().filter_map(|(name, without, with)| Some((name, without.as_ref()?, with.as_ref()?)))
}

fn tail_rows(level: &LevelReport) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (split, name, without, with) in level
        .splits
        .iter()
        .flat_map(|split| operations(split).map(move |(name, without, with)| (split, name, without, with)))
    {
        let mut row = vec![percent(level), told(split), name.to_owned()];
        row.extend([without.p50, with.p50, without.p99, with.p99].map(ms));
        row.push(format!("{:.1}", with.p99 / without.p99.max(f64::MIN_POSITIVE)));
        row.extend([without.p999, with.p999, without.max.max(with.max)].map(ms));
        rows.push(row);
    }
    for (name, floor) in &level.floor {
        let mut row = vec![percent(level), "empty".to_owned(), name.clone()];
        let figures =
            [Some(floor.p50), None, Some(floor.p99), None, None, Some(floor.p999), None, Some(floor.max)];
        row.extend(figures.map(|us| us.map_or_else(|| "-".to_owned(), ms)));
        rows.push(row);
    }
    rows
}

fn auc_rows(level: &LevelReport) -> Vec<Vec<String>> {
    let rows = level.splits.iter().map(|split| {
        let mut row = vec![percent(level), told(split)];
        let signals = SIGNALS.iter().map(|signal| split.auc.get(*signal).copied());
        row.extend(signals.chain([split.auc_clients, split.auc_all]).map(|auc| optional(auc, 2)));
        row
    });
    rows.collect()
}

/// The slow operations of a level by cause, and gaps between operations: of windows with and without background work, told from outside.
pub fn waits(level: &LevelReport) -> impl Iterator<Item = (&'static str, &'static str, &Waits)> {
    let kinds = level.outside().map(|split| [("with", &split.with), ("without", &split.without)]);
    let rows = kinds.into_iter().flatten().flat_map(|(kind, report)| {
        [
            (kind, "read", &report.read_waits),
            (kind, "write", &report.write_waits),
            (kind, "none", &report.between_waits),
        ]
    });
    rows.filter(|(_, _, waits)| waits.slow > 0)
}

fn wait_rows(level: &LevelReport) -> Vec<Vec<String>> {
    let rows = waits(level).map(|(kind, operation, waits)| {
        let mut row = vec![percent(level), kind.to_owned(), operation.to_owned(), waits.slow.to_string()];
        let times = [waits.ms, waits.queued_ms, waits.running_ms, waits.disk_ms, waits.blocked_ms];
        row.extend(times.map(|ms| format!("{ms:.1}")));
        row.push(format!("{:.1}", waits.read_bytes as f64 / 1e6));
        row.extend([waits.major_faults, waits.minor_faults].map(|count| count.to_string()));
        row
    });
    rows.collect()
}

#[cfg(test)]
mod tests;
