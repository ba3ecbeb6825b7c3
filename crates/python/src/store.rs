//! What Python's objects hold of an open store.
//!
//! Every object that holds a part of a store (the store itself, a keyspace, a snapshot, an iterator) holds it in a [`Slot`].
//! So `close` can take all parts away, whoever still has the objects: the directory is free at once, as Python's users
//! expect, and later calls fail with `ClosedError`.
//!
//! In a forked child the parts are copies of memory whose threads are gone and whose files are the parent's. A slot neither
//! uses nor drops them there.
//!
//! **Locks.** A thread that waits for a slot's lock has let the interpreter's lock go. So a thread may take the
//! interpreter's lock while it has a slot's.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use pyo3::prelude::*;
use pyo3::sync::RwLockExt;

use crate::errors::{ForkedError, OrRaise, closed};

/// Id of this process; [`note_process`] keeps it.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Notes the id of this process: when the module is imported, and in each forked child.
pub fn note_process() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

/// An open store, as the slots of its parts know it.
pub struct Store {
    /// Id of the process that has opened it.
    process: u32,
    /// Set under the lock of `parts`; a child may read it, whoever had that lock.
    closed: AtomicBool,
    parts: Mutex<Parts>,
}

/// The parts of an open store.
#[derive(Default)]
struct Parts {
    /// Some may be gone.
    slots: Vec<Weak<dyn Release>>,
    /// Number of slots at which those that are gone are looked for.
    sweep_at: usize,
}

/// A slot of any type.
trait Release: Send + Sync {
    /// Drops what is in it.
    fn release(&self);
}

impl Store {
    /// A store that this process has opened.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            process: PROCESS.load(Ordering::Relaxed),
            closed: AtomicBool::new(false),
            parts: Mutex::default(),
        })
    }

    /// Fails in a child of the process that has opened the store.
    pub fn check_process(&self) -> PyResult<()> {
        if self.is_here() {
            return Ok(());
        }
        let (child, parent) = (PROCESS.load(Ordering::Relaxed), self.process);
        Err(ForkedError::new_err(format!(
            "process {child} was forked from {parent}, which had the store open: a child cannot use its parent's store. \
             Open it after the fork, or start processes with 'spawn' or 'forkserver'"
        )))
    }

    fn is_here(&self) -> bool {
        PROCESS.load(Ordering::Relaxed) == self.process
    }

    /// Whether [`Store::release`] has been called.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Drops all parts, once running calls have let go of them. Nothing is taken in afterwards.
    pub fn release(&self) {
        let slots = {
            let mut parts = self.parts();
            self.closed.store(true, Ordering::Release);
            mem::take(&mut parts.slots)
        };
        slots.iter().filter_map(Weak::upgrade).for_each(|slot| slot.release());
    }

    /// Registers a slot, unless the store is closed.
    fn adopt(&self, slot: Weak<dyn Release>) -> bool {
        let mut parts = self.parts();
        if self.is_closed() {
            return false;
        }
        if parts.slots.len() >= parts.sweep_at {
            parts.slots.retain(|slot| slot.strong_count() > 0);
            parts.sweep_at = 2 * parts.slots.len() + 16;
        }
        parts.slots.push(slot);
        true
    }

    fn parts(&self) -> std::sync::MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of an open store, shared by clones, until it is taken away.
pub struct Slot<T: Send + Sync + 'static>(Arc<Inner<T>>);

struct Inner<T: Send + Sync + 'static> {
    store: Arc<Store>,
    /// What it is, for messages.
    what: &'static str,
    value: RwLock<Option<T>>,
}

impl<T: Send + Sync + 'static> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send + Sync + 'static> Slot<T> {
    /// A slot with `value`, a part of `store`.
    pub fn new(store: &Arc<Store>, what: &'static str, value: T) -> PyResult<Self> {
        let inner = Arc::new(Inner { store: store.clone(), what, value: RwLock::new(Some(value)) });
        let slot: Arc<dyn Release> = inner.clone();
        if store.adopt(Arc::downgrade(&slot)) { Ok(Self(inner)) } else { Err(inner.gone()) }
    }

    /// The store of which it is a part.
    pub fn store(&self) -> &Arc<Store> {
        &self.0.store
    }

    /// Whether it was taken away.
    pub fn is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.store.check_process()?;
        Ok(self.0.value.read_py_attached(py).unwrap_or_else(PoisonError::into_inner).is_none())
    }

    /// Lets the interpreter's lock go and calls `call` with the part, beside other readers.
    pub fn read<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&T) -> terrace::Result<R> + Send,
    ) -> PyResult<R> {
        self.0.store.check_process()?;
        let outcome =
            py.detach(|| self.0.value.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(call));
        outcome.ok_or_else(|| self.0.gone())?.or_raise(py)
    }

    /// Lets the interpreter's lock go and calls `call` with the part, alone.
    pub fn write<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut T) -> terrace::Result<R> + Send,
    ) -> PyResult<R> {
        self.0.store.check_process()?;
        let outcome =
            py.detach(|| self.0.value.write().unwrap_or_else(PoisonError::into_inner).as_mut().map(call));
        outcome.ok_or_else(|| self.0.gone())?.or_raise(py)
    }

    /// Lets the interpreter's lock go, takes the part away and gives it to `call`.
    pub fn end<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(T) -> terrace::Result<R> + Send,
    ) -> PyResult<R> {
        self.0.store.check_process()?;
        let outcome =
            py.detach(|| self.0.value.write().unwrap_or_else(PoisonError::into_inner).take().map(call));
        outcome.ok_or_else(|| self.0.gone())?.or_raise(py)
    }

    /// Calls `call` with the part, alone, with the interpreter's lock held: for what never waits, or lets the lock go itself.
    pub fn attached<R>(&self, py: Python<'_>, call: impl FnOnce(&mut T) -> PyResult<R>) -> PyResult<R> {
        self.0.store.check_process()?;
        let mut value = self.0.value.write_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        call(value.as_mut().ok_or_else(|| self.0.gone())?)
    }

    /// Takes the part away and drops it. Nothing happens if that was done before.
    pub fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.0.store.check_process()?;
        py.detach(|| self.0.release());
        Ok(())
    }
}

impl<T: Clone + Send + Sync + 'static> Slot<T> {
    /// A handle of the part, for calls that need several parts.
    pub fn handle(&self, py: Python<'_>) -> PyResult<T> {
        self.0.store.check_process()?;
        let value = self.0.value.read_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        value.clone().ok_or_else(|| self.0.gone())
    }
}

impl<T: Send + Sync + 'static> Inner<T> {
    /// Why there is nothing here.
    fn gone(&self) -> PyErr {
        if self.store.is_closed() {
            closed("the store has been closed")
        } else {
            closed(format!("the {} has been closed", self.what))
        }
    }
}

impl<T: Send + Sync + 'static> Release for Inner<T> {
    fn release(&self) {
        let value = self.value.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(value);
    }
}

impl<T: Send + Sync + 'static> Drop for Inner<T> {
    fn drop(&mut self) {
        let mut value = self.value.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if !self.store.is_here() {
            mem::forget(value);
        } else if value.is_some() {
            // It may wait: the last handle closes the store. Without an interpreter any more, it is dropped where it is.
            let _ = Python::try_attach(|py| {
                let value = value.take();
                py.detach(move || drop(value));
            });
        }
    }
}
