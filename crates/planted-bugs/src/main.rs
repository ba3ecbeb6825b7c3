//! `terrace-planted-bugs`: plants known bugs in the store, one at a time, and checks that the tests notice each.
//!
//! 1. [`list`] reads the bugs, and the test that must notice each, from `docs/planted-bugs.md`.
//! 2. [`suites`] builds the tests once, with the bugs compiled in (`src/planted.rs`), and runs a test with or without
//!    a bug.
//! 3. `main` first runs every test without a bug, which must pass; then each bug, whose test must fail. At the end it
//!    prints the score.
//!
//! The exit status is 0 if all bugs were caught.
#![expect(clippy::disallowed_methods, reason = "a tool beside the store, on real files and real time")]

mod list;
mod suites;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Parser;

use crate::list::{Bug, Check};
use crate::suites::{Outcome, Suites};

/// Plant known bugs in the store, one at a time, and see whether its tests notice
#[derive(Parser)]
struct Arguments {
    /// Only the bugs of these names
    #[arg(value_name = "BUG", conflicts_with = "share")]
    names: Vec<String>,

    /// So many bugs, drawn by the seed
    #[arg(long, value_name = "N")]
    share: Option<usize>,

    /// What the share is drawn by
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Tests that run at the same time [default: the number of processors]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,

    /// Longest time of a test, in seconds; one that takes longer has not noticed anything
    #[arg(long, value_name = "N", default_value_t = 300)]
    limit: u64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("terrace-planted-bugs: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all bugs were caught.
fn run(arguments: &Arguments) -> Result<bool> {
    let bugs = chosen(list::read()?, arguments)?;
    let suites = Suites::build()?;
    let jobs = arguments.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let limit = Duration::from_secs(arguments.limit);

    let checks: BTreeSet<&Check> = bugs.iter().map(|bug| &bug.check).collect();
    let checks: Vec<&Check> = checks.into_iter().collect();
    println!("{} tests without a bug", checks.len());
    let unfit = side_by_side(jobs, &checks, |check| {
        let (outcome, time) = timed(|| suites.run(check, None, limit))?;
        let fit = outcome == Outcome::Passed;
        println!("{} {:5.1} s  {check}", if fit { "passes" } else { outcome.name() }, time.as_secs_f64());
        Ok(!fit)
    })?;
    ensure!(unfit == 0, "{unfit} of the tests do not pass without a bug");

    println!("{} bugs", bugs.len());
    let caught = side_by_side(jobs, &bugs, |bug| {
        let (outcome, time) = timed(|| suites.run(&bug.check, Some(&bug.name), limit))?;
        let caught = outcome == Outcome::Failed;
        let word = if caught { "caught" } else { "NOT CAUGHT" };
        println!("{word:10} {:5.1} s  {:42} {}: {}", time.as_secs_f64(), bug.name, outcome.name(), bug.check);
        Ok(caught)
    })?;
    println!("{caught} of {} planted bugs caught", bugs.len());
    Ok(caught == bugs.len())
}

/// The bugs that are asked for.
fn chosen(mut bugs: Vec<Bug>, arguments: &Arguments) -> Result<Vec<Bug>> {
    let names = &arguments.names;
    if let Some(unknown) = names.iter().find(|name| !bugs.iter().any(|bug| bug.name == **name)) {
        bail!("docs/planted-bugs.md has no bug {unknown:?}");
    }
    if !names.is_empty() {
        bugs.retain(|bug| names.contains(&bug.name));
    }
    if let Some(share) = arguments.share {
        let mut state = arguments.seed;
        bugs.sort_by_cached_key(|_| random(&mut state));
        bugs.truncate(share);
    }
    Ok(bugs)
}

/// The next number of SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Counts the `items` of which `is_so` says yes, asked by `jobs` threads.
fn side_by_side<T: Sync>(
    jobs: usize,
    items: &[T],
    is_so: impl Fn(&T) -> Result<bool> + Sync,
) -> Result<usize> {
    let next = AtomicUsize::new(0);
    let (sender, answers) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next, is_so) = (sender.clone(), &next, &is_so);
            scope.spawn(move || {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Whoever is not listened to any more need not go on.
                    if sender.send(is_so(item)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        answers.into_iter().try_fold(0, |count, answer| Ok(count + usize::from(answer?)))
    })
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let start = Instant::now();
    Ok((work()?, start.elapsed()))
}
