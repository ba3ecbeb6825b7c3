//! A run: turn after turn, each between two calibrations, void ones again, all kept as they end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::calibration::{Calibration, Calibrator, ProcessorTime};
use crate::cgroup::MemoryLimit;
use crate::child::{self, Measured};
use crate::machine::touch_memory;
use crate::open::Rates;
use crate::results::{DRAINED_OPS_PER_S, OPS_PER_S, ROWS_PER_S};
use crate::schedule::{Slot, slots};
use crate::scorecard::Group;
use crate::settings::{EMPTY_S, Settings};
use crate::state::{Finished, State};
use crate::store::Engine;
use crate::turn::Job;

/// Share of the lookups that the slowest engine manages, and of its puts, that arrive in the tail workload.
const TAIL_SHARES: (f64, f64) = (0.5, 0.3);

/// Share of its full time that a phase of the empty engine gets.
const EMPTY_SCALE: f64 = 0.1;

/// Turns of a run.
pub struct Runner<'a> {
    settings: &'a Settings,
    /// Holds one directory at a time, that of the turn.
    root: &'a Path,
    state: State,
    calibrator: Calibrator,
    /// As of the end of the last turn.
    calm: Calibration,
    progress: ProgressBar,
}

impl<'a> Runner<'a> {
    /// Turns in directories below `root`.
    ///
    /// # Errors
    /// The disk cannot be calibrated.
    pub fn new(settings: &'a Settings, root: &'a Path, state: State) -> Result<Self> {
        touch_memory();
        let mut calibrator = Calibrator::new();
        let calm = calibrator.measure(root)?;
        let seconds: f64 = slots(settings).into_iter().map(|slot| expected_s(settings, slot)).sum();
        let style = "[{elapsed_precise}] {wide_bar} {msg}";
        let progress = ProgressBar::new(seconds as u64).with_style(ProgressStyle::with_template(style)?);
        progress.enable_steady_tick(Duration::from_secs(1));
        Ok(Self { settings, root, state, calibrator, calm, progress })
    }

    /// Runs all turns that are not over yet; all that are, in the end.
    ///
    /// # Errors
    /// A turn failed or was interrupted; what was finished before is in the state file.
    pub fn run(mut self) -> Result<Vec<Finished>> {
        let all = slots(self.settings);
        for (index, &slot) in all.iter().enumerate() {
            if self.state.find(slot).is_none() {
                let finished = self.attempt(slot, self.left_s(&all[index..]))?;
                self.progress.suspend(|| eprintln!("{}", line(&finished)));
                self.state.keep(finished)?;
            }
            self.progress.inc(expected_s(self.settings, slot) as u64);
        }
        self.progress.finish_and_clear();
        Ok(self.state.finished)
    }

    /// About how many seconds `slots` take, by what those before took against what was expected of them.
    fn left_s(&self, slots: &[Slot]) -> f64 {
        let expected = |slots: &mut dyn Iterator<Item = Slot>| -> f64 {
            slots.map(|slot| expected_s(self.settings, slot)).sum()
        };
        let done = &self.state.finished;
        let taken: f64 = done.iter().map(|turn| turn.seconds).sum();
        let pace =
            if done.is_empty() { 1.0 } else { taken / expected(&mut done.iter().map(|turn| turn.slot)) };
        pace * expected(&mut slots.iter().copied())
    }

    /// Runs a turn until it counts, has been repeated often enough, or could be repeated only at the cost of the run's
    /// time; `left` is about how many seconds the run has left, from the beginning of this turn.
    fn attempt(&mut self, slot: Slot, left: f64) -> Result<Finished> {
        let (mut attempts, started) = (0, Instant::now());
        let taken: f64 = self.state.finished.iter().map(|turn| turn.seconds).sum();
        loop {
            attempts += 1;
            let before = self.calm;
            let stolen = ProcessorTime::now()?;
            // That an engine fails, or is killed at the limit of memory, is a result like any other.
            let (measured, failed) = match self.turn(slot, left) {
                Err(error) if !child::is_interrupted() => (Measured::default(), Some(format!("{error:#}"))),
                turn => (turn?, None),
            };
            let Measured { version, phases } = measured;
            let steal = ProcessorTime::now()?.steal_since(&stolen);
            let after = self.calibrator.measure(self.root)?;
            self.calm = after;
            let seconds = started.elapsed().as_secs_f64();
            let is_failure = failed.is_some();
            let void = failed.or_else(|| self.void(before.drift(&after), steal));
            if void.is_none()
                || is_failure
                || attempts > self.settings.retries
                || slot.engine == Engine::Empty
                || taken + seconds + left > self.settings.seconds
            {
                return Ok(Finished { slot, attempts, seconds, void, before, after, steal, version, phases });
            }
            let reason = void.unwrap_or_default();
            self.progress.suspend(|| eprintln!("{}: {reason}; again", title(slot)));
        }
    }

    /// Why a turn does not count, if it does not.
    fn void(&self, drift: f64, steal: f64) -> Option<String> {
        let Settings { drift_max, steal_max, .. } = *self.settings;
        if drift > drift_max {
            Some(format!("disk or memory changed by {:.0} %", drift * 100.0))
        } else if steal > steal_max {
            Some(format!("{:.1} % of the processors' time was stolen", steal * 100.0))
        } else {
            None
        }
    }

    fn turn(&self, slot: Slot, left: f64) -> Result<Measured> {
        let limit = self.limit(slot)?;
        let job = self.job(slot, limit.as_ref().map(MemoryLimit::entrance))?;
        let mut hear = |what: &str| {
            let left = HumanDuration(Duration::from_secs_f64(left));
            self.progress.set_message(format!("{}: {what}, about {left} left", title(slot)));
        };
        let mut measured = child::run(&job, &mut hear);
        if limit.is_some_and(|limit| limit.has_killed()) {
            let mebibytes = self.settings.limit_bytes(slot.group).unwrap_or(0) >> 20;
            measured = measured.with_context(|| format!("killed at the limit of memory, {mebibytes} MiB"));
        }
        if job.directory.exists() {
            std::fs::remove_dir_all(&job.directory)?;
        }
        measured
    }

    /// The limit of the turn's memory, or a loud word that there is none.
    fn limit(&self, slot: Slot) -> Result<Option<MemoryLimit>> {
        let Some(bytes) = self.settings.limit_bytes(slot.group) else { return Ok(None) };
        MemoryLimit::new(bytes).map(Some).context(
            "the large records are to be more than memory holds, which needs a memory cgroup; \
             without one, leave out overwrite-l and get-l",
        )
    }

    fn job(&self, slot: Slot, entrance: Option<PathBuf>) -> Result<Job> {
        let Settings { ref workloads, scale, seed, .. } = *self.settings;
        let Slot { group, engine, .. } = slot;
        Ok(Job {
            engine,
            group,
            workloads: workloads.clone(),
            records: self.settings.records_of(group),
            value_bytes: self.settings.value_bytes_of(group),
            load_threads: self.settings.load_threads,
            opening: self.settings.opening(group),
            scale: if engine == Engine::Empty { scale * EMPTY_SCALE } else { scale },
            drain: Duration::from_secs_f64(self.settings.drain_s()),
            seed,
            directory: self.root.join(engine.name()),
            entrance,
            rates: if group == Group::Tail { Some(self.rates()?) } else { None },
        })
    }

    /// Arrivals of the tail workload: as given, or so that the slowest engine of the first round is far from its limit.
    fn rates(&self) -> Result<Rates> {
        if let Some((reads, writes)) = self.settings.tail_rates {
            return Ok(Rates { reads, writes });
        }
        let least = |phase: &str, metric: &str| {
            let first = self.state.finished.iter().filter(|turn| turn.slot.round == 0);
            let turns = first.filter(|turn| turn.slot.engine != Engine::Empty);
            let results = turns.flat_map(|turn| &turn.phases).filter(|result| result.workload == phase);
            let least = results.filter_map(|result| result.value(metric)).min_by(f64::total_cmp);
            least.with_context(|| format!("nothing was measured in {phase}, which tells the rates of tail"))
        };
        Ok(Rates {
            reads: TAIL_SHARES.0 * least("get-u-1", OPS_PER_S)?,
            writes: TAIL_SHARES.1 * least("load-r", DRAINED_OPS_PER_S)?,
        })
    }
}

/// About how many seconds a turn takes.
fn expected_s(settings: &Settings, slot: Slot) -> f64 {
    if slot.engine == Engine::Empty { EMPTY_S } else { settings.turn_s(slot.group) }
}

fn title(slot: Slot) -> String {
    format!("round {}, {}, {}", slot.round + 1, slot.group.name(), slot.engine.name())
}

/// A turn in a line, to be watched as they end.
fn line(finished: &Finished) -> String {
    let rates = finished.phases.iter().filter_map(|result| {
        let rate = result.value(OPS_PER_S).or_else(|| result.value(ROWS_PER_S))?;
        Some(format!("{} {rate:.0}", result.workload))
    });
    let rates: Vec<String> = rates.collect();
    let rates = if rates.is_empty() { String::new() } else { format!(", per second: {}", rates.join(", ")) };
    let void = finished.void.as_ref().map_or(String::new(), |void| format!("; VOID: {void}"));
    format!("{}, {:.0} s{rates}{void}", title(finished.slot), finished.seconds)
}
