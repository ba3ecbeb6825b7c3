//! The interface of a suite: a family of cases that follow from a seed, and the counts that they report.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use terrace::env::sync::Mutex;

use crate::panics::message_of;
use crate::seed::Rng;

/// How much of a suite is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    All,
    /// Drawn by the seed: what a long test runs (`TERRACE_LONG=1`), and `--sample`.
    Sample,
    /// A part of the sample: what `cargo test` has time for.
    Brief,
}

/// One time through a suite. Equal rounds have equal cases, unless the suite runs in real time.
#[derive(Clone, Debug)]
pub struct Round {
    pub seed: u64,
    pub share: Share,
    /// The case, or group of cases, that is run alone. A group is what the names of its cases have before a `/`.
    pub only: Option<String>,
}

impl Round {
    /// Whether the case of that name is to be run.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| is_within(name, only))
    }

    /// Whether any case of that group may be run.
    #[must_use]
    pub fn may_want(&self, group: &str) -> bool {
        self.only.as_deref().is_none_or(|only| is_within(only, group) || is_within(group, only))
    }
}

/// Whether `name` is that of `group` or of something in it.
fn is_within(name: &str, group: &str) -> bool {
    name.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The cases of a round, made as they are asked for.
pub type Cases = Box<dyn Iterator<Item = Box<dyn Case>> + Send>;

/// A family of cases.
pub trait Suite: Sync {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// What it does, in one line.
    fn about(&self) -> &'static str;

    /// Why it cannot run on this machine, if it cannot.
    fn hindrance(&self) -> Option<String> {
        None
    }

    /// The cases of a round. Whatever share they are of, their names are the same.
    fn cases(&self, round: &Round) -> Cases;

    /// Real time that no case takes.
    fn patience(&self) -> Duration {
        Duration::from_secs(600)
    }

    /// Whether its cases would disturb each other, so that one runs at a time.
    fn is_alone(&self) -> bool {
        false
    }

    /// Checks the counts of complete rounds, and says what is missing: a suite that meets nothing proves nothing.
    ///
    /// # Errors
    ///
    /// Fails with what is missing.
    fn conclude(&self, _tally: &Tally) -> Result<(), String> {
        Ok(())
    }
}

/// A case, which can be run by itself.
pub trait Case: Send {
    /// Its name, unique in its round.
    fn name(&self) -> String;

    /// The store's options, and other details that the name does not show.
    fn options(&self) -> String;

    /// Runs it, and panics if something is wrong.
    fn run(&self, tally: &Tally);
}

/// How often each thing has been tried.
#[derive(Default)]
pub struct Tally(Mutex<BTreeMap<&'static str, u64>>);

impl Tally {
    pub fn add(&self, what: &'static str, count: u64) {
        *self.0.lock().entry(what).or_default() += count;
    }

    pub fn get(&self, what: &str) -> u64 {
        self.0.lock().get(what).copied().unwrap_or(0)
    }

    /// Fails with what has been met no more than `least` times.
    ///
    /// # Errors
    ///
    /// Fails with the first such thing.
    pub fn require(&self, whats: &[&str], least: u64) -> Result<(), String> {
        match whats.iter().find(|what| self.get(what) <= least) {
            Some(what) => Err(format!("only {} {what}; in all: {self}", self.get(what))),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (what, count)) in self.0.lock().iter().enumerate() {
            write!(f, "{}{count} {what}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Runs `try_it`; should that panic, the panic says before anything else what it was about.
pub fn within<R>(what: impl FnOnce() -> String, try_it: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(try_it)) {
        Ok(value) => value,
        Err(panic) => resume_unwind(Box::new(format!("{}: {}", what(), message_of(&*panic)))),
    }
}

/// `list` in an order drawn by the seed, so that any part of it is a sample of the whole.
pub fn shuffled<T>(mut list: Vec<T>, seed: u64) -> Vec<T> {
    let mut rng = Rng::new(seed);
    for at in (1..list.len()).rev() {
        list.swap(at, rng.below(at + 1));
    }
    list
}

/// Keeps `count` elements of `list`, one drawn from each of as many equal parts.
pub fn sample<T>(list: &mut Vec<T>, count: usize, rng: &mut Rng) {
    if list.len() <= count {
        return;
    }
    let len = list.len();
    let chosen: Vec<usize> = (0..count)
        .map(|at| {
            let (start, end) = (at * len / count, (at + 1) * len / count);
            start + rng.below(end - start)
        })
        .collect();
    let mut index = 0;
    list.retain(|_| {
        index += 1;
        chosen.binary_search(&(index - 1)).is_ok()
    });
}
