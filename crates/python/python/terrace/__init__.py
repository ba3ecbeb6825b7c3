"""Terrace: an embedded, persistent, sorted map from bytes to bytes.

>>> with terrace.open(path / "people.db") as people:
...     people[b"ada"] = b"Lovelace"
...     people.get(b"ada")
b'Lovelace'

Keys and values are bytes-like objects; what comes back is `bytes`. `str` is refused: a store that took "ada" would give back
b"ada", which is another key to Python.
"""

import atexit
import os

from terrace._terrace import (
    Batch,
    Cursor,
    Db,
    Ingest,
    Keyspace,
    Map,
    Snapshot,
    Ticket,
    Transaction,
    View,
    __version__,
    _after_fork,
    _finish,
    open,
    repair,
)
from terrace.errors import (
    BusyError,
    ClosedError,
    ConflictError,
    CorruptionError,
    DiskFullError,
    Error,
    ForkedError,
    InconsistentError,
    InvalidInputError,
    IoError,
    NotFoundError,
    OverBudgetError,
    PoisonedError,
    ReadOnlyError,
)
from terrace.options import KeyspaceOptions, Options

__all__ = [
    "Batch",
    "BusyError",
    "ClosedError",
    "ConflictError",
    "CorruptionError",
    "Cursor",
    "Db",
    "DiskFullError",
    "Error",
    "ForkedError",
    "InconsistentError",
    "Ingest",
    "InvalidInputError",
    "IoError",
    "Keyspace",
    "KeyspaceOptions",
    "Map",
    "NotFoundError",
    "Options",
    "OverBudgetError",
    "PoisonedError",
    "ReadOnlyError",
    "Snapshot",
    "Ticket",
    "Transaction",
    "View",
    "__version__",
    "open",
    "repair",
]

# A child process must know that it is one, and no thread of a store may call an interpreter that ends.
os.register_at_fork(after_in_child=_after_fork)
atexit.register(_finish)
