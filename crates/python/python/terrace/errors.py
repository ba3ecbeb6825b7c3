"""Exceptions of a store: one class for each kind of error, all of them `Error`."""

from __future__ import annotations

__all__ = [
    "BusyError",
    "ClosedError",
    "ConflictError",
    "CorruptionError",
    "DiskFullError",
    "Error",
    "ForkedError",
    "InconsistentError",
    "InvalidInputError",
    "IoError",
    "NotFoundError",
    "OverBudgetError",
    "PoisonedError",
    "ReadOnlyError",
]


class Error(Exception):
    """What went wrong, where, and by its class what the caller can do about it.

    The text is that of the store's own error. `__cause__` is the earlier failure, for `PoisonedError`.

    >>> try:
    ...     db.put(bytes(70_000), b"too long a key")
    ... except terrace.Error as error:
    ...     type(error).__name__, error.file, error.offset, error.errno
    ('InvalidInputError', None, None, None)
    """

    file: str | None
    """The file that the error is about."""

    offset: int | None
    """Offset in the file, in bytes."""

    errno: int | None
    """The number of the operating system's error."""

    def __init__(
        self, message: str = "", file: str | None = None, offset: int | None = None, errno: int | None = None
    ) -> None:
        super().__init__(message)
        self.file = file
        self.offset = offset
        self.errno = errno


class InvalidInputError(Error, ValueError):
    """Fix the argument or the option; nothing was changed."""


class BusyError(Error):
    """Another handle or process has the store; wait for it or open read-only."""


class NotFoundError(Error):
    """There is no store here, or no keyspace of that name. (A key without a value is `KeyError`.)"""


class CorruptionError(Error):
    """Stored bytes are damaged; restore a backup, or see `Db.verify` and `terrace.repair`."""


class DiskFullError(Error):
    """Free space on the device; then go on."""


class OverBudgetError(Error):
    """The store's files would exceed `Options.space_bytes`; nothing was changed. Delete something and compact."""


class IoError(Error):
    """The operating system refused an operation; nothing was changed."""


class PoisonedError(Error):
    """An earlier failure has left an unknown outcome: reads go on; to write, reopen the store."""


class InconsistentError(Error):
    """A job's result contradicts what the store holds, and was refused. This is a bug in Terrace: please report it."""


class ConflictError(Error):
    """Data that a transaction depends on has changed since it began. Nothing was written; run the transaction again."""


class ClosedError(Error):
    """The store has been closed, or the snapshot, transaction or ingest has ended."""


class ReadOnlyError(Error):
    """The store was opened read-only, or its directory cannot be written."""


class ForkedError(Error):
    """The process is a fork of the one that opened the store. Open the store after the fork, or start processes with
    'spawn' or 'forkserver'."""
