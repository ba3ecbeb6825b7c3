//! The extension module `terrace._terrace`: Terrace for Python. The package around it is in `python/terrace/`.
//!
//! * [`store`]: what objects hold of an open store, and when they let it go; [`errors`], [`bytes`], [`options`] and [`record`]
//!   turn values of one language into those of the other.
//! * [`map`]: reads, from whichever [`source`]; [`view`] and [`scan`] iterate. [`keyspace`], [`snapshot`] and [`transaction`]
//!   are maps, and a [`db`] is its keyspace "default".
//! * [`batch`], [`cursor`], [`ingest`] and [`ticket`] are the rest.
//!
//! The interpreter's lock is let go around every call of the store that reads, writes or waits.

mod batch;
mod bytes;
mod cursor;
mod db;
mod errors;
mod ingest;
mod keyspace;
mod map;
mod options;
mod record;
mod records;
mod scan;
mod snapshot;
mod source;
mod store;
mod ticket;
mod transaction;
mod view;

use pyo3::prelude::*;

/// Notes that this is a child process, in which the stores of its parent must not be used.
#[pyfunction]
fn _after_fork() {
    store::note_process();
    ticket::after_fork();
}

/// Keeps the threads of all stores out of the interpreter, which is about to end.
#[pyfunction]
fn _finish(py: Python<'_>) {
    ticket::finish(py);
}

/// Panics, for the test that a panic becomes an exception: attached to the interpreter, or not.
#[pyfunction]
fn _panic(py: Python<'_>, detached: bool) {
    let panic = || panic!("on purpose");
    if detached { py.detach(panic) } else { panic() }
}

#[pymodule]
fn _terrace(module: &Bound<'_, PyModule>) -> PyResult<()> {
    store::note_process();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<cursor::Cursor>()?;
    module.add_class::<db::Db>()?;
    module.add_class::<ingest::Ingest>()?;
    module.add_class::<keyspace::Keyspace>()?;
    module.add_class::<map::Map>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<ticket::Ticket>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<view::View>()?;
    module.add_function(wrap_pyfunction!(db::open, module)?)?;
    module.add_function(wrap_pyfunction!(db::repair, module)?)?;
    module.add_function(wrap_pyfunction!(_after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(_finish, module)?)?;
    module.add_function(wrap_pyfunction!(_panic, module)?)
}
