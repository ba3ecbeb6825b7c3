//! What the suites on the simulated machine share.
//!
//! [`oracle`] is the store as it should be, kept outside of any disk; [`client`] is a caller that tells the oracle
//! what it was told; [`schedules`] are scripted lives of a store; [`counter`] is a
//! writer whose every moment can be told; [`recovery`] judges what a power cut has left; [`holders`] are those who hold on to a
//! moment.
#![allow(dead_code, reason = "each suite uses its part")]

pub mod client;
pub mod counter;
pub mod holders;
pub mod large_packs;
pub mod oracle;
pub mod recovery;
pub mod schedules;

use std::fmt::Display;
use std::path::PathBuf;

use terrace::env::simulated::SimEnv;
use terrace::format::pack::{PACK_TRAILER_BYTES, PackDirectory};
use terrace::{Options, PackLayout, TreeOptions};

/// The packs that a job has sealed. Others were made ahead, and hold nothing or a dead pack.
#[expect(clippy::unwrap_used, reason = "files that are listed can be read")]
pub fn sealed_packs(env: &SimEnv) -> Vec<PathBuf> {
    let is_sealed = |path: &PathBuf| {
        let bytes = env.read_file(path).unwrap();
        let trailer = bytes.get(bytes.len().checked_sub(PACK_TRAILER_BYTES)?..)?;
        let length = PackDirectory::decode_trailer(trailer).ok()?;
        let directory = PackDirectory::decode(bytes.get(bytes.len().checked_sub(length)?..)?).ok()?;
        path.ends_with(format!("{:06}.pack", directory.pack.0)).then_some(())
    };
    let files = env.files().into_iter().map(|(path, _)| path);
    files.filter(|path| path.starts_with(client::DIR) && is_sealed(path).is_some()).collect()
}

/// Options under which a few hundred entries make every kind of job run.
pub fn tiny() -> Options {
    Options {
        memtable_bytes: 16 << 10,
        wal_bytes_max: 128 << 10,
        memory_bytes: Some(4 << 20),
        tree: TreeOptions {
            table_bytes: 4 << 10,
            pack: PackLayout::Many { bytes_max: 1 << 20 },
            group_bytes: 8 << 10,
            block_bytes: 512,
            level1_bytes: 16 << 10,
            level_ratio: Some(4),
            l0_trigger: 2,
            l0_slow: 6,
            l0_stop: 10,
            ..TreeOptions::default()
        },
        ..Options::default()
    }
}

/// A seeded sequence of numbers (SplitMix64).
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
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

/// Says how to run a failed case again, if the test fails while this is alive.
pub struct Replay<D: Display>(pub D);

impl<D: Display> Drop for Replay<D> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay: {}", self.0);
        }
    }
}
