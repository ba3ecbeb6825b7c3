"""Settings of stores and keyspaces, as plain values. They are checked when they are used."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

__all__ = ["Compression", "Durability", "Isolation", "KeyspaceOptions", "Options"]

Durability = Literal["buffered", "synced"]
"""What must hold when a write returns. A "buffered" write survives the death of the process, a "synced" one, with all
before it, a power cut."""

Isolation = Literal["snapshot", "serializable"]
"""Which writes by others make a transaction's commit fail: of what it writes, or also of what it has read."""

Compression = Literal["none", "lz4"]
"""How blocks of tables are stored."""


@dataclass(frozen=True)
class KeyspaceOptions:
    """Settings of a keyspace. `prefix` is fixed when it is created, and whether there is a `ttl`.

    >>> pages = db.keyspace("pages", terrace.KeyspaceOptions(compression="lz4"))
    >>> pages.keyspace_options().compression
    'lz4'
    """

    compression: Compression = "none"
    """Compression of table blocks."""

    filter_bits_per_key: int = 10
    """Bits of Bloom filter per key, 0 (no filter) to 20. 10 let about 1 % of lookups of absent keys through."""

    prefix: int | tuple[bytes, int] | None = None
    """By which rule keys have prefixes, so that scans within one skip tables: the first bytes, this many; or all up to and
    including the nth delimiter, as in `(b"/", 2)`."""

    separate_from: int | None = 16 << 10
    """From which size on a value lies apart from its key, in bytes; `None`: never."""

    ttl: timedelta | None = None
    """How long a value lives from its write on, in whole seconds; `None`: for ever."""


@dataclass(frozen=True)
class Options:
    """Settings of a store.

    >>> small = terrace.Options(memory_bytes=64 << 20, durability="synced")
    >>> with terrace.open(path / "small.db", options=small) as store:
    ...     store.options().memory_bytes
    67108864
    """

    durability: Durability = "buffered"
    """Durability of writes that do not ask for one of their own."""

    memory_bytes: int | None = None
    """One budget for block cache, open tables and memtables, in bytes; at least 1 MiB. `None`: a quarter of the machine's
    memory, at most 1 GiB."""

    space_bytes: int | None = None
    """Budget for tables and log on the disk, in bytes; at least 1 MiB. Writes that do not fit fail with `OverBudgetError`."""

    memtable_bytes: int = 64 << 20
    """Size at which a memtable is flushed, in bytes; 4 KiB to 4 GiB."""

    wal_bytes_max: int = 256 << 20
    """Size of the log at which the keyspace with the oldest entry in it is flushed, in bytes; at least 64 KiB."""

    reserve_bytes: int = 0
    """Bytes of a file that keeps space free for a full disk, so that deletes go on there."""

    background_threads: int | None = None
    """Threads that compact, 1 to 64. `None`: 2, on machines with one processor 1."""

    keyspace: KeyspaceOptions = field(default_factory=KeyspaceOptions)
    """Settings of the keyspace "default", used when the store is created."""

    tree: str = "default"
    """Shape of the trees: the name of a profile of the Rust library. "custom" is what no profile describes."""
