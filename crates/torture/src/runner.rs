//! Runs suites: workers take cases, a clock ends the run, and each failure says how to repeat it.
//!
//! A case fails by a panic, or by not ending. A failed simulation leaves its threads parked, and a case that does not
//! end keeps its worker. So a run ends early when there are many failures, and at once when a case hangs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use terrace::env::sync::Mutex;

use crate::panics::{self, explained};
use crate::seed::{is_long, seed_or, switched_on};
use crate::suite::{Case, Cases, Round, Share, Suite, Tally};

/// Failures after which a run ends.
const FAILURES_MAX: usize = 25;

/// How often the observer hears of the state.
const TICK: Duration = Duration::from_millis(100);

/// How a suite is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of the first round; the next ones count on.
    pub seed: u64,
    pub share: Share,
    /// Rounds follow each other for this long; without it, there is one round.
    pub budget: Option<Duration>,
    /// Cases that run at the same time.
    pub jobs: usize,
    /// The one case to run, or the family of cases whose names go on behind this with a slash.
    pub only: Option<String>,
}

impl Settings {
    /// A sampled round.
    #[must_use]
    pub fn sample(seed: u64) -> Self {
        Self { seed, share: Share::Sample, budget: None, jobs: processors(), only: None }
    }
}

/// The processors there are.
#[must_use]
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A case that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// None for what is wrong with the suite as a whole.
    pub case: Option<String>,
    /// Of its round, as is the share.
    pub seed: u64,
    pub share: Share,
    pub options: String,
    pub message: String,
}

impl Failure {
    /// What went wrong, and the command that repeats it.
    #[must_use]
    pub fn report(&self, suite: &dyn Suite) -> String {
        let Self { case, seed, share, options, message } = self;
        let name = suite.name();
        let title = case.as_deref().unwrap_or("as a whole");
        let options = if options.is_empty() { String::new() } else { format!("options: {options}\n") };
        let case = case.as_ref().map_or(String::new(), |case| format!(" --case '{case}'"));
        let sample = if *share == Share::All { "" } else { " --sample" };
        format!(
            "FAILED {name}: {title}, seed {seed}\n{message}\n{options}\
             again: cargo run --release -p terrace-torture -- --suite {name} --seed {seed}{sample}{case}\n"
        )
    }
}

/// How a run is going.
#[derive(Clone, Default, Debug)]
pub struct State {
    pub passed: u64,
    pub failures: Vec<Failure>,
    /// Rounds that were run to their end.
    pub rounds: u64,
    /// Seed of the round under way.
    pub seed: u64,
    /// What was tried, counted.
    pub tally: String,
}

impl State {
    /// The last line that a run prints.
    #[must_use]
    pub fn summary(&self) -> String {
        format!("{} passed, {} failed", self.passed, self.failures.len())
    }
}

struct Run {
    suite: &'static dyn Suite,
    settings: Settings,
    deadline: Option<Instant>,
    tally: Tally,
    source: Mutex<Source>,
    state: Mutex<State>,
    /// The case of each worker, and since when it runs; `None` for a worker that has ended.
    workers: Mutex<Vec<Option<(String, u64, Instant)>>>,
}

/// Where the cases come from.
struct Source {
    round: Round,
    cases: Option<Cases>,
    is_over: bool,
}

/// Runs `suite`, and reports the progress to `observe` from time to time.
pub fn run(suite: &'static dyn Suite, settings: Settings, mut observe: impl FnMut(&State)) -> State {
    let jobs = if suite.is_alone() { 1 } else { settings.jobs.max(1) };
    let round = Round { seed: settings.seed, share: settings.share, only: settings.only.clone() };
    let run = Arc::new(Run {
        suite,
        deadline: settings.budget.map(|budget| Instant::now() + budget),
        tally: Tally::default(),
        source: Mutex::new(Source { round, cases: None, is_over: false }),
        state: Mutex::new(State { seed: settings.seed, ..State::default() }),
        workers: Mutex::new(vec![Some((String::new(), settings.seed, Instant::now())); jobs]),
        settings,
    });
    for worker in 0..jobs {
        let run = Arc::clone(&run);
        let name = format!("{} {worker}", suite.name());
        thread::Builder::new().name(name).spawn(move || run.work(worker)).expect("a thread for a worker");
    }
    while run.workers.lock().iter().any(Option::is_some) && !run.is_hanging() {
        thread::sleep(TICK);
        observe(&run.state());
    }
    let mut state = run.state();
    state.failures.extend(unclaimed_panics(&run.settings));
    if state.failures.is_empty() && run.settings.only.is_some() && state.passed == 0 {
        run.fail_whole(&mut state, "there is no such case");
    }
    if state.rounds > 0
        && run.settings.only.is_none()
        && let Err(missing) = suite.conclude(&run.tally)
    {
        run.fail_whole(&mut state, &missing);
    }
    observe(&state);
    state
}

/// Runs the part of a sample of `suite` that a test has time for. `TERRACE_SEED` draws another sample, `TERRACE_LONG=1`
/// runs all of it, `TERRACE_CASE` runs what of it belongs to the case, or the group of cases, of that name, and
/// `TERRACE_ALL=1` leaves nothing out.
///
/// # Panics
///
/// Panics with a report of each failure.
pub fn pass_sample(suite: &'static dyn Suite, seed: u64) {
    let only = std::env::var("TERRACE_CASE").ok();
    let share = match &only {
        _ if switched_on("TERRACE_ALL") => Share::All,
        None if !is_long() => Share::Brief,
        _ => Share::Sample,
    };
    let state = run(suite, Settings { only, share, ..Settings::sample(seed_or(seed)) }, |_| {});
    println!("{}: {}; {}", suite.name(), state.summary(), state.tally);
    let reports: Vec<_> = state.failures.iter().map(|failure| failure.report(suite)).collect();
    assert!(reports.is_empty(), "{}", reports.join("\n"));
}

impl Run {
    fn state(&self) -> State {
        State { tally: self.tally.to_string(), ..self.state.lock().clone() }
    }

    /// Notes what is wrong with the suite as a whole.
    fn fail_whole(&self, state: &mut State, message: &str) {
        let Settings { seed, share, .. } = self.settings;
        state.failures.push(Failure {
            case: None,
            seed,
            share,
            options: String::new(),
            message: message.into(),
        });
    }

    /// Takes note of a case that does not end, if there is one.
    fn is_hanging(&self) -> bool {
        let workers = self.workers.lock();
        let mut busy = workers.iter().flatten();
        let Some((case, seed, since)) = busy.find(|(.., since)| since.elapsed() > self.suite.patience())
        else {
            return false;
        };
        let message = format!("does not end within {} s", since.elapsed().as_secs());
        let (case, seed, share, options) = (Some(case.clone()), *seed, self.settings.share, String::new());
        self.state.lock().failures.push(Failure { case, seed, share, options, message });
        true
    }

    fn work(&self, worker: usize) {
        while let Some((seed, case)) = self.next() {
            let name = case.name();
            self.workers.lock()[worker] = Some((name.clone(), seed, Instant::now()));
            let outcome = catch_unwind(AssertUnwindSafe(|| case.run(&self.tally)));
            let mut state = self.state.lock();
            match outcome {
                Ok(()) => state.passed += 1,
                Err(panic) => {
                    let (options, message) = (case.options(), explained(&*panic));
                    let share = self.settings.share;
                    state.failures.push(Failure { case: Some(name), seed, share, options, message });
                }
            }
        }
        self.workers.lock()[worker] = None;
    }

    /// The next case and the seed of its round, as long as there is reason to go on.
    fn next(&self) -> Option<(u64, Box<dyn Case>)> {
        let mut source = self.source.lock();
        loop {
            let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if source.is_over || is_late || self.state.lock().failures.len() >= FAILURES_MAX {
                return None;
            }
            let round = source.round.clone();
            // Making a case may run a schedule, which may fail.
            let made = catch_unwind(AssertUnwindSafe(|| {
                source.cases.get_or_insert_with(|| self.suite.cases(&round)).next()
            }));
            match made {
                Ok(Some(case)) => {
                    if round.wants(&case.name()) {
                        return Some((round.seed, case));
                    }
                }
                Ok(None) => {
                    source.cases = None;
                    source.round.seed += 1;
                    source.is_over = self.deadline.is_none();
                    let mut state = self.state.lock();
                    (state.rounds, state.seed) = (state.rounds + 1, source.round.seed);
                }
                Err(panic) => {
                    source.is_over = true;
                    self.fail_whole(&mut self.state.lock(), &explained(&*panic));
                }
            }
        }
    }
}

/// Panics of threads that nobody waits for.
fn unclaimed_panics(settings: &Settings) -> Vec<Failure> {
    let panics = panics::take();
    let failure = |(message, place)| Failure {
        case: None,
        seed: settings.seed,
        share: settings.share,
        options: String::new(),
        message: format!("a thread that no case waited for panicked: {message}\n(at {place})"),
    };
    panics.into_iter().map(failure).collect()
}
