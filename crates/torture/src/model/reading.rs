//! How the caller reads: lookups, iterators that are kept half-way, snapshots, and the whole store at once.

use std::collections::BTreeMap;

use terrace::{Keyspace, Slice};

use super::bounds::{as_slice, is_inverted, shown, starting_with};
use super::readers::{View, Walk};
use super::runner::Runner;
use crate::client::difference;
use crate::oracle::{self, DEFAULT, Dump, show};

impl Runner {
    pub(super) fn lookup(&mut self) {
        let (space, key) = (self.any_space(), self.key());
        let found = space.get(&key).unwrap();
        let expected = self.model.get(space.id(), &key, self.model.last());
        assert_eq!(found.as_deref(), expected, "{}/{}", space.name(), show(&key));
        let keys: Vec<_> = (0..self.rng.below(6)).map(|_| self.key()).collect();
        let found = space.multi_get(&keys).unwrap();
        self.check_many(&space, &keys, &found, self.model.last());
    }

    fn check_many(&self, space: &Keyspace, keys: &[Vec<u8>], found: &[Option<Slice>], at: u64) {
        assert_eq!(found.len(), keys.len());
        for (key, found) in keys.iter().zip(found) {
            let expected = self.model.get(space.id(), key, at);
            assert_eq!(found.as_deref(), expected, "{}/{} at {at}", space.name(), show(key));
        }
    }

    pub(super) fn start_walk(&mut self) {
        if self.walks.len() >= 4 {
            let oldest = self.rng.below(self.walks.len());
            return self.end_walk(oldest);
        }
        let space = self.any_space();
        let view = if self.views.is_empty() || self.rng.percent(60) {
            None
        } else {
            let view = self.rng.below(self.views.len());
            self.views[view].has(&space).then_some(view)
        };
        let at = view.map_or(self.model.last(), |view| self.views[view].at);
        let prefix = self.rng.percent(25).then(|| self.key());
        let (from, to) = prefix.as_deref().map_or_else(|| (self.bound(), self.bound()), starting_with);
        let expected = if is_inverted(&from, &to) {
            BTreeMap::new()
        } else {
            self.model.entries(space.id(), (as_slice(&from), as_slice(&to)), at)
        };
        let what = format!("{} {} .. {} at {at}", space.name(), shown(&from), shown(&to));
        self.note(format!("walk {what}"));
        let iter = match (view.map(|view| self.views[view].snapshot.keyspace(&space)), prefix) {
            (Some(view), Some(prefix)) => view.prefix(prefix),
            (Some(view), None) => view.range((from, to)),
            (None, Some(prefix)) => space.prefix(prefix),
            (None, None) => space.range((from, to)),
        };
        self.walks.push(Walk { iter: iter.unwrap(), rest: expected.into_iter().collect(), what });
        self.ran.iterators += 1;
    }

    /// Some steps of a walk that was started before.
    pub(super) fn walk_on(&mut self) {
        if self.walks.is_empty() {
            return;
        }
        let index = self.rng.below(self.walks.len());
        for _ in 0..self.rng.below(12) {
            if !self.step_walk(index) {
                self.walks.swap_remove(index);
                return;
            }
        }
    }

    pub(super) fn end_walk(&mut self, index: usize) {
        while self.step_walk(index) {}
        self.walks.swap_remove(index);
    }

    /// One step from either end; whether there was an entry.
    fn step_walk(&mut self, index: usize) -> bool {
        let (back, lending) = (self.rng.percent(40), self.rng.percent(30));
        let walk = &mut self.walks[index];
        let expected = if back { walk.rest.pop_back() } else { walk.rest.pop_front() };
        let own = |entry: (&[u8], &[u8])| (entry.0.to_vec(), entry.1.to_vec());
        let found = match (back, lending) {
            (false, true) => walk.iter.advance().unwrap().map(own),
            (true, true) => walk.iter.advance_back().unwrap().map(own),
            (false, false) => walk
                .iter
                .next()
                .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()),
            (true, false) => walk
                .iter
                .next_back()
                .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()),
        };
        let show = |entry: &Option<(Vec<u8>, Vec<u8>)>| {
            entry.as_ref().map_or("the end".into(), |(key, value)| format!("{} = {}", show(key), show(value)))
        };
        let end = if back { "back" } else { "front" };
        assert!(
            found == expected,
            "walk {} from the {end}: found {}, expected {}",
            walk.what,
            show(&found),
            show(&expected)
        );
        expected.is_some()
    }

    pub(super) fn take_view(&mut self) {
        if self.views.len() >= 3 {
            let gone = self.rng.below(self.views.len());
            self.views.swap_remove(gone);
        }
        let (snapshot, at) = (self.db().snapshot(), self.model.last());
        self.note(format!("snapshot at {at}"));
        self.views.push(View { snapshot, at, spaces: self.spaces.values().cloned().collect() });
        self.ran.snapshots += 1;
    }

    pub(super) fn read_view(&mut self) {
        if self.views.is_empty() {
            return;
        }
        let index = self.rng.below(self.views.len());
        let key = self.key();
        let keys: Vec<_> = (0..self.rng.below(6)).map(|_| self.key()).collect();
        let view = &self.views[index];
        for space in &view.spaces {
            if !self.spaces.values().any(|other| other.id() == space.id()) {
                continue;
            }
            let reader = view.snapshot.keyspace(space);
            let found = reader.get(&key).unwrap();
            let expected = self.model.get(space.id(), &key, view.at);
            assert_eq!(found.as_deref(), expected, "{}/{} at {}", space.name(), show(&key), view.at);
            self.check_many(space, &keys, &reader.multi_get(&keys).unwrap(), view.at);
        }
    }

    pub(super) fn drop_something(&mut self) {
        if self.rng.percent(50) && !self.views.is_empty() {
            let index = self.rng.below(self.views.len());
            self.views.swap_remove(index);
        } else if !self.walks.is_empty() {
            let index = self.rng.below(self.walks.len());
            self.walks.swap_remove(index);
        }
    }

    /// Everything, against the newest state of the map.
    pub(super) fn compare(&mut self, when: &str) {
        let found = oracle::dump(self.db()).unwrap();
        let at = self.model.last();
        let expected: Dump = self
            .spaces
            .iter()
            .map(|(name, space)| (space.id(), (name.clone(), self.model.entries(space.id(), .., at))))
            .collect();
        assert!(found == expected, "{when}: {}", difference(&expected, &found));
        for view in &self.views {
            let entries: oracle::Entries = view
                .snapshot
                .iter()
                .unwrap()
                .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
                .collect();
            assert!(
                entries == self.model.entries(DEFAULT, .., view.at),
                "{when}: the snapshot at {}",
                view.at
            );
        }
        if self.rng.percent(30) {
            self.verify();
        }
    }

    pub(super) fn verify(&self) {
        let report = self.db().verify().unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}
