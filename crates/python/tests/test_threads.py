"""Many threads at one store, and the interpreter's lock."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import terrace

THREADS = 8


@pytest.fixture(autouse=True)
def many_switches() -> Iterator[None]:
    """Threads lose the interpreter's lock much more often than they would."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], None]) -> None:
    """Runs `work` in many threads at once."""
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, number) for number in range(THREADS)]:
            done.result(timeout=120)


def test_threads_share_an_iterator_and_each_entry_goes_to_one(db: terrace.Db) -> None:
    entries = [b"%05d" % n for n in range(20_000)]
    db.update((key, key) for key in entries)
    for walk in (iter(db.keys()), iter(db.transaction().keys())):
        seen: list[list[bytes]] = [[] for _ in range(THREADS)]
        together(lambda number: seen[number].extend(walk))
        counts = Counter(key for keys in seen for key in keys)
        assert sorted(counts) == entries and set(counts.values()) == {1}
        assert all(keys == sorted(keys) for keys in seen)


def test_threads_share_a_cursor_a_batch_and_a_transaction(db: terrace.Db) -> None:
    db.update((b"%05d" % n, b"") for n in range(THREADS * 100))
    cursor, batch, transaction = db.cursor(), db.batch(), db.transaction()
    seen: list[bytes] = []

    def work(number: int) -> None:
        for n in range(100):
            entry = cursor.next()
            assert entry is not None
            seen.append(entry[0])
            batch[b"batch %d %d" % (number, n)] = b""
            transaction[b"transaction %d %d" % (number, n)] = b""

    together(work)
    assert sorted(seen) == list(db)
    batch.write()
    transaction.commit()
    assert db.count(prefix=b"batch ") == db.count(prefix=b"transaction ") == THREADS * 100


def test_atomic_changes_are_atomic(db: terrace.Db) -> None:
    db.update((b"%04d" % n, b"") for n in range(500))
    popped: list[bytes] = []
    winners: list[int] = []

    def work(number: int) -> None:
        for n in range(500):
            if db.pop(b"%04d" % n, None) is not None:
                popped.append(b"%04d" % n)
            if db.setdefault(b"first %04d" % n, b"%d" % number) == b"%d" % number:
                winners.append(n)

    together(work)
    assert sorted(popped) == [b"%04d" % n for n in range(500)]
    assert sorted(winners) == list(range(500))


def test_conflicting_transactions_lose_no_count(db: terrace.Db) -> None:
    db[b"count"] = b"0"

    def work(_: int) -> None:
        for _ in range(50):
            while True:
                try:
                    with db.transaction() as transaction:
                        transaction[b"count"] = b"%d" % (int(transaction[b"count"]) + 1)
                    break
                except terrace.ConflictError:
                    pass

    together(work)
    assert db[b"count"] == b"%d" % (THREADS * 50)


def test_a_store_closes_under_the_feet_of_its_threads(path: Path) -> None:
    for _ in range(5):
        db = terrace.open(path)
        db.update((b"%05d" % n, bytes(100)) for n in range(2000))
        started = threading.Barrier(THREADS + 1)

        def work(number: int, db: terrace.Db = db, started: threading.Barrier = started) -> None:
            started.wait()
            with pytest.raises(terrace.ClosedError):
                while True:
                    if number % 4 == 0:
                        db[b"key"] = b"value"
                    elif number % 4 == 1:
                        list(db.items())
                    elif number % 4 == 2:
                        db.sync_ticket().wait()
                    else:
                        db.compact()

        with ThreadPoolExecutor(THREADS) as pool:
            running = [pool.submit(work, number) for number in range(THREADS)]
            started.wait()
            time.sleep(0.02)
            db.close()
            for done in running:
                done.result(timeout=120)
        with terrace.open(path) as again:
            assert again.count(prefix=b"0") == 2000


CALLS = ["get", "put", "scan", "flush", "compact", "checkpoint", "verify", "sync", "ticket", "ingest", "transaction"]


@pytest.mark.parametrize("name", CALLS)
def test_other_threads_run_while_a_call_is_in_the_store(db: terrace.Db, tmp_path: Path, name: str) -> None:
    db.update((b"%06d" % n, bytes(1000)) for n in range(2000))
    copies = (tmp_path / f"copy{n}" for n in range(10_000))
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: db[b"000007"],
        "put": lambda: db.put(b"000007", b"value"),
        "scan": db.count,
        "flush": db.flush,
        "compact": db.compact,
        "checkpoint": lambda: db.checkpoint(next(copies)),
        "verify": db.verify,
        "sync": db.sync,
        "ticket": lambda: db.sync_ticket().wait(),
        "ingest": lambda: db.ingest([(b"a", b"1")]),
        "transaction": lambda: db.transaction().commit(),
    }
    # Nobody gets the interpreter's lock but from one who lets it go.
    sys.setswitchinterval(100)
    go, ran = threading.Event(), threading.Event()

    def other() -> None:
        go.wait()
        ran.set()

    thread = threading.Thread(target=other)
    thread.start()
    go.set()
    # A quick call may have the lock back before the other thread wakes up; never so many in a row.
    for _ in range(10_000):
        calls[name]()
        if ran.is_set():
            break
    seen = ran.is_set()
    sys.setswitchinterval(1e-5)
    thread.join()
    assert seen


def test_the_lock_is_what_keeps_other_threads_from_running() -> None:
    # The test above could not fail if the lock were let go between calls.
    sys.setswitchinterval(100)
    go, ran = threading.Event(), threading.Event()

    def other() -> None:
        go.wait()
        ran.set()

    thread = threading.Thread(target=other)
    thread.start()
    go.set()
    entries: dict[bytes, bytes] = {}
    for _ in range(10_000):
        entries.get(b"000007")
    seen = ran.is_set()
    sys.setswitchinterval(1e-5)
    thread.join()
    assert not seen
