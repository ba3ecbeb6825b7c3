//! Keyspaces: created, dropped and altered, each by an edit.
//!
//! * A creation is durable before it shows. So no log record names a keyspace that the manifest does not know.
//! * A drop becomes durable and shows under the writer's lock. Until then the keyspace's log is needed. Afterwards
//!   commits and running jobs of the keyspace fail. Log records of it may remain; recovery passes over them.
//! * A change of how its tables are written is an edit too.
//!
//! [`Keyspaces`] holds the parts that this takes. No two changes run at the same time; commits and jobs go on beside them.

use std::sync::Arc;

use crate::batch::DEFAULT_KEYSPACE;
use crate::catalog::Version;
use crate::engine::jobs::context::JobContext;
use crate::engine::jobs::install::Change;
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::tree::{Tree, View, new_memtable};
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
        Ok(self.all().values().find(|tree| tree.record.name == name).cloned())
    }

    /// The keyspace `name`, created if there is none.
    pub(crate) fn create(&self, name: &str, options: &KeyspaceOptions) -> Result<Arc<Tree>> {
        options.validate()?;
        if let Some(tree) = self.find(name)? {
            return Ok(tree);
        }
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let message = format!("a keyspace's name has 1 to {NAME_BYTES_MAX} bytes, not {}", name.len());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        self.write.writer()?;
        let _changing = self.changing.lock();
        if let Some(tree) = self.find(name)? {
            return Ok(tree);
        }
        let id = self.jobs.catalog.lock().catalog.counters.keyspace;
        let record = keyspace_record(id, name, options);
        let mut change = Change {
            edit: Edit { keyspaces: vec![KeyspaceChange::Create(record.clone())], ..Edit::default() },
            ..Change::default()
        };
        change.edit.counters.keyspace = id.next();
        let installed = self.jobs.install(change);
        // Success, too, may have poisoned the store: the switch to a new manifest may have failed behind it.
        self.background.wake_writers();
        installed?;
        let version = Arc::new(Version::empty());
        let view = View {
            active: new_memtable(&self.chunks, b""),
            sealed: Vec::new(),
            version,
            buffer: None,
            dead: Arc::default(),
        };
        let tree = Arc::new(Tree::new(record, self.chunks.clone(), view));
        self.change_trees(|trees| {
            trees.insert(id, tree.clone());
        });
        Ok(tree)
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

    /// Removes the keyspace `name`.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        let writer = self.write.writer()?;
        let _changing = self.changing.lock();
        self.jobs.health.check_writable()?;
        let tree = self
            .find(name)?
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no keyspace {name:?}")))?;
        let id = tree.id();
        if id == DEFAULT_KEYSPACE {
            return Err(Error::new(ErrorKind::InvalidInput, "the keyspace \"default\" cannot be dropped"));
        }
        // Most of the log by now, without the lock that writers wait for.
        let log = writer.lock().wal.durable().clone();
        self.jobs.health.check_writable()?;
        if !planted!("dropped-before-the-log-is-synced") {
            log.sync().map_err(|error| self.jobs.alarm.poison(error))?;
        }
        {
            // Between two appends: from here on none finds the keyspace, and none of its log is needed.
            let mut writer = writer.lock();
            // What was written before must not be lost where the removal is kept: it may be the copy of what goes.
            self.write.wait_all_visible(&writer)?;
            if !planted!("dropped-before-the-log-is-synced") {
                writer.wal.durable().sync().map_err(|error| self.jobs.alarm.poison(error))?;
            }
            let edit = Edit { keyspaces: vec![KeyspaceChange::Drop(id)], ..Edit::default() };
            self.jobs.install(Change { edit, ..Change::default() })?;
            // Before any write is refused: whoever has been told that the keyspace is gone reads nothing of it.
            if !planted!("dropped-keyspace-still-read") {
                tree.mark_dropped();
            }
            self.change_trees(|trees| {
                trees.remove(&id);
            });
            writer.active_bytes = self.write.active_bytes();
        }
        // Jobs that are under way find no keyspace to install their results in.
        self.background.wait_jobs_of(id);
        // Those who wait for them need not wait any more.
        self.background.scheduler.wake_all();
        tree.clear();
        self.background.sample_load();
        self.background.wake_writers();
        Ok(())
    }

    fn change_trees(&self, change: impl Fn(&mut Trees)) {
        self.jobs.trees.rcu(|trees| {
            let mut trees = Trees::clone(trees);
            change(&mut trees);
            trees
        });
    }
}
