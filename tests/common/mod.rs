//! Shared by the tests of damage, processes and threads: a seed that is printed when a test fails, random numbers
//! from it, options under which a few hundred records make every kind of job run, a machine whose threads take turns,
//! and waiting in real time.
#![allow(dead_code, reason = "each program of tests uses its own part")]

use std::sync::Arc;
use std::time::Duration;

use terrace::env::posix::PosixEnv;
use terrace::env::simulated::{SimConfig, SimEnv};
use terrace::tree::PackLayout;
use terrace::{Options, TreeOptions};
use terrace_torture::TreeParts as _;

/// The seed of a test. Printed on failure, and taken from `TERRACE_SEED` to repeat the failure.
pub struct Seed(pub u64);

impl Seed {
    pub fn new(default: u64) -> Self {
        Self(number("TERRACE_SEED").unwrap_or(default))
    }

    pub fn random(&self) -> Random {
        Random(self.0)
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with TERRACE_SEED={}", self.0);
        }
    }
}

/// The number in an environment variable.
pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Options under which a few hundred records fill several levels.
pub fn tiny() -> Options {
    Options {
        memtable_bytes: 8 << 10,
        wal_bytes_max: 64 << 10,
        memory_bytes: Some(1 << 20),
        background_threads: Some(1),
        tree: TreeOptions::default().with(|tree| {
            tree.set_ratio(Some(4));
            tree.tables().table_bytes = 5 << 10;
            tree.files.packs = PackLayout::Many { bytes_max: 1 << 20 };
            tree.group().bytes = 0;
            tree.block_bytes = 512;
            *tree.level1_bytes() = 8 << 10;
        }),
        ..Options::default()
    }
}

/// Runs `test` on a simulated machine whose threads take turns: what the store's threads do, and in which order, follows from the
/// seed, whatever else the processors have to do. No time passes by itself.
pub fn scheduled(test: impl FnOnce(Arc<SimEnv>) + Send + 'static) {
    SimEnv::run(SimConfig::default(), test);
}

/// Real time within which threads do what they have to, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(600);

/// Waits in real time until `is_so`; whether that came.
pub fn eventually(is_so: impl Fn() -> bool) -> bool {
    let env = PosixEnv::shared();
    let start = env.now();
    loop {
        // The condition is looked at once more when the time is up.
        let is_late = env.now() - start > PATIENCE;
        let is_so = is_so();
        if is_so || is_late {
            return is_so;
        }
        env.sleep(Duration::from_millis(1));
    }
}
