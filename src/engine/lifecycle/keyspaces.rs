//! Keyspaces: created, dropped and altered, each by an edit, or many by one.
//!
//! * A creation is durable before it shows. So no log record names a keyspace that the manifest does not know.
//! * A drop becomes durable and shows under the writer's lock. Until then the keyspace's log is needed. Afterwards
//!   commits and running jobs of the keyspace fail. Log records of it may remain; recovery passes over them.
//! * A change of how its tables are written is an edit too.
//!
//! [`Keyspaces`] holds the parts that this takes. No two changes run at the same time; commits and jobs go on beside them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::batch::DEFAULT_KEYSPACE;
use crate::catalog::Version;
use crate::engine::jobs::context::JobContext;
use crate::engine::jobs::install::Change;
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::tree::{Tree, View, dropped, new_memtable};
use crate::engine::schedule::background::Background;
use crate::engine::shared::settings::keyspace_record;
use crate::engine::write::path::WritePath;
use crate::env::sync::OrderedMutex;
use crate::error::{Error, ErrorKind, Result};
use crate::format::edit::{Edit, KeyspaceChange, KeyspaceRecord, NAME_BYTES_MAX};
use crate::options::KeyspaceOptions;
use crate::store::memtable::ChunkPool;
use crate::types::{KeyspaceId, Ttl};

/// The keyspaces of an open store.
#[derive(Debug)]
pub(crate) struct Keyspaces {
    /// Installs the edits; has the list of the keyspaces.
    pub(in crate::engine) jobs: Arc<JobContext>,
    /// A drop stands between two appends, and is durable after what was written before it.
    pub(in crate::engine) write: Arc<WritePath>,
    /// Told of every change; its jobs of a keyspace end before that is gone.
    pub(in crate::engine) background: Arc<Background>,
    /// Memory for memtables.
    pub(in crate::engine) chunks: Arc<ChunkPool>,
    /// The ids of those that exist, by name. A name is entered after its tree is in the list, and goes before it.
    pub(in crate::engine) names: OrderedMutex<BTreeMap<String, KeyspaceId>>,
    /// Held while a keyspace comes, goes or changes.
    pub(in crate::engine) changing: OrderedMutex<()>,
}

impl Keyspaces {
    /// Those that exist, by id.
    pub(crate) fn all(&self) -> Arc<Trees> {
        self.jobs.trees()
    }

    /// The tree of a keyspace.
    pub(crate) fn tree(&self, id: KeyspaceId) -> Result<Arc<Tree>> {
        self.jobs.tree(id)
    }

    /// The keyspace `name`, if there is one.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Arc<Tree>>> {
        self.jobs.health.check_open()?;
        let id = self.names.lock().get(name).copied();
        Ok(id.and_then(|id| self.all().get(&id).cloned()))
    }

    /// The keyspace `name`, created if there is none.
    pub(crate) fn create(&self, name: &str, options: &KeyspaceOptions) -> Result<Arc<Tree>> {
        let mut trees = self.create_all(&[name], options)?;
        trees.pop().ok_or_else(dropped)
    }

    /// The keyspaces `names`, in their order. Those that there are none of are created, by one edit.
    pub(crate) fn create_all(&self, names: &[&str], options: &KeyspaceOptions) -> Result<Vec<Arc<Tree>>> {
        options.validate()?;
        let found = |name: &&str| self.find(name).transpose();
        // Without the lock, where all are there.
        let trees: Vec<_> = names.iter().filter_map(found).collect::<Result<_>>()?;
        if trees.len() == names.len() {
            return Ok(trees);
        }
        if let Some(name) = names.iter().find(|name| name.is_empty() || name.len() > NAME_BYTES_MAX) {
            let message = format!("a keyspace's name has 1 to {NAME_BYTES_MAX} bytes, not {}", name.len());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        self.write.writer()?;
        let _changing = self.changing.lock();
        let mut new: Vec<&str> = Vec::new();
        for name in names {
            if self.find(name)?.is_none() {
                new.push(name);
            }
        }
        new.sort_unstable();
        new.dedup();
        if !new.is_empty() {
            self.create_new(&new, options)?;
        }
        names.iter().map(|name| self.find(name)?.ok_or_else(dropped)).collect()
    }

    /// Creates `names`, none of which is there.
    fn create_new(&self, names: &[&str], options: &KeyspaceOptions) -> Result<()> {
        let mut id = self.jobs.catalog.lock().catalog.counters.keyspace;
        let mut records = Vec::with_capacity(names.len());
        for name in names {
            records.push(keyspace_record(id, name, options));
            id = id.next();
        }
        let keyspaces = records.iter().flat_map(KeyspaceChange::creating).collect();
        let mut change = Change { edit: Edit { keyspaces, ..Edit::default() }, ..Change::default() };
        change.edit.counters.keyspace = id;
        let installed = self.jobs.install(change);
        // Success, too, may have poisoned the store: the switch to a new manifest may have failed behind it.
        self.background.wake_writers();
        installed?;
        let new_tree = |record| {
            let version = Arc::new(Version::empty());
            let active = new_memtable(&self.chunks, b"");
            Arc::new(Tree::new(
                record,
                self.chunks.clone(),
                View { active, sealed: Vec::new(), version, buffer: None, dead: Arc::default() },
            ))
        };
        let created: Vec<_> = records.into_iter().map(new_tree).collect();
        self.change_trees(|trees| {
            created.iter().for_each(|tree| _ = trees.insert(tree.id(), tree.clone()));
        });
        created.iter().for_each(|tree| tree.tell(&self.background.changes));
        let mut names = self.names.lock();
        names.extend(created.iter().map(|tree| (tree.record.name.clone(), tree.id())));
        Ok(())
    }

    /// As [`JobContext::record_of`](crate::engine::jobs::context::JobContext::record_of).
    pub(crate) fn record_of(&self, tree: &Tree) -> Arc<KeyspaceRecord> {
        self.jobs.record_of(tree)
    }

    /// Changes the options by which a keyspace's tables are written from now on, and its time to live. The change is
    /// durable when this returns. No table is written for it; each table says how it was written.
    pub(crate) fn alter(&self, tree: &Tree, options: &KeyspaceOptions) -> Result<()> {
        self.jobs.health.check_open()?;
        options.validate()?;
        let writer = self.write.writer()?;
        let _changing = self.changing.lock();
        tree.check_exists()?;
        let before = self.record_of(tree);
        let record = keyspace_record(before.id, &before.name, options);
        let refused = |message| Err(Error::new(ErrorKind::InvalidInput, message));
        if record.prefix != before.prefix {
            return refused("option prefix of a keyspace is fixed when it is created");
        }
        let KeyspaceRecord { id: keyspace, lz4, filter_bits, .. } = record;
        let mut keyspaces = Vec::new();
        if (lz4, filter_bits) != (before.lz4, before.filter_bits) {
            keyspaces.push(KeyspaceChange::Alter { keyspace, lz4, filter_bits });
        }
        if record.separate_from != before.separate_from {
            keyspaces.push(KeyspaceChange::SetSeparation { keyspace, from: record.separate_from });
        }
        let altered = match (before.ttl, record.ttl) {
            (Some(ttl), Some(wanted)) if ttl.seconds == wanted.seconds => None,
            (None, None) => None,
            (Some(ttl), Some(wanted)) => {
                // What was written before must not be lost where this is kept: it may be the copy of what expires now.
                self.jobs.health.check_writable()?;
                let log = writer.lock().wal.durable().clone();
                if !planted!("shorter-life-before-the-log-is-synced") {
                    log.sync().map_err(|error| self.jobs.alarm.poison(error))?;
                }
                Some((ttl, self.jobs.clock.alter_ttl(tree, ttl, wanted)))
            }
            _ => {
                return refused(
                    "option ttl of a keyspace can be changed, but not come or go once that is created",
                );
            }
        };
        keyspaces.extend(altered.map(|(_, ttl)| KeyspaceChange::SetTtl { keyspace, ttl }));
        if keyspaces.is_empty() {
            return Ok(());
        }
        let installed = self.install(keyspaces);
        if let Some((before, after)) = altered {
            // Whether the edit is durable or not, what jobs were told meanwhile goes with either; and in a poisoned
            // store nothing is removed any more.
            if installed.is_ok() || !self.jobs.health.is_poisoned() {
                tree.ttl.set(if installed.is_ok() { after } else { before });
            }
            self.background.scheduler.wake_all();
        }
        installed
    }

    /// Gives a new keyspace the time to live of the one that it is a copy of. What has expired there has expired here.
    /// The clock of that store may have been ahead: what is written from now on has not expired.
    pub(in crate::engine) fn inherit_ttl(&self, tree: &Tree, ttl: Ttl) -> Result<()> {
        if self.record_of(tree).ttl == Some(ttl) {
            return Ok(());
        }
        self.jobs.clock.see(ttl.alive_from);
        self.install(vec![KeyspaceChange::SetTtl { keyspace: tree.id(), ttl }])?;
        tree.ttl.set(ttl);
        Ok(())
    }

    fn install(&self, keyspaces: Vec<KeyspaceChange>) -> Result<()> {
        let edit = Edit { keyspaces, ..Edit::default() };
        let installed = self.jobs.install(Change { edit, ..Change::default() });
        // As after a creation.
        self.background.wake_writers();
        installed
    }

    /// Removes the keyspaces `names`, all of them by one edit, or none.
    pub(crate) fn remove(&self, names: &[&str]) -> Result<()> {
        let writer = self.write.writer()?;
        let _changing = self.changing.lock();
        self.jobs.health.check_writable()?;
        let trees = self.to_remove(names)?;
        if trees.is_empty() {
            return Ok(());
        }
        // Most of the log by now, without the lock that writers wait for.
        let log = writer.lock().wal.durable().clone();
        self.jobs.health.check_writable()?;
        if !planted!("dropped-before-the-log-is-synced") {
            log.sync().map_err(|error| self.jobs.alarm.poison(error))?;
        }
        {
            // Between two appends: from here on none finds the keyspaces, and none of their log is needed.
            let mut writer = writer.lock();
            // What was written before must not be lost where the removal is kept: it may be the copy of what goes.
            self.write.wait_all_visible(&writer)?;
            if !planted!("dropped-before-the-log-is-synced") {
                writer.wal.durable().sync().map_err(|error| self.jobs.alarm.poison(error))?;
            }
            let keyspaces = trees.keys().map(|id| KeyspaceChange::Drop(*id)).collect();
            let edit = Edit { keyspaces, ..Edit::default() };
            self.jobs.install(Change { edit, ..Change::default() })?;
            // Before any write is refused: whoever has been told that a keyspace is gone reads nothing of it.
            if !planted!("dropped-keyspace-still-read") {
                trees.values().for_each(|tree| tree.mark_dropped());
            }
            self.forget(&trees);
            writer.active_bytes = self.write.active_bytes();
        }
        // Jobs that are under way find no keyspace to install their results in.
        trees.keys().for_each(|id| self.background.wait_jobs_of(*id));
        // Those who wait for them need not wait any more.
        self.background.scheduler.wake_all();
        trees.values().for_each(|tree| tree.clear());
        self.background.sample_load();
        self.background.wake_writers();
        Ok(())
    }

    /// The keyspaces `names`, which are to be removed.
    fn to_remove(&self, names: &[&str]) -> Result<BTreeMap<KeyspaceId, Arc<Tree>>> {
        let mut trees = BTreeMap::new();
        for name in names {
            let tree = self
                .find(name)?
                .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no keyspace {name:?}")))?;
            if tree.id() == DEFAULT_KEYSPACE {
                let message = "the keyspace \"default\" cannot be dropped";
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            trees.insert(tree.id(), tree);
        }
        Ok(trees)
    }

    /// Takes `gone` out of the lists of keyspaces.
    fn forget(&self, gone: &BTreeMap<KeyspaceId, Arc<Tree>>) {
        let mut names = self.names.lock();
        gone.values().for_each(|tree| _ = names.remove(&tree.record.name));
        drop(names);
        self.change_trees(|trees| gone.keys().for_each(|id| _ = trees.remove(id)));
        gone.keys().for_each(|id| self.background.changes.note_gone(*id));
    }

    fn change_trees(&self, change: impl Fn(&mut Trees)) {
        self.jobs.trees.rcu(|trees| {
            let mut trees = Trees::clone(trees);
            change(&mut trees);
            trees
        });
    }
}
