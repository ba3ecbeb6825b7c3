//! Repeatable chance: random numbers from a seed, and how a failed case reports its seed.

use std::fmt::Display;

/// A seeded sequence of numbers (SplitMix64).
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }

    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// The seed of a suite: `TERRACE_SEED`, or `default`.
pub fn seed_or(default: u64) -> u64 {
    number("TERRACE_SEED").unwrap_or(default)
}

/// The number in the environment variable `name`.
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Whether the environment variable `name` is set to something other than 0.
pub fn switched_on(name: &str) -> bool {
    number(name).is_some_and(|value| value != 0)
}

/// Whether tests run their long random schedules: `TERRACE_LONG=1`, as `.ci/run long` sets it.
pub fn is_long() -> bool {
    switched_on("TERRACE_LONG")
}

/// How many schedules a test runs: `long` of them in a long run, `brief` otherwise. The brief ones are the first of the
/// long ones.
pub fn schedules(brief: u64, long: u64) -> u64 {
    if is_long() { long } else { brief }
}

/// Says how to run a failed case again, if the test fails while this is alive.
pub struct Replay<D: Display>(pub D);

impl<D: Display> Drop for Replay<D> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay: {}", self.0);
        }
    }
}
