//! Tickets: notice that a write has become durable, to wait for or to await.
//!
//! Callbacks come from a thread of the store. It enters the interpreter only to hand the outcome to the event loop, and no
//! more once the interpreter ends: [`finish`], which runs before that, waits for those that are inside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyModule;

use crate::errors::{OrRaise, exception};
use crate::store::Store;

/// Whether the interpreter is about to end.
static FINISHING: AtomicBool = AtomicBool::new(false);

/// Callbacks that are in the interpreter, or about to enter it.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Keeps callbacks out of the interpreter from now on, and waits for those inside.
pub fn finish(py: Python<'_>) {
    FINISHING.store(true, Ordering::SeqCst);
    py.detach(|| {
        while INSIDE.load(Ordering::SeqCst) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Forgets the callbacks of the parent: their thread is not in this process.
pub fn after_fork() {
    INSIDE.store(0, Ordering::SeqCst);
}

/// Counts a callback as long as it lives.
struct Inside;

impl Inside {
    fn enter() -> Option<Self> {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let inside = Self;
        (!FINISHING.load(Ordering::SeqCst)).then_some(inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Says when a buffered write has become durable, without a thread that waits for it. It can be awaited.
///
/// `Batch.write_ticket`, `Transaction.commit_ticket` and `Db.sync_ticket` return one. The sync happens even if nobody looks at the
/// ticket. If it fails, so does the ticket: whether the write survives a power cut is then unknown.
///
/// >>> db[b"key"] = b"value"
/// >>> ticket = db.sync_ticket()
/// >>> ticket.wait()  # other work first, while the disk has its
/// >>> ticket.is_durable()
/// True
///
/// >>> import asyncio
/// >>> async def durable():
/// ...     await db.sync_ticket()
/// >>> asyncio.run(durable())
#[pyclass(frozen, module = "terrace")]
pub struct Ticket {
    store: Arc<Store>,
    ticket: terrace::Ticket,
}

impl Ticket {
    /// Python's object for `ticket`, which `store` gave.
    pub fn new(store: &Arc<Store>, ticket: terrace::Ticket) -> Self {
        Self { store: store.clone(), ticket }
    }
}

#[pymethods]
impl Ticket {
    /// Whether the write is known to be durable. Does not wait.
    fn is_durable(&self) -> PyResult<bool> {
        self.store.check_process()?;
        Ok(self.ticket.is_durable())
    }

    /// Waits until the write is durable, or it is known that it will not be.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        self.store.check_process()?;
        py.detach(|| self.ticket.wait()).or_raise(py)
    }

    /// Awaits the same in asyncio's running loop.
    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.store.check_process()?;
        let event_loop = PyModule::import(py, "asyncio")?.call_method0("get_running_loop")?;
        let future = event_loop.call_method0("create_future")?;
        let (its_loop, its_future) = (event_loop.unbind(), future.clone().unbind());
        py.detach(|| self.ticket.on_durable(move |outcome| notify(&its_loop, its_future, outcome)))
            .or_raise(py)?;
        future.call_method0("__await__")
    }
}

/// Hands `outcome` to the loop of `future`.
fn notify(event_loop: &Py<PyAny>, future: Py<PyAny>, outcome: terrace::Result<()>) {
    let Some(_inside) = Inside::enter() else { return };
    Python::try_attach(|py| {
        let error = outcome.err().map(|error| exception(py, &error).into_value(py));
        let resolve = wrap_pyfunction!(resolve, py)?;
        // Fails if the loop is closed: nobody awaits the ticket any more.
        let _ = event_loop.call_method1(py, "call_soon_threadsafe", (resolve, future, error));
        PyResult::Ok(())
    });
}

/// Resolves `future`, unless that is done already, as one is that was cancelled.
#[pyfunction]
fn resolve(future: &Bound<'_, PyAny>, error: Option<Bound<'_, PyAny>>) -> PyResult<()> {
    if future.call_method0("done")?.is_truthy()? {
        return Ok(());
    }
    match error {
        None => future.call_method1("set_result", (future.py().None(),))?,
        Some(error) => future.call_method1("set_exception", (error,))?,
    };
    Ok(())
}
