//! Terrace as a store under test.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use terrace::env::Env;
use terrace::env::posix::PosixEnv;
use terrace::env::striped::{Stripe, StripedEnv};
use terrace::{Builder, Db, Durability, Options, Stats};

use super::{ByCause, Counters, Records, Store};
use crate::Result;
use crate::recording::{Event, EventLog};

/// How to open a Terrace store for a benchmark.
#[derive(Clone, Debug, Default)]
pub struct TerraceConfig {
    /// What [`super::options`] takes; the defaults when `None`.
    pub profile: Option<String>,
    /// Memory budget in bytes; the profile's when `None`.
    pub memory_bytes: Option<u64>,
    /// What the store runs on; the operating system when `None`.
    pub env: Option<Arc<dyn Env>>,
    /// Durability of every put.
    pub durability: Durability,
    /// Directories besides the store's own that get tables, each on another device.
    pub devices: Vec<PathBuf>,
    /// Directories over which packs are striped, besides that of the store.
    pub stripe: Vec<PathBuf>,
    /// Chunks for each of them in turn, that of the store first; one for each when `None`.
    pub stripe_weights: Option<Vec<u32>>,
}

/// A Terrace store that is being measured; records live in the default keyspace.
pub struct TerraceStore {
    db: Db,
    profile: String,
    events: Arc<EventLog>,
}

impl TerraceStore {
    /// Opens or creates the store in `path`.
    ///
    /// # Errors
    /// A profile that [`super::options`] refuses, directories that make no stripe, or whatever keeps the store from opening.
    pub fn open(path: &Path, config: &TerraceConfig) -> Result<Self> {
        let mut options = match &config.profile {
            None => Options::default(),
            Some(profile) => super::options(profile)?,
        };
        options.durability = config.durability;
        options.memory_bytes = config.memory_bytes.or(options.memory_bytes);
        let store = Self::build(builder(path, config)?, options)?;
        Ok(Self { profile: config.profile.clone().unwrap_or(store.profile), ..store })
    }

    /// Opens what `builder` says with `options`, and listens to it.
    ///
    /// # Errors
    /// Whatever keeps the store from opening.
    pub fn build(builder: Builder, options: Options) -> Result<Self> {
        let (profile, events) = (options.profile_name().to_owned(), Arc::new(EventLog::default()));
        let db = builder.options(options).listener(events.clone()).open()?;
        Ok(Self { db, profile, events })
    }

    /// The store itself.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.db
    }
}

/// The store in `path`, on the other devices that `config` names, or on a stripe that begins there.
fn builder(path: &Path, config: &TerraceConfig) -> Result<Builder> {
    let builder = config.devices.iter().fold(Db::builder(path), Builder::device);
    let env = config.env.clone();
    if config.stripe.is_empty() {
        return Ok(match env {
            Some(env) => builder.env(env),
            None => builder,
        });
    }
    let others: Vec<&Path> = config.stripe.iter().map(PathBuf::as_path).collect();
    let weights = config.stripe_weights.clone().unwrap_or_else(|| vec![1; others.len() + 1]);
    let stripe = Stripe { weights, ..Stripe::default() };
    let env = env.unwrap_or_else(|| PosixEnv::shared());
    Ok(builder.env(StripedEnv::new(env, path, &others, stripe)?))
}

impl Store for TerraceStore {
    fn engine(&self) -> &str {
        "terrace"
    }

    fn profile(&self) -> &str {
        &self.profile
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.get(key)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.db.put(key, value)?)
    }

    fn scan(&self, from: &[u8], limit: usize, records: &mut Records) -> Result<()> {
        let mut iter = self.db.range(from..)?;
        for _ in 0..limit {
            let Some((key, value)) = iter.advance()? else { break };
            records.push(key, value);
        }
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        Ok(self.db.wait_idle()?)
    }

    fn counters(&self) -> Counters {
        let stats = self.db.stats();
        let devices = Some(&stats.devices).filter(|devices| devices.len() > 1).into_iter().flatten();
        Counters {
            device_bytes: devices.map(|device| (device.id, device.given_bytes)).collect(),
            user_bytes_written: stats.user_bytes_written,
            written: by_cause(&stats.written),
            read: ByCause::from([
                ("get", stats.read.get),
                ("scan", stats.read.scan),
                ("compaction", stats.read.compaction),
                ("open", stats.read.open),
            ]),
            syncs: by_cause(&stats.syncs),
            stall_micros: stats.stalls.iter().map(|stall| stall.micros).sum(),
            cache_hits: stats.cache.hits,
            cache_misses: stats.cache.misses,
            space_bytes: stats.space.total_bytes,
            level_bytes: level_bytes(&stats),
            running_jobs: stats.running_flushes + stats.running_compactions,
            debt_bytes: stats.keyspaces.iter().map(|keyspace| keyspace.debt_bytes).sum(),
        }
    }

    fn events(&self) -> Vec<Event> {
        self.events.take()
    }

    fn load_samples(&self) -> Vec<(Instant, String)> {
        self.events.take_samples()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close()?)
    }
}

fn by_cause(counts: &terrace::ByCause) -> ByCause {
    ByCause::from([
        ("wal", counts.wal),
        ("flush", counts.flush),
        ("compaction", counts.compaction),
        ("rewrite", counts.rewrite),
        ("manifest", counts.manifest),
        ("directory", counts.directory),
        ("reclaim", counts.reclaim),
        ("preallocate", counts.preallocate),
    ])
}

/// By level, over all keyspaces.
fn level_bytes(stats: &Stats) -> Vec<u64> {
    let mut bytes = Vec::new();
    for level in stats.keyspaces.iter().flat_map(|keyspace| &keyspace.shape.levels) {
        bytes.resize(bytes.len().max(level.level + 1), 0);
        bytes[level.level] += level.bytes;
    }
    bytes
}
