//! The suite `kill`: a process that is killed at any moment loses nothing that it had acknowledged.
//!
//! The parent kills a [`writer`](crate::writer) after a seeded number of acknowledgements, or after a seeded time. It
//! then opens the store and judges it: the last record in it was acknowledged, or is the one that was being written.
//! Then the next writer goes on in the same directory. A case is such a chain of kills. Its seed makes the records
//! and the times; what a kill interrupts is chance.
//!
//! The stores of some chains have a [second device](crate::second), which the writers of some of those add, drain and remove while
//! they write.

use std::time::Duration;

use terrace::{Db, ErrorKind};

use crate::second::{Dirs, Second};
use crate::seed::Rng;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally, within};
use crate::writer::{History, Judge, When, Writer};

/// Chains of a whole round.
const CHAINS: u64 = 25;
/// And of those over two devices, which use them in three ways by turns.
const TWO_DEVICES: u64 = 27;
const SECONDS: [Second; 3] = [Second::Passing, Second::Mod2, Second::Dynamic];

/// Counts of kills of stores that may have a second device, and of those that had packs there.
const OF_TWO: &str = "kills of stores over two devices";
const ON_SECOND: &str = "of them with packs on the second";

/// The suite, with this many kills in a chain.
pub struct Kill {
    pub kills: u64,
}

/// The whole suite.
pub static KILL: Kill = Kill { kills: 40 };

impl Suite for Kill {
    fn name(&self) -> &'static str {
        "kill"
    }

    fn about(&self) -> &'static str {
        "a process that writes is killed again and again, by SIGKILL"
    }

    fn cases(&self, round: &Round) -> Cases {
        let (seed, kills) = (round.seed, self.kills);
        let (chains, two) = if round.share == Share::All { (CHAINS, TWO_DEVICES) } else { (1, 1) };
        let one = (0..chains).map(|number| (number, Second::None));
        let two = (0..two).map(|number| (number, SECONDS[number as usize % SECONDS.len()]));
        let chain = move |(number, second)| Box::new(Chain { seed, number, second, kills }) as Box<dyn Case>;
        Box::new(one.chain(two).map(chain))
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        if self.kills < 10 {
            return Ok(());
        }
        tally.require(&["records"], tally.get("kills") * 100)?;
        tally.require(&["kills of stores with packs"], tally.get("kills") / 2)?;
        // One that comes and goes is seldom there.
        tally.require(&[ON_SECOND], tally.get(OF_TWO) / 8)
    }
}

/// A store, and the processes that write to it one after the other.
struct Chain {
    seed: u64,
    number: u64,
    second: Second,
    kills: u64,
}

impl Chain {
    fn history(&self) -> History {
        History { seed: self.seed ^ self.number << 32, chain: self.number, second: self.second }
    }

    /// Runs a writer until the given moment, kills it, and returns the number of the last record that it
    /// acknowledged, if any.
    fn run_and_kill(&self, dirs: &Dirs, when: &When) -> Option<u64> {
        let mut writer = Writer::start(dirs, &self.history(), true);
        let mut acknowledgements = writer.acknowledgements();
        let last = when.wait(&mut acknowledgements);
        writer.kill();
        let last = acknowledgements.last().or(last);
        let status = writer.wait(Duration::MAX);
        assert!(!status.success() && status.code().is_none(), "the writer ended by itself: {status}");
        last
    }
}

impl Case for Chain {
    fn name(&self) -> String {
        match self.second {
            Second::None => format!("chain {}", self.number),
            second => format!("two devices/chain {}, {}", self.number, second.name()),
        }
    }

    fn options(&self) -> String {
        let (name, options) = self.history().shape();
        format!("{name}: {options:?}")
    }

    fn run(&self, tally: &Tally) {
        let mut random = Rng::new(self.history().seed);
        let dir = tempfile::tempdir().unwrap();
        let other = dir.path().join("other");
        std::fs::create_dir(&other).unwrap();
        let dirs = Dirs { home: dir.path().join("store"), other: Some(other) };
        let (mut judge, mut at) = (Judge::new(self.history()), 0);
        for kill in 0..self.kills {
            let when = When::draw(&mut random);
            let last = within(
                || format!("kill {kill}, {when:?}"),
                || {
                    let acknowledged = self.run_and_kill(&dirs, &when).unwrap_or(at);
                    assert!(acknowledged >= at, "record {acknowledged} again, after {at}");
                    judge.judge(&dirs, acknowledged..=acknowledged + 1, &mut random)
                },
            );
            tally.add("kills", 1);
            tally.add("records", last - at);
            at = last;
            tally.add("kills of stores with packs", u64::from(dirs.packs_of_home() > 0));
            if self.second != Second::None {
                tally.add(OF_TWO, 1);
                tally.add(ON_SECOND, u64::from(dirs.packs_of_second() > 0));
            }
        }
    }
}

/// A store is free for others once the process that had it is killed, and not before.
///
/// # Panics
///
/// Panics if that is not so.
pub fn check_that_kills_leave_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer =
        Writer::start(&Dirs::of_home(dir.path()), &History { seed: 7, chain: 0, second: Second::None }, true);
    // Without a reader of its pipe it would end by itself.
    let mut acknowledgements = writer.acknowledgements();
    assert!(acknowledgements.next().is_some(), "a writer that writes");
    assert_eq!(Db::open(dir.path()).unwrap_err().kind(), ErrorKind::Busy);
    drop(writer);
    Db::open(dir.path()).unwrap();
}
