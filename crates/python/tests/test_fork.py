"""Child processes, and the end of the interpreter."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import terrace

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(work: Callable[[], None]) -> None:
    """Runs `work` in a fork of this process, and fails if it does."""
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join(60)
    alive = child.is_alive()
    if alive:
        child.kill()
    assert not alive and child.exitcode == 0


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(terrace.ForkedError, match=f"process {os.getpid()} was forked from {os.getppid()}"):
        call()


def test_a_child_is_refused_whatever_it_does_with_its_parents_store(db: terrace.Db) -> None:
    db.update({b"%04d" % n: b"value" for n in range(1000)})
    users, snapshot, transaction = db.keyspace("users"), db.snapshot(), db.transaction()
    walk, view, cursor, batch, ingest = iter(db), db.keys(), db.cursor(), db.batch(), db.ingestion()
    ticket = db.sync_ticket()
    next(walk)
    next(walk)  # what was read ahead is refused, too

    def child() -> None:
        calls: list[Callable[[], object]] = [
            lambda: db[b"0001"],
            lambda: db.put(b"a", b"b"),
            lambda: b"a" in db,
            lambda: iter(db),
            db.stats,
            db.sync,
            db.flush,
            db.close,
            db.snapshot,
            lambda: db.keyspace("users"),
            lambda: users.get(b"1"),
            lambda: snapshot[b"0001"],
            snapshot.close,
            lambda: transaction.put(b"a", b"b"),
            transaction.commit,
            transaction.rollback,
            lambda: next(walk),
            lambda: list(view),
            cursor.next,
            batch.write,
            lambda: ingest.put(b"a", b"b"),
            ingest.abort,
            ticket.wait,
            ticket.is_durable,
            ticket.__await__,
        ]
        for call in calls:
            refused(call)

    in_child(child)
    # The parent goes on as if nothing had been.
    assert next(walk) == b"0002"
    transaction[b"a"] = b"b"
    transaction.commit()
    assert db[b"a"] == b"b" and not db.verify().problems


def test_a_child_that_forgets_or_ends_harms_its_parent_in_no_way(path: Path) -> None:
    db = terrace.open(path)
    db[b"a"] = b"1"
    walk = iter(db)
    pid = os.fork()
    if pid == 0:
        # Objects are dropped in the child, by name and by the end of its interpreter.
        status = 1
        try:
            del walk
            with pytest.raises(terrace.ForkedError):
                db[b"a"] = b"2"
            del db
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    with pytest.raises(terrace.BusyError):
        terrace.open(path)
    db[b"b"] = b"2"
    db.close()
    with terrace.open(path) as again:
        assert dict(again) == {b"a": b"1", b"b": b"2"}


def test_a_child_may_open_stores_of_its_own_and_read_its_parents(db: terrace.Db, tmp_path: Path) -> None:
    db[b"a"] = b"1"

    def child() -> None:
        with terrace.open(tmp_path / "own") as own:
            own[b"a"] = b"2"
            own.sync_ticket().wait()
            assert own[b"a"] == b"2"
        with terrace.open(db.path, read_only=True) as reader:
            assert reader[b"a"] == b"1"
        with pytest.raises(terrace.BusyError):
            terrace.open(db.path)

    in_child(child)
    with terrace.open(tmp_path / "own") as own:
        assert own[b"a"] == b"2"


def test_a_grandchild_is_refused_too(db: terrace.Db) -> None:
    opener = os.getpid()

    def grandchild() -> None:
        with pytest.raises(terrace.ForkedError, match=f"process {os.getpid()} was forked from {opener}"):
            db.sync()

    in_child(lambda: in_child(grandchild))


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `script` in an interpreter of its own."""
    command = [sys.executable, "-X", "faulthandler", "-W", "error", "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_an_interpreter_that_ends_with_an_open_store_ends_well(path: Path) -> None:
    for _ in range(3):
        ended = run(
            """
            import asyncio, sys, threading, terrace

            db = terrace.open(sys.argv[1])
            db.update((b"%05d" % n, bytes(100)) for n in range(5000))
            walk, snapshot, transaction = iter(db), db.snapshot(), db.transaction()
            next(walk)

            async def leave():
                for n in range(200):
                    batch = db.batch()
                    batch[b"ticket %d" % n] = b""
                    asyncio.ensure_future(wait(batch.write_ticket()))

            async def wait(ticket):
                await ticket

            asyncio.run(leave())
            threading.Thread(target=lambda: [db.get(b"00001") for _ in range(10**9)], daemon=True).start()
            """,
            str(path),
        )
        assert (ended.returncode, ended.stderr) == (0, "")
    with terrace.open(path) as db:
        assert db.count(prefix=b"0") == 5000 and db.count(prefix=b"ticket") == 200


def test_a_panic_becomes_an_exception_and_the_process_goes_on() -> None:
    ended = run(
        """
        from terrace import _terrace

        for detached in (False, True):
            try:
                _terrace._panic(detached)
            except BaseException as panic:
                print(type(panic).__name__, panic)
        """
    )
    assert ended.returncode == 0 and ended.stdout == "PanicException on purpose\n" * 2


def test_a_killed_writer_leaves_its_writes_and_no_lock(path: Path) -> None:
    ended = run(
        """
        import os, signal, sys, terrace

        db = terrace.open(sys.argv[1])
        db[b"a"] = b"1"
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        str(path),
    )
    assert ended.returncode == -9
    with terrace.open(path) as db:
        assert db[b"a"] == b"1"
