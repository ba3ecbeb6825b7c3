//! Opens a damaged store, reads all of it in every way, and compares the answers with the history.

use terrace::env::simulated::{SimEnv, Survival};
use terrace::{Db, Error, ErrorKind};

use super::store::{DIR, History, Image, KEYS, KEYSPACES, MARKER, unflushed};

/// The behaviour of a damaged store.
#[derive(Debug)]
pub enum Seen {
    /// It did not open.
    Refused(Error),
    /// It opened.
    Opened {
        /// All records up to this one are there and no later one.
        record: usize,
        /// What a check of the whole store found.
        problems: Vec<Error>,
        /// Reads that failed.
        failed: usize,
    },
}

/// The behaviour that a damage must lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// Opening fails.
    Refused,
    /// Opening fails, a check finds the damage, or nothing is missing.
    NoticedOrComplete,
    /// Opening fails, or a check finds the damage; reads that touch it fail, the others are right.
    Noticed,
    /// The store is whole up to this record, and reports no problem.
    Intact(usize),
}

impl Expected {
    pub fn check(self, seen: &Seen) {
        let right = match (self, seen) {
            (Self::Refused | Self::NoticedOrComplete | Self::Noticed, Seen::Refused(_)) => true,
            (Self::NoticedOrComplete, Seen::Opened { problems, failed, .. }) => {
                !problems.is_empty() || *failed == 0
            }
            (Self::Noticed, Seen::Opened { problems, .. }) => !problems.is_empty(),
            (Self::Intact(expected), Seen::Opened { record, problems, failed: 0 }) => {
                problems.is_empty() && expected == *record
            }
            _ => false,
        };
        assert!(right, "expected {self:?}, not {seen:?}");
    }
}

/// Reads the store without changing it.
pub fn look(image: &Image) -> Seen {
    let opened = Db::builder(DIR).env(image.env.clone()).options(unflushed()).read_only().open();
    match opened {
        Ok(db) => examine(&db, image),
        Err(error) => {
            check_error(&error);
            Seen::Refused(error)
        }
    }
}

/// Opens the store as its owner would: what can be read must be what [`look`] has `seen`, also after another write and
/// another opening; a refusal must leave every file as it is.
pub fn own(image: &Image, seen: &Seen) {
    let env = image.env.crash(Survival::Everything);
    let before = contents(&env);
    let open = || Db::builder(DIR).env(env.clone()).options(unflushed()).open();
    match (open(), seen) {
        (Err(error), Seen::Refused(_)) => {
            check_error(&error);
            assert!(before == contents(&env), "a refused opening has changed a file");
        }
        (Ok(db), Seen::Opened { record, problems, failed }) => {
            let same = |db: &Db| match examine(db, image) {
                Seen::Opened { record: now, problems: found, failed: f } => {
                    now == *record && found.len() == problems.len() && f == *failed
                }
                Seen::Refused(_) => false,
            };
            // A compaction may stumble over the damage meanwhile, but then it changes nothing.
            assert!(same(&db), "the owner reads something else");
            db.put("~~", "written after the damage").unwrap();
            db.close().unwrap();
            let db = open().unwrap_or_else(|error| panic!("{error} at the second opening"));
            assert_eq!(db.get("~~").unwrap().unwrap(), "written after the damage");
            db.delete("~~").unwrap();
            assert!(same(&db), "the owner reads something else after a write");
        }
        (Ok(_), Seen::Refused(error)) => panic!("the owner gets in, a reader does not: {error:?}"),
        (Err(error), seen) => panic!("a reader sees {seen:?}, the owner {error:?}"),
    }
}

/// Every file that holds data.
fn contents(env: &SimEnv) -> Vec<(String, Vec<u8>)> {
    let files = env.files().into_iter().filter(|(path, _)| !path.ends_with("LOCK"));
    files.map(|(path, _)| (path.display().to_string(), env.read_file(&path).unwrap())).collect()
}

/// Checks that an error about damage says where it is.
fn check_error(error: &Error) {
    let placed = error.file().is_some_and(|file| file.starts_with(DIR)) && error.offset().is_some();
    assert!(error.kind() == ErrorKind::Corruption && placed, "{error:?}");
}

fn examine(db: &Db, image: &Image) -> Seen {
    let complete = image.history.len();
    let mut failed = 0;
    let mut note = |error: &Error| {
        check_error(error);
        failed += 1;
    };
    let record = match db.get(MARKER) {
        Ok(Some(value)) => std::str::from_utf8(&value).unwrap().parse().unwrap(),
        Ok(None) => 0,
        // Only tables fail at a get, and they hold none of the latest records.
        Err(error) => {
            note(&error);
            complete
        }
    };
    let prefix;
    let state = if record == complete {
        &image.complete
    } else {
        prefix = History::state(&image.history, record);
        &prefix
    };
    assert_eq!(db.keyspaces(), KEYSPACES);
    for (name, expected) in KEYSPACES.iter().zip(state) {
        let keyspace = db.existing_keyspace(name).unwrap().unwrap();
        scan(keyspace.iter().unwrap(), expected.iter()).as_ref().map(&mut note);
        scan(keyspace.iter().unwrap().rev(), expected.iter().rev()).as_ref().map(&mut note);
        for n in 0..KEYS {
            let key = format!("key{n:03}");
            match keyspace.get(&key) {
                Ok(found) => {
                    let expected = expected.get(key.as_bytes()).map(Vec::as_slice);
                    assert_eq!(found.as_deref(), expected, "{name} {key}");
                }
                Err(error) => note(&error),
            }
        }
    }
    let problems = db.verify().unwrap().problems;
    problems.iter().for_each(check_error);
    Seen::Opened { record, problems, failed }
}

/// A scan shows the expected entries in order up to its end, or up to the error that it returns.
fn scan<'a>(
    found: impl Iterator<Item = terrace::Result<(terrace::Slice, terrace::Slice)>>,
    mut expected: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>,
) -> Option<Error> {
    for entry in found {
        match entry {
            Ok((key, value)) => {
                let expected = expected.next();
                let same = expected.is_some_and(|(k, v)| key == k.as_slice() && value == v.as_slice());
                assert!(same, "a scan shows {key:?} {value:?} instead of {expected:?}");
            }
            Err(error) => return Some(error),
        }
    }
    assert_eq!(expected.next(), None::<(&Vec<u8>, &Vec<u8>)>, "a scan ends early");
    None
}
