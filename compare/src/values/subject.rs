//! Engines of this comparison, as the benchmark of large values wants them. All of them come to rest by the same yardstick.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use terrace_bench::Result;
use terrace_bench::values::{self, Drain, Role, SeeRow, Subject, Terrace};

use crate::process::settle;
use crate::store::{Direction, Durability, Engine, Opening, Store};

/// So long is waited for the work of the background.
const DRAIN_MAX: Duration = Duration::from_secs(180);

/// The largest memtable.
const MEMTABLE_BYTES_MAX: usize = 64 << 20;

/// How a peer is opened that has `memory_bytes` for cache and memtables: a quarter for a memtable that fills and one that is flushed
/// each, at most what is usual, and half for the cache.
fn opening(memory_bytes: u64) -> Opening {
    let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    let memtable_bytes = (memory_bytes / 4).min(MEMTABLE_BYTES_MAX);
    let cache_bytes = memory_bytes - 2 * memtable_bytes;
    Opening { cache_bytes, memtable_bytes, durability: Durability::Kill }
}

fn settled(directory: &Path) -> Result<Drain> {
    let rest = settle(directory, DRAIN_MAX)?;
    Ok(Drain { seconds: rest.time.as_secs_f64(), is_cut_off: rest.cut_off })
}

/// An engine beside Terrace.
pub struct Peer {
    engine: Engine,
    version: OnceCell<String>,
}

impl Peer {
    pub fn new(engine: Engine) -> Self {
        Self { engine, version: OnceCell::new() }
    }

    /// Version of the engine, once it was opened.
    pub fn version(&self) -> String {
        self.version.get().cloned().unwrap_or_default()
    }
}

impl values::Engine for Peer {
    fn name(&self) -> String {
        self.engine.name()
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn open(&self, path: &Path, memory_bytes: u64) -> Result<Box<dyn Subject>> {
        let store = self.engine.open(path, &opening(memory_bytes))?;
        self.version.set(self.engine.version(path)?).ok();
        Ok(Box::new(Open { store, directory: path.to_owned() }))
    }
}

struct Open {
    store: Box<dyn Store>,
    directory: PathBuf,
}

fn on(goes_on: bool) -> ControlFlow<()> {
    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

impl Subject for Open {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.store.put(key, value)?)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        Ok(self.store.delete(key)?)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.store.get(key, see)?)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.store.contains(key)?)
    }

    fn scan(&self, from: &[u8], see: SeeRow<'_>) -> Result<()> {
        Ok(self.store.scan(from, Direction::Forward, &mut |key, value| on(see(key, value)))?)
    }

    fn scan_keys(&self, from: &[u8], see: &mut dyn FnMut(&[u8]) -> bool) -> Result<()> {
        Ok(self.store.scan_keys(from, &mut |key| on(see(key)))?)
    }

    fn drain(&self) -> Result<Drain> {
        settled(&self.directory)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.store.close()?)
    }
}

/// Terrace, which comes to rest as its peers do.
pub struct Settled(pub Terrace);

impl values::Engine for Settled {
    fn name(&self) -> String {
        self.0.name()
    }

    fn role(&self) -> Role {
        self.0.role()
    }

    fn open(&self, path: &Path, memory_bytes: u64) -> Result<Box<dyn Subject>> {
        Ok(Box::new(SettledOpen { subject: self.0.open(path, memory_bytes)?, directory: path.to_owned() }))
    }
}

struct SettledOpen {
    subject: Box<dyn Subject>,
    directory: PathBuf,
}

impl Subject for SettledOpen {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.subject.put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.subject.delete(key)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.subject.get(key, see)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.subject.contains(key)
    }

    fn scan(&self, from: &[u8], see: SeeRow<'_>) -> Result<()> {
        self.subject.scan(from, see)
    }

    fn scan_keys(&self, from: &[u8], see: &mut dyn FnMut(&[u8]) -> bool) -> Result<()> {
        self.subject.scan_keys(from, see)
    }

    fn drain(&self) -> Result<Drain> {
        settled(&self.directory)
    }

    fn told_written_bytes(&self) -> Option<u64> {
        self.subject.told_written_bytes()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.subject.close()
    }
}
