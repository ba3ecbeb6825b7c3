//! The oracle: the store as it should be, with every version of every key, and which batches a power cut may take.
//!
//! A batch is identified by its number, from 1 on in the order of submission. A keyspace is identified by its id,
//! which is never reused: a name that is created again is another keyspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::RangeBounds;

use terrace::{Db, Result};

pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a store holds: name and entries of each keyspace, by id.
pub type Dump = BTreeMap<u32, (String, Entries)>;

/// The keyspace that always exists.
pub const DEFAULT: u32 = 1;

/// One operation of a batch.
#[derive(Clone, Debug)]
pub struct Change {
    pub space: u32,
    pub key: Vec<u8>,
    /// `None` removes the key.
    pub value: Option<Vec<u8>>,
}

/// Versions of a key: number of the batch, and what it did. Ascending.
type Versions = Vec<(u64, Option<Vec<u8>>)>;

/// An ordered map with versions, for each keyspace.
#[derive(Clone, Default)]
pub struct Model {
    last: u64,
    spaces: BTreeMap<u32, BTreeMap<Vec<u8>, Versions>>,
}

impl Model {
    /// Number of the newest batch.
    pub fn last(&self) -> u64 {
        self.last
    }

    pub fn add_space(&mut self, id: u32) {
        self.spaces.entry(id).or_default();
    }

    pub fn remove_space(&mut self, id: u32) {
        self.spaces.remove(&id);
    }

    /// Applies the next batch.
    pub fn apply(&mut self, changes: &[Change]) {
        self.last += 1;
        for Change { space, key, value } in changes {
            let Some(keys) = self.spaces.get_mut(space) else { continue };
            let versions = keys.entry(key.clone()).or_default();
            versions.retain(|(number, _)| *number != self.last);
            versions.push((self.last, value.clone()));
        }
    }

    /// The removals that the deletion of a range stands for, in a batch that has made `changes` so far.
    pub fn removals(&self, space: u32, range: &impl RangeBounds<[u8]>, changes: &[Change]) -> Vec<Change> {
        let known = self.spaces.get(&space).into_iter().flat_map(BTreeMap::keys);
        let put = changes.iter().filter(|change| change.space == space).map(|change| &change.key);
        let inside: BTreeSet<_> = known.chain(put).filter(|key| range.contains(&key[..])).collect();
        inside.into_iter().map(|key| Change { space, key: key.clone(), value: None }).collect()
    }

    /// The value of a key after batch `at`.
    pub fn get(&self, space: u32, key: &[u8], at: u64) -> Option<&[u8]> {
        seen(self.spaces.get(&space)?.get(key)?, at)
    }

    /// What a keyspace holds within `bounds` after batch `at`.
    pub fn entries(&self, space: u32, bounds: impl RangeBounds<[u8]>, at: u64) -> Entries {
        let Some(keys) = self.spaces.get(&space) else { return Entries::new() };
        keys.range::<[u8], _>((bounds.start_bound(), bounds.end_bound()))
            .filter_map(|(key, versions)| Some((key.clone(), seen(versions, at)?.to_vec())))
            .collect()
    }

    /// The newest batch number, `at_least` or above, after which the keyspaces of `dump` held what they hold there.
    pub fn cutoff(&self, dump: &Dump, at_least: u64) -> std::result::Result<u64, String> {
        // How many keys contradict each number, as differences between neighbours.
        let mut steps = vec![0i64; self.last as usize + 2];
        let mut example = BTreeMap::new();
        for (id, (name, entries)) in dump {
            let none = BTreeMap::new();
            let keys = self.spaces.get(id).unwrap_or(&none);
            if let Some((key, _)) = entries.iter().find(|(key, _)| !keys.contains_key(*key)) {
                return Err(format!("key {} of {name:?} was never written", show(key)));
            }
            for (key, versions) in keys {
                let found = entries.get(key);
                let mut from = 0;
                let mut value = None;
                for (until, next) in
                    versions.iter().map(|(n, v)| (*n, Some(v))).chain([(self.last + 1, None)])
                {
                    if value != found {
                        steps[from as usize] += 1;
                        steps[until as usize] -= 1;
                        let found = found.map(|value| show(value));
                        example
                            .entry(from.max(at_least))
                            .or_insert_with(|| (name.clone(), key.clone(), found));
                    }
                    (from, value) = (until, next.and_then(Option::as_ref));
                }
            }
        }
        let mut contradictions = 0;
        let mut fitting = None;
        for (number, step) in (0..=self.last).zip(steps) {
            contradictions += step;
            if contradictions == 0 {
                fitting = Some(number);
            }
        }
        match fitting {
            Some(number) if number >= at_least => Ok(number),
            Some(number) => Err(format!(
                "the store is as after batch {number} of {}, but {at_least} had been made durable",
                self.last
            )),
            None => Err(self.describe_mismatch(dump, at_least)),
        }
    }

    /// The keys that fit no common number, as far as they help.
    fn describe_mismatch(&self, dump: &Dump, at_least: u64) -> String {
        let mut text =
            format!("no prefix of the {} batches (at least {at_least}) gives what is there:", self.last);
        let mut shown = 0;
        for (id, (name, entries)) in dump {
            for (key, versions) in self.spaces.get(id).into_iter().flatten() {
                let found = entries.get(key);
                let fits = |at| seen(versions, at) == found.map(|value| &**value);
                if (at_least..=self.last).all(fits) {
                    continue;
                }
                shown += 1;
                if shown > 40 {
                    continue;
                }
                let good: Vec<u64> = (at_least..=self.last).filter(|&at| fits(at)).collect();
                let span = match good.first().zip(good.last()) {
                    Some((first, last)) => format!("batches {first} to {last}"),
                    None => "no batch".into(),
                };
                let found = found.map_or("nothing".into(), |value| show(value));
                let _ = write!(text, "\n  {name} {}: {found}, which fits {span}", show(key));
            }
        }
        text
    }

    /// Forgets the batches behind `number` and the keyspaces that `dump` does not have.
    pub fn rewind(&mut self, number: u64, dump: &Dump) {
        self.last = number;
        self.spaces.retain(|id, _| dump.contains_key(id));
        for keys in self.spaces.values_mut() {
            for versions in keys.values_mut() {
                versions.retain(|(at, _)| *at <= number);
            }
            keys.retain(|_, versions| !versions.is_empty());
        }
    }
}

fn seen(versions: &Versions, at: u64) -> Option<&[u8]> {
    versions.iter().rev().find(|(number, _)| *number <= at)?.1.as_deref()
}

/// Bytes for messages: text where it is text, cut where it is long.
pub fn show(bytes: &[u8]) -> String {
    let text: String =
        bytes.iter().take(24).flat_map(|&byte| std::ascii::escape_default(byte)).map(char::from).collect();
    if bytes.len() > 24 { format!("{text}...({})", bytes.len()) } else { text }
}

/// Everything that `db` holds.
pub fn dump(db: &Db) -> Result<Dump> {
    let mut dump = Dump::new();
    for name in db.keyspaces() {
        let Some(space) = db.existing_keyspace(&name)? else { continue };
        let mut entries = Entries::new();
        for entry in space.iter()? {
            let (key, value) = entry?;
            entries.insert(key.to_vec(), value.to_vec());
        }
        dump.insert(space.id(), (name, entries));
    }
    Ok(dump)
}
