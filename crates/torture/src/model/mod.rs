//! The suite `model`: random operations against an ordered map with versions, under many sets of options.
//!
//! One caller runs beside the store's own threads. It puts, deletes keys and ranges, writes batches across keyspaces,
//! ingests into one keyspace or several, looks keys up, holds iterators, cursors and snapshots across writes and jobs,
//! flushes, compacts, creates and drops keyspaces, and reopens the store. After a power cut the store must have the state of some prefix of the history.
//! Sizes are tiny, so that every kind of job runs.
//!
//! On the simulated machine the seed also draws the order of the threads. An operation follows from the seed and its
//! number alone, whatever operations came before it. So a failure can be reduced to the operations that it needs, and
//! replayed by their numbers. On real files no seed orders the threads.

mod bounds;
mod cursors;
mod diary;
mod readers;
mod reading;
pub mod reduce;
mod run;
mod runner;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use terrace::Options;
use terrace::env::simulated::{Journal, SimConfig, SimEnv};

use self::diary::Diary;
use self::runner::{Machine, Ran, Runner};
use crate::client::with_devices;
use crate::option_sets;
use crate::panics::explained;
use crate::seed::Rng;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally};

/// Operations on the simulated machine.
const OPERATIONS: usize = 2500;
/// Operations on real files, whose syncs take their time.
const REAL_OPERATIONS: usize = 800;

/// Failures of a program that are reduced: that leaves many threads behind.
const REDUCED_MAX: usize = 1;

/// The suite, as large as a sample of it.
pub struct Model {
    /// Number of runs under standard options, under random options, and on real files under standard options.
    pub standard: u64,
    pub random: u64,
    pub real: u64,
}

/// The whole suite.
pub static MODEL: Model = Model { standard: 48, random: 16, real: 9 };

/// The share of a round that a sample is.
const SAMPLED: u64 = 10;

const GROUPS: [&str; 3] = ["standard", "random", "real"];

impl Suite for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn about(&self) -> &'static str {
        "random operations under standard and random options against an ordered map"
    }

    fn cases(&self, round: &Round) -> Cases {
        let times = if round.share == Share::All { SAMPLED } else { 1 };
        let numbers = [self.standard, self.random, self.real].map(|count| 0..count * times);
        let seed = round.seed;
        if let Some(life) = round.only.as_deref().and_then(|only| Life::reduced(seed, only)) {
            return Box::new(std::iter::once(Box::new(life) as Box<dyn Case>));
        }
        let groups = GROUPS.into_iter().zip(numbers);
        let scripts = groups.flat_map(move |(group, numbers)| {
            numbers.map(move |number| Box::new(Life { seed, group, number, steps: None }) as Box<dyn Case>)
        });
        Box::new(scripts)
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        let operations = [
            "batches",
            "hot keys",
            "range deletes",
            "ingests",
            "iterators",
            "cursors",
            "snapshots",
            "removals",
            "openings",
        ];
        tally.require(&operations, 10)?;
        tally.require(&["deep trees"], 0)?;
        // On real files the number of jobs is chance.
        let jobs = ["flushes", "compactions", "moves", "cache misses", "denied tables"];
        tally.require(&jobs, if self.standard > 0 { 10 } else { 0 })?;
        if self.standard > 0 {
            tally.require(&["power cuts", "batches taken", "joint ingests"], 10)
        } else {
            Ok(())
        }
    }
}

/// One run of random operations.
struct Life {
    seed: u64,
    group: &'static str,
    number: u64,
    /// The numbers of the operations, if not all of them.
    steps: Option<Vec<usize>>,
}

impl Life {
    /// The run that `name` describes, with its operations.
    fn reduced(seed: u64, name: &str) -> Option<Self> {
        let (life, steps) = name.rsplit_once('/')?;
        let (group, number) = life.split_once('/')?;
        let group = GROUPS.into_iter().find(|known| *known == group)?;
        Some(Self { seed, group, number: number.parse().ok()?, steps: Some(reduce::from_text(steps)?) })
    }

    fn own_seed(&self) -> u64 {
        // The next rounds have other runs.
        (self.seed << 32) + self.number
    }

    fn shape(&self) -> (String, Options) {
        if self.group == "random" {
            option_sets::random(self.own_seed())
        } else {
            option_sets::standard(self.number)
        }
    }

    fn simulate(&self, steps: &[usize], diary: &Diary) -> Ran {
        let seed = self.own_seed();
        let mut rng = Rng::new(seed);
        let journal = if rng.percent(50) { Journal::None } else { Journal::Ext4Like };
        let preemption_percent = *rng.pick(&[0, 10, 40]);
        let config = SimConfig { seed, journal, preemption_percent, ..SimConfig::default() };
        let ((_, options), steps, diary) = (self.shape(), steps.to_vec(), diary.clone());
        SimEnv::run(config, move |env| {
            let mut runner = Runner::new(Machine::Simulated(with_devices(env)), options, seed, diary);
            steps.into_iter().for_each(|number| runner.step(number));
            runner.finish()
        })
    }

    fn run_on_files(&self, diary: &Diary) -> Ran {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::Real(dir.path().into());
        let mut runner = Runner::new(machine, self.shape().1, self.own_seed(), diary.clone());
        (0..REAL_OPERATIONS).for_each(|number| runner.step(number));
        runner.finish()
    }

    /// A failed run, reduced to the operations that the failure needs.
    fn told_shortly(&self, message: &str, numbers: Vec<usize>) -> String {
        static REDUCED: AtomicUsize = AtomicUsize::new(0);
        if self.steps.is_some() || REDUCED.fetch_add(1, Ordering::Relaxed) >= REDUCED_MAX {
            return message.into();
        }
        let (mut told, all) = (message.to_owned(), numbers.len());
        let kept = reduce::reduce(numbers, |numbers| {
            let diary = Diary::default();
            let failed = catch_unwind(AssertUnwindSafe(|| self.simulate(numbers, &diary)));
            failed.is_err_and(|panic| {
                told = format!("{}\n{}", explained(&*panic), diary.tell());
                true
            })
        });
        let (name, text, count) = (self.name(), reduce::to_text(&kept), kept.len());
        format!(
            "{told}these are {count} of {all} operations, all of which are: --case '{name}/{text}'\n{message}"
        )
    }
}

impl Case for Life {
    fn name(&self) -> String {
        let steps =
            self.steps.as_deref().map_or(String::new(), |steps| format!("/{}", reduce::to_text(steps)));
        format!("{}/{}{steps}", self.group, self.number)
    }

    fn options(&self) -> String {
        let (name, options) = self.shape();
        format!("{name}: {options:?}")
    }

    fn run(&self, tally: &Tally) {
        let diary = Diary::default();
        let steps = self.steps.clone().unwrap_or_else(|| (0..OPERATIONS).collect());
        let live = || {
            if self.group == "real" { self.run_on_files(&diary) } else { self.simulate(&steps, &diary) }
        };
        let ran = match catch_unwind(AssertUnwindSafe(live)) {
            Ok(ran) => ran,
            Err(panic) => {
                let message = format!("{}\nthe last operations:\n{}", explained(&*panic), diary.tell());
                let is_ordered = self.group != "real";
                panic!("{}", if is_ordered { self.told_shortly(&message, diary.numbers()) } else { message });
            }
        };
        ran.tell(tally);
        tally.add("operations", if self.group == "real" { REAL_OPERATIONS } else { steps.len() } as u64);
    }
}

/// A hash of all calls of a machine in a short run.
#[must_use]
pub fn fingerprint(seed: u64) -> u64 {
    let env = SimEnv::new(SimConfig { seed, ..SimConfig::default() });
    let machine = Arc::clone(&env);
    machine.simulate(move |env| {
        let (_, options) = option_sets::standard(1);
        let mut runner = Runner::new(Machine::Simulated(env), options, seed, Diary::default());
        (0..200).for_each(|number| runner.step(number));
        runner.finish();
    });
    env.fingerprint()
}
