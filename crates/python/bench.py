#!/usr/bin/env python3
"""Measures Terrace beside plyvel (LevelDB), lmdb and rocksdict (RocksDB), as Python programs see them.

    pip install './crates/python[bench]'
    python crates/python/bench.py --json figures.json

Rounds are interleaved: in each, every store does every workload once, every other round in the opposite order, each in a fresh
directory and a process of its own. The table has medians. What is read is checked. No write waits for the disk.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

Pairs = list[tuple[bytes, bytes]]

# The same for all that can be told: cache, memtable, filter. No compression.
CACHE_BYTES = 512 << 20
MEMTABLE_BYTES = 64 << 20
FILTER_BITS = 10
BATCH = 1000
SHORT_SCAN = 100


class Store(Protocol):
    """A store under test. Loops are inside, so that each has but its own calls in them."""

    def __init__(self, path: Path) -> None: ...
    def put(self, pairs: Pairs) -> None: ...
    def load(self, pairs: Pairs) -> None: ...
    def ingest(self, pairs: Pairs) -> None: ...
    def settle(self) -> None: ...
    def get(self, keys: list[bytes]) -> int: ...
    def multi_get(self, keys: list[bytes]) -> int: ...
    def scan(self) -> int: ...
    def scan_short(self, starts: list[bytes]) -> int: ...
    def close(self) -> None: ...


def chunks(items: list[Any], size: int) -> Iterator[list[Any]]:
    """`items` in lists of `size`."""
    return (items[at : at + size] for at in range(0, len(items), size))


class Terrace:
    """This package."""

    def __init__(self, path: Path) -> None:
        import terrace

        options = terrace.Options(
            memory_bytes=CACHE_BYTES + 3 * MEMTABLE_BYTES,
            memtable_bytes=MEMTABLE_BYTES,
            keyspace=terrace.KeyspaceOptions(filter_bits_per_key=FILTER_BITS),
        )
        self.db = terrace.open(path, options=options)

    def put(self, pairs: Pairs) -> None:
        put = self.db.put
        for key, value in pairs:
            put(key, value)

    def load(self, pairs: Pairs) -> None:
        for chunk in chunks(pairs, BATCH):
            with self.db.batch() as batch:
                put = batch.put
                for key, value in chunk:
                    put(key, value)

    def ingest(self, pairs: Pairs) -> None:
        self.db.ingest(pairs)

    def settle(self) -> None:
        self.db.compact()
        self.db.wait_idle()

    def get(self, keys: list[bytes]) -> int:
        get = self.db.get
        return sum(get(key) is not None for key in keys)

    def multi_get(self, keys: list[bytes]) -> int:
        return sum(value is not None for chunk in chunks(keys, 100) for value in self.db.multi_get(chunk))

    def scan(self) -> int:
        return sum(1 for _ in self.db.items())

    def scan_short(self, starts: list[bytes]) -> int:
        return sum(sum(1 for _ in islice(self.db.items(start), SHORT_SCAN)) for start in starts)

    def close(self) -> None:
        self.db.close()


class Plyvel:
    """LevelDB, which has no ingest: sorted batches stand for it."""

    def __init__(self, path: Path) -> None:
        import plyvel

        self.db = plyvel.DB(
            str(path),
            create_if_missing=True,
            write_buffer_size=MEMTABLE_BYTES,
            lru_cache_size=CACHE_BYTES,
            bloom_filter_bits=FILTER_BITS,
            max_open_files=5000,
            compression=None,
        )

    def put(self, pairs: Pairs) -> None:
        put = self.db.put
        for key, value in pairs:
            put(key, value)

    def load(self, pairs: Pairs) -> None:
        for chunk in chunks(pairs, BATCH):
            with self.db.write_batch() as batch:
                put = batch.put
                for key, value in chunk:
                    put(key, value)

    ingest = load

    def settle(self) -> None:
        self.db.compact_range()

    def get(self, keys: list[bytes]) -> int:
        get = self.db.get
        return sum(get(key) is not None for key in keys)

    multi_get = get

    def scan(self) -> int:
        return sum(1 for _ in self.db.iterator())

    def scan_short(self, starts: list[bytes]) -> int:
        return sum(sum(1 for _ in islice(self.db.iterator(start=start), SHORT_SCAN)) for start in starts)

    def close(self) -> None:
        self.db.close()


class Lmdb:
    """LMDB with writes that are not synced: a transaction for each put, batch or lookup."""

    def __init__(self, path: Path) -> None:
        import lmdb

        self.env = lmdb.open(str(path), map_size=64 << 30, sync=False, metasync=False, readahead=False)

    def put(self, pairs: Pairs) -> None:
        begin = self.env.begin
        for key, value in pairs:
            with begin(write=True) as transaction:
                transaction.put(key, value)

    def load(self, pairs: Pairs) -> None:
        for chunk in chunks(pairs, BATCH):
            with self.env.begin(write=True) as transaction:
                put = transaction.put
                for key, value in chunk:
                    put(key, value)

    def ingest(self, pairs: Pairs) -> None:
        with self.env.begin(write=True) as transaction, transaction.cursor() as cursor:
            cursor.putmulti(pairs, append=True)

    def settle(self) -> None:
        self.env.sync(True)

    def get(self, keys: list[bytes]) -> int:
        begin, found = self.env.begin, 0
        for key in keys:
            with begin() as transaction:
                found += transaction.get(key) is not None
        return found

    def multi_get(self, keys: list[bytes]) -> int:
        found = 0
        for chunk in chunks(keys, 100):
            with self.env.begin() as transaction, transaction.cursor() as cursor:
                found += len(cursor.getmulti(chunk))
        return found

    def scan(self) -> int:
        with self.env.begin() as transaction, transaction.cursor() as cursor:
            return sum(1 for _ in cursor)

    def scan_short(self, starts: list[bytes]) -> int:
        rows = 0
        for start in starts:
            with self.env.begin() as transaction, transaction.cursor() as cursor:
                cursor.set_range(start)
                rows += sum(1 for _ in islice(cursor, SHORT_SCAN))
        return rows

    def close(self) -> None:
        self.env.close()


class RocksDict:
    """RocksDB, in rocksdict's raw mode."""

    def __init__(self, path: Path) -> None:
        import rocksdict

        self.rocksdict = rocksdict
        self.path = path
        self.options = rocksdict.Options(raw_mode=True)
        self.options.create_if_missing(True)
        self.options.set_write_buffer_size(MEMTABLE_BYTES)
        self.options.set_compression_type(rocksdict.DBCompressionType.none())
        self.options.set_max_open_files(5000)
        table = rocksdict.BlockBasedOptions()
        table.set_block_cache(rocksdict.Cache(CACHE_BYTES))
        table.set_bloom_filter(FILTER_BITS, False)
        self.options.set_block_based_table_factory(table)
        self.db = rocksdict.Rdict(str(path), self.options)

    def put(self, pairs: Pairs) -> None:
        put = self.db.put
        for key, value in pairs:
            put(key, value)

    def load(self, pairs: Pairs) -> None:
        for chunk in chunks(pairs, BATCH):
            batch = self.rocksdict.WriteBatch(raw_mode=True)
            put = batch.put
            for key, value in chunk:
                put(key, value)
            self.db.write(batch)

    def ingest(self, pairs: Pairs) -> None:
        file = str(self.path.with_suffix(".sst"))
        writer = self.rocksdict.SstFileWriter(options=self.options)
        writer.open(file)
        for key, value in pairs:
            writer[key] = value
        writer.finish()
        self.db.ingest_external_file([file])

    def settle(self) -> None:
        self.db.flush()
        self.db.compact_range(None, None)

    def get(self, keys: list[bytes]) -> int:
        get = self.db.get
        return sum(get(key) is not None for key in keys)

    def multi_get(self, keys: list[bytes]) -> int:
        return sum(value is not None for chunk in chunks(keys, 100) for value in self.db.get(chunk))

    def scan(self) -> int:
        return sum(1 for _ in self.db.items())

    def scan_short(self, starts: list[bytes]) -> int:
        return sum(sum(1 for _ in islice(self.db.items(from_key=start), SHORT_SCAN)) for start in starts)

    def close(self) -> None:
        self.db.close()


STORES: dict[str, tuple[type[Store], str]] = {
    "terrace": (Terrace, "terrace"),
    "plyvel": (Plyvel, "plyvel"),
    "lmdb": (Lmdb, "lmdb"),
    "rocksdict": (RocksDict, "rocksdict"),
}

WORKLOADS = {
    "put": "puts in random order, one by one",
    "load": f"the same in batches of {BATCH}",
    "ingest": "a sorted load of all records at once",
    "get": "lookups in random order",
    "get-2": "the same by two threads",
    "get-busy": "the same beside a thread that computes",
    "multi-get": "lookups of 100 keys at once",
    "scan": "a walk over everything, rows",
    f"scan-{SHORT_SCAN}": f"scans of {SHORT_SCAN} from random keys, rows",
}


def timed(call: Callable[[], object], operations: int) -> float:
    """Operations per second of `call`, which does so many."""
    started = time.perf_counter()
    call()
    return operations / (time.perf_counter() - started)


def expect(found: int, wanted: int) -> None:
    """Fails if a workload has not found what is there."""
    if found != wanted:
        raise AssertionError(f"found {found}, expected {wanted}")


def by_threads(calls: Iterable[Callable[[], object]]) -> None:
    """Runs `calls`, each in a thread."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def beside_computation(call: Callable[[], object]) -> None:
    """Runs `call` while another thread holds the interpreter's lock for as long as it may."""
    done = threading.Event()

    def compute() -> None:
        while not done.is_set():
            sum(range(10_000))

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        call()
    finally:
        done.set()
        thread.join()


def turn(kind: type[Store], directory: Path, pairs: Pairs, lookups: int) -> dict[str, float]:
    """All workloads, once, with one store: operations per second."""
    figures: dict[str, float] = {}
    count, ordered = len(pairs), sorted(pairs)
    generator = random.Random(2)
    keys = [key for key, _ in generator.choices(pairs, k=lookups)]
    absent = ordered[-SHORT_SCAN][0]
    starts = [key for key in keys if key <= absent][: lookups // SHORT_SCAN]

    for name in ("put", "ingest", "load"):
        store = kind(directory / name)
        write = getattr(store, name)
        figures[name] = timed(lambda: write(ordered if name == "ingest" else pairs), count)
        if name != "load":
            expect(store.scan(), count)
            store.close()
            shutil.rmtree(directory / name)
    store.settle()
    expect(store.get(keys), lookups)
    figures["get"] = timed(lambda: store.get(keys), lookups)
    half = lookups // 2
    figures["get-2"] = timed(
        lambda: by_threads([lambda: store.get(keys[:half]), lambda: store.get(keys[half:])]), lookups
    )
    few = keys[: lookups // 50]
    figures["get-busy"] = timed(lambda: beside_computation(lambda: store.get(few)), len(few))
    figures["multi-get"] = timed(lambda: expect(store.multi_get(keys), lookups), lookups)
    figures["scan"] = timed(lambda: expect(store.scan(), count), count)
    rows = len(starts) * SHORT_SCAN
    figures[f"scan-{SHORT_SCAN}"] = timed(lambda: expect(store.scan_short(starts), rows), rows)
    store.close()
    return figures


def child(name: str, directory: str, records: int, value_bytes: int, lookups: int, pipe: Any) -> None:
    """A turn in a process of its own."""
    generator = random.Random(1)
    pairs = [(b"%016x" % (n * 0x9E3779B97F4A7C15 % 2**64), generator.randbytes(value_bytes)) for n in range(records)]
    pipe.send(turn(STORES[name][0], Path(directory), pairs, lookups))


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Figures of every store by workload, one for each round."""
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in arguments.stores}
    context = multiprocessing.get_context("spawn")
    for number in range(arguments.rounds):
        order = arguments.stores if number % 2 == 0 else arguments.stores[::-1]
        for name in order:
            print(f"round {number + 1} of {arguments.rounds}: {name}", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=arguments.dir) as directory:
                ours, theirs = context.Pipe()
                what = (name, directory, arguments.records, arguments.value_bytes, arguments.lookups, theirs)
                process = context.Process(target=child, args=what)
                process.start()
                theirs.close()
                for workload, figure in ours.recv().items():
                    figures[name].setdefault(workload, []).append(figure)
                process.join()
    return figures


def table(figures: dict[str, dict[str, list[float]]]) -> str:
    """Medians, in thousands a second, the best in bold."""
    names = list(figures)
    lines = ["| | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for workload, words in WORKLOADS.items():
        medians = [statistics.median(figures[name][workload]) / 1000 for name in names]
        cells = [f"{median:,.1f}" if median < 100 else f"{median:,.0f}" for median in medians]
        best = medians.index(max(medians))
        cells[best] = f"**{cells[best]}**"
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measures, prints and stores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", type=lambda names: names.split(","), default=list(STORES), help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--value-bytes", type=int, default=100, help="behind keys of 16 bytes")
    parser.add_argument("--lookups", type=int, default=500_000)
    parser.add_argument("--dir", help="on the disk to measure; default: that of temporary files")
    parser.add_argument("--json", help="file for all figures")
    arguments = parser.parse_args()
    if unknown := set(arguments.stores) - set(STORES):
        parser.error(f"no such store: {', '.join(sorted(unknown))}")
    load_before = os.getloadavg()[0]
    figures = measure(arguments)
    print(table(figures))
    if arguments.json:
        about = {
            "python": platform.python_version(),
            "versions": {name: version(STORES[name][1]) for name in arguments.stores},
            "records": arguments.records,
            "value_bytes": arguments.value_bytes,
            "lookups": arguments.lookups,
            "rounds": arguments.rounds,
            "processors": os.cpu_count(),
            "load_average_before": load_before,
            "unit": "operations per second, one figure for each round",
        }
        Path(arguments.json).write_text(json.dumps({"about": about, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
