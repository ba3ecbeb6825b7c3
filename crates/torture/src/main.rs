//! `terrace-torture`: runs any suite for as long as one likes.
//!
//! Exit status: 0 if all cases passed, 1 if one failed or none could run, 2 for wrong usage.

use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use terrace_torture::allocation::Measuring;
use terrace_torture::panics::keep_panics;
use terrace_torture::runner::{Settings, State, processors, run};
use terrace_torture::suite::{Share, Suite};
use terrace_torture::suites::{SUITES, find};

/// Damage may not lead to large allocations.
#[global_allocator]
static ALLOCATOR: Measuring = Measuring;

/// How often a line tells the progress where that is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Run Terrace into power cuts, failing calls, corruption, kills and full disks, and judge what is left
#[derive(Parser)]
#[command(name = "terrace-torture", version, after_help = EXAMPLES)]
struct Arguments {
    /// The suite to run
    #[arg(long, value_name = "NAME", required_unless_present = "list", value_parser = suite)]
    suite: Option<Named>,

    /// How long to go on, with further seeds when a round is through, as 90s, 30m or 4h; without it, one round is run
    #[arg(long, value_name = "TIME", value_parser = time)]
    budget: Option<Duration>,

    /// Seed of the first round
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Cases at the same time [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,

    /// Run this one case of the round alone
    #[arg(long, value_name = "CASE")]
    case: Option<String>,

    /// Run only a sample of the round, of which `cargo test` runs a part
    #[arg(long)]
    sample: bool,

    /// List the suites
    #[arg(long)]
    list: bool,
}

const EXAMPLES: &str = "\
Examples:
  terrace-torture --list
  terrace-torture --suite crash --budget 30m --seed 7
  terrace-torture --suite crash --seed 7 --case 'holes/Ext4Like/123'";

/// A suite that was found by its name.
#[derive(Clone)]
struct Named(&'static dyn Suite);

fn suite(name: &str) -> Result<Named, String> {
    let names: Vec<_> = SUITES.iter().map(|suite| suite.name()).collect();
    find(name).map(Named).ok_or_else(|| format!("there are {}", names.join(", ")))
}

/// Parses a length of time.
fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let number: f64 = number.parse().map_err(|error| format!("{error}"))?;
    let seconds = match unit {
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err("give it in s, m or h".into()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    if terrace_torture::writer::child() {
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::parse();
    let Some(Named(suite)) = arguments.suite else {
        for suite in SUITES {
            println!("{:10} {}", suite.name(), suite.about());
        }
        return ExitCode::SUCCESS;
    };
    if let Some(hindrance) = suite.hindrance() {
        println!("!!! SKIPPED: {hindrance}");
        println!("0 passed, 0 failed");
        return ExitCode::FAILURE;
    }
    keep_panics();
    let settings = Settings {
        seed: arguments.seed,
        share: if arguments.sample { Share::Sample } else { Share::All },
        budget: arguments.budget,
        jobs: arguments.jobs.unwrap_or_else(processors),
        only: arguments.case,
    };
    let mut display = Display::new(suite, settings.budget);
    let state = run(suite, settings, |state| display.show(state));
    display.bar.finish_and_clear();
    println!("{}: {} rounds to their end, {}", suite.name(), state.rounds, state.tally);
    println!("{}", state.summary());
    if state.failures.is_empty() && state.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What is shown while a suite runs: a line that changes, or, where there is no terminal, one now and then; and each failure.
struct Display {
    suite: &'static dyn Suite,
    budget: Option<Duration>,
    bar: ProgressBar,
    started: Instant,
    lines: u32,
    failures: usize,
}

impl Display {
    #[expect(clippy::disallowed_methods, reason = "the user's clock")]
    fn new(suite: &'static dyn Suite, budget: Option<Duration>) -> Self {
        let style = ProgressStyle::with_template("{spinner} {msg}").expect("a well-formed template");
        let bar = ProgressBar::new_spinner().with_style(style);
        Self { suite, budget, bar, started: Instant::now(), lines: 0, failures: 0 }
    }

    fn show(&mut self, state: &State) {
        for failure in &state.failures[self.failures..] {
            self.bar.suspend(|| println!("{}", failure.report(self.suite)));
        }
        self.failures = state.failures.len();
        let elapsed = self.started.elapsed();
        let budget = self.budget.map_or(String::new(), |budget| format!(" of {}", whole_seconds(budget)));
        let line = format!(
            "{}, seed {}: {}; {}; {}{budget}",
            self.suite.name(),
            state.seed,
            state.summary(),
            state.tally,
            whole_seconds(elapsed)
        );
        if stderr().is_terminal() {
            self.bar.set_message(line);
            self.bar.tick();
        } else if elapsed >= LINE_EVERY * (self.lines + 1) {
            self.lines += 1;
            eprintln!("{line}");
        }
    }
}

fn whole_seconds(time: Duration) -> String {
    format!("{}m{:02}s", time.as_secs() / 60, time.as_secs() % 60)
}
