//! Judges what a power cut has left of a store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use terrace::env::simulated::{SimEnv, Survival};
use terrace::format::pack::PackDirectory;
use terrace::{Db, Durability, Options};

use crate::client::{Client, Fate, History, Op, Outcome, open};
use crate::files::pack_directories;
use crate::oracle::{self, DEFAULT, Dump, Model};

/// Packs, and the directories of those that are sealed.
type Packs = BTreeMap<PathBuf, Option<PackDirectory>>;

/// Opens the store on `image`, a machine after a power cut, and compares it with `history`: acknowledged and synced
/// batches are there, and the batches that are there are the first ones up to some number, each whole. Then the store
/// goes on: it is written, loses power again, is closed and opened. Returns what was found at first.
pub fn examine(image: &Arc<SimEnv>, options: &Options, history: &History, seed: u64) -> Dump {
    let (options, history) = (options.clone(), history.clone());
    image.simulate(move |env| {
        let before = pack_directories(&env);
        let (db, found) = open_and_judge(&env, &options, &history);
        live_on(env.clone(), options, db, &found, seed);
        check_names(&before, &pack_directories(&env));
        found
    })
}

/// No pack has the name of another one that was there `before` (I9): a reader beside the writer may still have that open.
fn check_names(before: &Packs, after: &Packs) {
    for (path, sealed) in after.iter().filter_map(|(path, sealed)| Some((path, sealed.as_ref()?))) {
        let known = before.get(path);
        assert!(known.is_none_or(|known| known.as_ref() == Some(sealed)), "I9: {path:?} is used twice");
    }
}

/// Opens the store and compares it with `history`. Runs within a simulation.
fn open_and_judge(env: &Arc<SimEnv>, options: &Options, history: &History) -> (Db, Dump) {
    let db = open(env, options)
        .unwrap_or_else(|error| panic!("the store does not open: {error:?}; files: {:?}", env.files()));
    let found = oracle::dump(&db).unwrap_or_else(|error| panic!("the store cannot be read: {error:?}"));
    if let Err(wrong) = judge(&found, history) {
        panic!("{wrong}\nfiles: {:?}", env.files());
    }
    check_files(env, &db);
    verify(&db);
    (db, found)
}

fn verify(db: &Db) {
    let report = db.verify().unwrap_or_else(|error| panic!("the store cannot be verified: {error:?}"));
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// Whether `found` is what some prefix of `history`, with all that is durable, leaves.
fn judge(found: &Dump, history: &History) -> Result<(), String> {
    let mut known = Dump::new();
    for (id, (name, entries)) in found {
        match history.spaces.get(id) {
            Some((known_name, _)) if known_name != name => {
                return Err(format!("keyspace {id} is called {name:?} instead of {known_name:?}"));
            }
            Some((_, Fate::Removed)) => return Err(format!("removed keyspace {id} {name:?} is back")),
            Some(_) => {
                known.insert(*id, (name.clone(), entries.clone()));
            }
            // An unacknowledged creation of the store or of a keyspace.
            None => {
                let expected = history.creating.contains(name) || *id == DEFAULT && !history.created;
                if !expected || !entries.is_empty() {
                    return Err(format!("keyspace {id} {name:?} with {} entries is unknown", entries.len()));
                }
            }
        }
    }
    let mut durable_upto = history.durable;
    for (id, (name, fate)) in &history.spaces {
        match fate {
            _ if found.contains_key(id) => {}
            Fate::Exists => return Err(format!("keyspace {id} {name:?} is gone")),
            // The removal is durable, and so is what came before it.
            Fate::Doubtful(batches) => durable_upto = durable_upto.max(*batches),
            Fate::Removed => {}
        }
    }
    let doubtful: Vec<usize> = history
        .batches
        .iter()
        .enumerate()
        .filter_map(|(index, (_, outcome))| (*outcome == Outcome::Unknown).then_some(index))
        .collect();
    let mut first_wrong = None;
    // Every choice of the batches that came back with an error.
    for choice in 0..1u32 << doubtful.len() {
        let left_out: BTreeSet<usize> = doubtful
            .iter()
            .enumerate()
            .filter_map(|(bit, &index)| (choice >> bit & 1 == 1).then_some(index))
            .collect();
        let mut model = Model::default();
        history.spaces.keys().for_each(|&id| model.add_space(id));
        let mut durable = 0;
        for (index, (changes, outcome)) in history.batches.iter().enumerate() {
            if left_out.contains(&index) {
                continue;
            }
            model.apply(changes);
            if index < durable_upto && *outcome == Outcome::Acknowledged {
                durable = model.last();
            }
        }
        match model.cutoff(&known, durable) {
            Ok(_) => return Ok(()),
            Err(wrong) => first_wrong = first_wrong.or(Some(wrong)),
        }
    }
    Err(first_wrong.unwrap_or_default())
}

/// No orphan survives an opening, and nothing that is needed is missing.
fn check_files(env: &Arc<SimEnv>, db: &Db) {
    if db.wait_idle().is_err() {
        return;
    }
    let files: Vec<PathBuf> = env.files().into_iter().map(|(path, _)| path).collect();
    let count = |wanted: &str| files.iter().filter(|path| path.to_string_lossy().contains(wanted)).count();
    let space = db.stats().space;
    assert_eq!(count(".pack") as u64, space.pack_files + space.preallocated_files, "{files:?}");
    assert_eq!((count("MANIFEST-"), count(".new")), (1, 0), "{files:?}");
}

/// The store goes on as if nothing had happened.
fn live_on(env: Arc<SimEnv>, options: Options, db: Db, found: &Dump, seed: u64) {
    let mut client = Client::resume(env.clone(), options.clone(), db, found);
    let went_on = |step| {
        if let Err(crate::client::Stop) = step {
            panic!("the recovered store fails");
        }
    };
    let names: Vec<String> = found.values().map(|(name, _)| name.clone()).collect();
    went_on(client.put("default", format!("after/{seed}"), vec![b'a'; 300]));
    let batch: Vec<Op<'_>> =
        names.iter().map(|name| (name.as_str(), &b"synced after"[..], Some(&b"s"[..]))).collect();
    went_on(client.write(&batch, Durability::Synced));
    went_on(client.delete("default", "synced after"));

    // A second power cut, which may take the last deletion and no more.
    let survival = if seed.is_multiple_of(2) { Survival::Nothing } else { Survival::Random(seed) };
    let second = env.crash(survival);
    let (again, _) = open_and_judge(&second, &options, &client.history);
    again.close().unwrap_or_else(|error| panic!("the store does not close: {error:?}"));

    if seed.is_multiple_of(3) {
        went_on(client.flush());
    }
    went_on(client.reopen());
    verify(client.db());
    went_on(client.close());
}
