//! What the caller does: one operation after another, each drawn, and the last checks.

use std::collections::BTreeMap;
use std::ops::Bound;

use terrace::env::simulated::Survival;
use terrace::{Compression, Durability, Ingest, Keyspace, KeyspaceOptions, Prefix, WriteBatch};

use super::bounds::{as_slice, shown, starting_with};
use super::runner::{Machine, Ran, Runner};
use crate::oracle::{self, Change, show};
use crate::seed::Rng;

impl Runner {
    /// The operation of that number.
    pub fn step(&mut self, number: usize) {
        self.diary.begin(number);
        self.rng = Rng::new(Rng::new(self.seed).draw() ^ number as u64);
        match self.rng.below(1000) {
            0..420 => self.write(),
            420..430 => self.write_often(),
            430..640 => self.lookup(),
            640..720 => self.start_walk(),
            720..800 => self.walk_on(),
            800..840 => self.use_cursor(),
            840..880 => self.take_view(),
            880..920 => self.read_view(),
            920..935 => self.drop_something(),
            935..955 => self.create_or_remove(),
            955..965 => self.flush(),
            965..972 => self.compact_range(),
            972..975 => self.compact(),
            975..980 => self.wait_idle(),
            980..985 => self.sync(),
            985..991 => self.reopen(),
            991..996 => self.cut_power(),
            996..998 => self.ingest(),
            _ => self.compare("now and then"),
        }
    }

    /// The last checks.
    pub fn finish(mut self) -> Ran {
        while !self.walks.is_empty() {
            self.end_walk(0);
        }
        self.end_cursors();
        self.compare("at the end");
        self.verify();
        self.reopen();
        self.compact();
        self.compare("after a last compaction");
        self.verify();
        self.close();
        self.ran
    }

    // Opening and closing.

    fn reopen(&mut self) {
        self.note("reopen");
        self.close();
        self.open();
        self.compare("after reopening");
    }

    fn cut_power(&mut self) {
        let survival = match self.rng.below(4) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            _ => Survival::Random(self.rng.draw()),
        };
        let Machine::Simulated(env) = &self.machine else { return };
        let restarted = env.crash(survival);
        self.note(format!("power cut, {survival:?} survives"));
        self.count_jobs();
        // Nobody is interested in what the old machine still does.
        self.walks.clear();
        self.cursors.clear();
        self.views.clear();
        self.spaces.clear();
        self.db = None;
        self.machine = Machine::Simulated(restarted);
        self.open();
        let found = oracle::dump(self.db()).unwrap();
        let at_least = if survival == Survival::Everything { self.model.last() } else { self.durable };
        let kept = self.model.cutoff(&found, at_least).unwrap_or_else(|wrong| panic!("{wrong}"));
        self.ran.power_cuts += 1;
        self.ran.taken += self.model.last() - kept;
        self.model.rewind(kept, &found);
        self.durable = kept;
        self.verify();
    }

    // Writing.

    fn write(&mut self) {
        let count = *self.rng.pick(&[1, 1, 1, 1, 2, 5, 40]);
        let (mut batch, mut changes) = (WriteBatch::new(), Vec::new());
        for _ in 0..count {
            let space = self.any_space();
            if self.rng.percent(1) {
                let (from, to) = self.range_to_delete();
                batch.delete_range_in(&space, (from.clone(), to.clone()));
                changes.extend(self.model.removals(space.id(), &(as_slice(&from), as_slice(&to)), &changes));
                self.note(format!("delete {} {} .. {}", space.id(), shown(&from), shown(&to)));
                self.ran.range_deletes += 1;
                continue;
            }
            let (key, value) = (self.key(), self.value());
            match &value {
                Some(value) => batch.put_in(&space, &key, value),
                None => batch.delete_in(&space, &key),
            };
            changes.push(Change { space: space.id(), key, value });
        }
        let synced = self.rng.percent(5);
        let first = changes.first().map_or(String::new(), |change| {
            let value = change.value.as_ref().map_or("nothing".into(), |value| show(value));
            format!("{}/{} = {value}", change.space, show(&change.key))
        });
        self.note(format!("write {count}{}: {first}", if synced { ", synced" } else { "" }));
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        self.db().write_with(batch, durability).unwrap();
        self.model.apply(&changes);
        self.ran.batches += 1;
        if synced {
            self.durable = self.model.last();
        }
    }

    /// Puts and deletes into one keyspace or several at one moment, while what was written to others just before is
    /// flushed.
    fn ingest(&mut self) {
        let first = self.any_space();
        let joint = self.rng.percent(50);
        let spaces: Vec<Keyspace> =
            self.spaces.values().filter(|space| joint || space.id() == first.id()).cloned().collect();
        let (mut ingests, mut changes) = (Vec::new(), Vec::new());
        for space in &spaces {
            let count = 1 + self.rng.below(20);
            let entries: BTreeMap<_, _> = (0..count).map(|_| (self.key(), self.value())).collect();
            self.note(format!("ingest {} entries into {}", entries.len(), space.id()));
            let mut ingest = space.ingest().unwrap();
            for (key, value) in entries {
                match &value {
                    Some(value) => ingest.push(&key, value),
                    None => ingest.delete(&key),
                }
                .unwrap();
                changes.push(Change { space: space.id(), key, value });
            }
            ingests.push(ingest);
        }
        self.ran.joint_ingests += u64::from(ingests.len() > 1);
        match ingests.len() {
            1 => ingests.into_iter().try_for_each(Ingest::finish),
            _ => Ingest::finish_together(ingests),
        }
        .unwrap();
        self.model.apply(&changes);
        self.durable = self.model.last();
        self.ran.ingests += 1;
    }

    /// One of two keys again and again, so that it has more versions than readers pass by steps.
    fn write_often(&mut self) {
        let space = self.any_space();
        let key = self.rng.pick(&[&b"a"[..], b"ba"]).to_vec();
        let count = 10 + self.rng.below(30);
        self.note(format!("write {}/{} {count} times", space.id(), show(&key)));
        for _ in 0..count {
            let value =
                if self.rng.percent(10) { self.value() } else { Some(self.rng.draw().to_le_bytes().into()) };
            let mut batch = WriteBatch::new();
            match &value {
                Some(value) => batch.put_in(&space, &key, value),
                None => batch.delete_in(&space, &key),
            };
            self.db().write_with(batch, Durability::Buffered).unwrap();
            self.model.apply(&[Change { space: space.id(), key: key.clone(), value }]);
            if self.rng.percent(5) {
                self.take_view();
            }
        }
        self.ran.hot_keys += 1;
    }

    /// Mostly the keys below a common prefix; now and then anything, inverted and empty ranges included.
    fn range_to_delete(&mut self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let key = self.key();
        if key.is_empty() || self.rng.percent(20) {
            return (self.bound(), self.bound());
        }
        starting_with(&key)
    }

    fn sync(&mut self) {
        self.note("sync");
        self.db().sync().unwrap();
        self.durable = self.model.last();
    }

    fn create_or_remove(&mut self) {
        let name = *self.rng.pick(&["a", "b", "c"]);
        if let Some(space) = self.spaces.remove(name) {
            if self.rng.percent(40) {
                self.note(format!("remove keyspace {name}"));
                self.db().drop_keyspace(name).unwrap();
                self.model.remove_space(space.id());
                self.durable = self.model.last();
                self.ran.removals += 1;
                assert!(space.put("x", "y").is_err(), "a removed keyspace takes a write");
            } else {
                self.spaces.insert(name.into(), space);
            }
        } else {
            self.note(format!("create keyspace {name}"));
            let compression = *self.rng.pick(&[Compression::None, Compression::Lz4]);
            let filter_bits_per_key = *self.rng.pick(&[0, 3, 10, 20]);
            let delimited = Prefix::Delimited { delimiter: b'a', count: 1 };
            let prefix = *self.rng.pick(&[None, Some(Prefix::Fixed(2)), Some(delimited)]);
            // Of what is drawn already.
            let separate_from = [None, Some(1), Some(30)][usize::from(filter_bits_per_key) % 3];
            let options =
                KeyspaceOptions { compression, filter_bits_per_key, prefix, separate_from, ttl: None };
            let space = self.db().keyspace_with(name, options).unwrap();
            self.model.add_space(space.id());
            self.spaces.insert(name.into(), space);
        }
    }

    // Jobs.

    fn flush(&mut self) {
        self.note("flush");
        self.db().flush().unwrap();
    }

    fn compact(&mut self) {
        self.note("compact");
        self.db().compact().unwrap();
        self.check_released(u64::MAX);
    }

    fn compact_range(&mut self) {
        let space = self.any_space();
        let (from, to) = (self.bound(), self.bound());
        self.note(format!("compact {} {} .. {}", space.name(), shown(&from), shown(&to)));
        space.compact_range((from, to)).unwrap();
    }

    fn wait_idle(&mut self) {
        self.note("wait until idle");
        self.db().wait_idle().unwrap();
        self.check_released(4);
    }

    /// Checks that levels keep less than one part in `parts` for readers that have gone; the same holds for each of
    /// their tables.
    fn check_released(&self, parts: u64) {
        for keyspace in self.db().stats().keyspaces {
            let levels = &keyspace.shape.levels;
            for level in levels {
                let released = level.released_bytes;
                let is_little = released == 0 || released.saturating_mul(parts) < level.bytes;
                let (name, number) = (&keyspace.name, level.level);
                assert!(
                    is_little,
                    "{name} holds {released} bytes for nobody in level {number} of {levels:#?}"
                );
            }
        }
    }

    // Choices.

    fn value(&mut self) -> Option<Vec<u8>> {
        if self.rng.percent(25) {
            return None;
        }
        let bytes = match self.rng.below(20) {
            0 => 0,
            1 => 1500 + self.rng.below(3000),
            _ => 8 + self.rng.below(120),
        };
        let mut value = self.rng.draw().to_le_bytes()[..bytes.min(8)].to_vec();
        value.resize(bytes, b'v');
        Some(value)
    }
}
