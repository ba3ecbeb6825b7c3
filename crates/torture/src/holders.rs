//! Holders: each holds on to a moment of a store in its own way, and reads it to the end whatever happens to the
//! store.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use terrace::env::simulated::SimEnv;
use terrace::{Db, Iter, Snapshot, VerifyReport};

use crate::client::DIR;
use crate::options::tiny;
use crate::seed::Rng;

/// Keys that are looked up: those below [`key`] of this.
pub const KEYS: usize = 200;

pub fn key(n: usize) -> String {
    format!("{n:05}")
}

/// What a store holds.
pub type Model = BTreeMap<String, Vec<u8>>;

/// Compares all that an iterator shows with what it must.
pub fn check(iter: Iter, expected: &Model, when: &str) {
    let found = iter.map(|entry| entry.unwrap());
    let found: Model =
        found.map(|(key, value)| (String::from_utf8(key.to_vec()).unwrap(), value.to_vec())).collect();
    assert!(
        found == *expected,
        "{} keys instead of {}, or other values, {when}",
        found.len(),
        expected.len()
    );
}

/// Verifies the store, and checks that nothing is wrong and nothing is unexplained.
pub fn verified(db: &Db) -> VerifyReport {
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert_eq!((report.unexplained_bytes, report.hole_unknown_packs), (0, 0), "{report:?}");
    report
}

/// A holder of a moment of the store.
pub enum Held {
    Iterator(Box<Iter>, std::vec::IntoIter<(String, Vec<u8>)>),
    Snapshot(Snapshot, Model),
    Reader(Db, Model),
    Checkpoint(PathBuf, Model),
}

impl Held {
    /// Takes hold of the present state of `db`, which is `model`. A copy of the store gets the number `round`.
    pub fn take(db: &Db, env: &Arc<SimEnv>, model: &Model, rng: &mut Rng, round: usize) -> Self {
        match rng.below(6) {
            0 | 1 => {
                let expected: Vec<_> = model.clone().into_iter().collect();
                Self::Iterator(Box::new(db.iter().unwrap()), expected.into_iter())
            }
            2 | 3 => Self::Snapshot(db.snapshot(), model.clone()),
            4 => {
                let reader =
                    Db::builder(DIR).env(env.clone()).options(db.options()).read_only().open().unwrap();
                Self::Reader(reader, model.clone())
            }
            _ => {
                let dir = PathBuf::from(format!("/copy/{round}"));
                db.checkpoint(&dir).unwrap();
                Self::Checkpoint(dir, model.clone())
            }
        }
    }

    /// Reads a few entries more.
    pub fn read_on(&mut self, rng: &mut Rng) {
        match self {
            Self::Iterator(iter, expected) => {
                for (key, value) in expected.by_ref().take(rng.below(30)) {
                    let found = iter.advance().unwrap();
                    assert!(found == Some((key.as_bytes(), &value[..])), "an iterator shows something else");
                }
            }
            Self::Snapshot(snapshot, expected) => {
                let key = key(rng.below(KEYS));
                assert!(snapshot.get(&key).unwrap().as_deref() == expected.get(&key).map(|value| &value[..]));
            }
            Self::Reader(reader, expected) => {
                let key = key(rng.below(KEYS));
                assert!(reader.get(&key).unwrap().as_deref() == expected.get(&key).map(|value| &value[..]));
            }
            Self::Checkpoint(..) => {}
        }
    }

    /// Reads all that is left.
    pub fn read_all(self, env: &Arc<SimEnv>) {
        match self {
            Self::Iterator(mut iter, expected) => {
                for (key, value) in expected {
                    assert!(iter.advance().unwrap() == Some((key.as_bytes(), &value[..])));
                }
                assert!(iter.advance().unwrap().is_none());
            }
            Self::Snapshot(snapshot, expected) => check(snapshot.iter().unwrap(), &expected, "in a snapshot"),
            Self::Reader(reader, expected) => {
                check(reader.iter().unwrap(), &expected, "in a reader beside the writer");
                assert!(reader.verify().unwrap().problems.is_empty());
            }
            Self::Checkpoint(dir, expected) => {
                let copy = Db::builder(dir).env(env.clone()).options(tiny()).open().unwrap();
                check(copy.iter().unwrap(), &expected, "in a copy");
                verified(&copy);
            }
        }
    }
}
