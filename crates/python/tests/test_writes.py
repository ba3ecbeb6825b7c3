"""Batches, transactions, tickets and ingests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import terrace


def test_a_batch_is_all_or_nothing_over_keyspaces(db: terrace.Db) -> None:
    users = db.keyspace("users")
    db[b"old"], users[b"old"] = b"1", b"1"
    with db.batch() as batch:
        batch[b"a"] = b"1"
        batch.put(b"b", b"2")
        there = batch.keyspace(users)
        there.update({b"1": b"Ada", b"2": b"Alan"})
        there.delete_range(None, b"2")
        del batch[b"old"]
        batch.delete(b"nothing")
        assert len(batch) == len(there) == 7 and batch.nbytes > 0
        assert list(db) == [b"old"], "nothing is visible before the end"
    assert dict(db) == {b"a": b"1", b"b": b"2"} and dict(users) == {b"2": b"Alan", b"old": b"1"}
    assert len(batch) == 0
    batch.delete_prefix(b"a")
    batch.write(durability="synced")
    assert list(db) == [b"b"]


def test_an_exception_drops_a_batch(db: terrace.Db) -> None:
    with pytest.raises(RuntimeError, match="mine"), db.batch() as batch:
        batch[b"a"] = b"1"
        raise RuntimeError("mine")
    assert db.is_empty() and len(batch) == 0


def test_a_limit_that_a_batch_breaks_refuses_all_of_it(db: terrace.Db) -> None:
    with pytest.raises(terrace.InvalidInputError), db.batch() as batch:
        batch[b"a"] = b"1"
        batch[bytes(70_000)] = b"1"
    assert db.is_empty()
    batch[b"b"] = b"2"
    batch.write()
    assert list(db) == [b"b"], "it can be used again"


def test_a_transaction_sees_its_own_writes_and_others_see_them_after_the_commit(db: terrace.Db) -> None:
    users = db.keyspace("users")
    db.update({b"a": b"1", b"b": b"2"})
    with db.transaction(durability="synced") as transaction:
        transaction[b"c"] = b"3"
        del transaction[b"a"]
        with pytest.raises(KeyError):
            del transaction[b"a"]
        transaction.keyspace(users)[b"1"] = b"Ada"
        transaction.delete(b"none")
        assert dict(transaction) == {b"b": b"2", b"c": b"3"}
        assert list(reversed(transaction)) == [b"c", b"b"]
        assert dict(db) == {b"a": b"1", b"b": b"2"} and users.is_empty()
        transaction.delete_prefix(b"b")
    assert dict(db) == {b"c": b"3"} and dict(users) == {b"1": b"Ada"}
    with pytest.raises(terrace.ClosedError, match="the transaction has been closed"):
        transaction[b"c"] = b"4"


def test_an_exception_or_a_rollback_ends_a_transaction_without_writes(db: terrace.Db) -> None:
    with pytest.raises(RuntimeError, match="mine"), db.transaction() as transaction:
        transaction[b"a"] = b"1"
        raise RuntimeError("mine")
    with db.transaction() as transaction:
        transaction[b"a"] = b"1"
        transaction.rollback()
    with db.transaction() as transaction:
        transaction[b"b"] = b"1"
        transaction.commit()
    assert list(db) == [b"b"]


@pytest.mark.parametrize(("isolation", "conflicts"), [("snapshot", False), ("serializable", True)])
def test_what_was_read_conflicts_only_under_serializable(db: terrace.Db, isolation: str, conflicts: bool) -> None:
    db.update({b"a": b"1", b"b": b"1"})
    transaction = db.transaction(isolation=isolation)  # type: ignore[arg-type]
    assert transaction[b"a"] == b"1"
    transaction[b"b"] = b"2"
    db[b"a"] = b"2"
    if conflicts:
        with pytest.raises(terrace.ConflictError, match='key "a" of keyspace "default"'):
            transaction.commit()
    else:
        transaction.commit()
    assert db[b"b"] == (b"1" if conflicts else b"2")


def test_words_that_there_are_none_of_are_refused(db: terrace.Db) -> None:
    with pytest.raises(terrace.InvalidInputError, match="'none', not 'snapshot' or 'serializable'"):
        db.transaction(isolation="none")  # type: ignore[arg-type]
    with pytest.raises(terrace.InvalidInputError, match="'none', not 'buffered' or 'synced'"):
        db.put(b"a", b"1", durability="none")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        db.put(b"a", b"1", durability=1)  # type: ignore[arg-type]


def test_tickets_become_durable(db: terrace.Db) -> None:
    batch = db.batch()
    batch[b"a"] = b"1"
    transaction = db.transaction()
    transaction[b"b"] = b"2"
    tickets = [batch.write_ticket(), transaction.commit_ticket(), db.sync_ticket()]
    assert dict(db) == {b"a": b"1", b"b": b"2"}
    for ticket in tickets:
        ticket.wait()
        assert ticket.is_durable()


def test_many_tickets_are_awaited_at_once(db: terrace.Db) -> None:
    async def append(number: int) -> int:
        batch = db.batch()
        batch[b"%04d" % number] = b"entry"
        await batch.write_ticket()
        return number

    async def main() -> list[int]:
        return await asyncio.gather(*(append(number) for number in range(500)))

    syncs = db.stats().syncs.wal
    assert asyncio.run(main()) == list(range(500))
    assert db.count() == 500 and db.stats().syncs.wal - syncs < 250, "one sync is for many tickets"


def test_an_awaited_ticket_can_be_cancelled_and_awaited_again(db: terrace.Db) -> None:
    async def main() -> None:
        ticket = db.sync_ticket()
        waiting = asyncio.ensure_future(wait(ticket))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await ticket
        await ticket
        assert ticket.is_durable()

    async def wait(ticket: terrace.Ticket) -> None:
        await ticket

    asyncio.run(main())


def test_a_ticket_whose_loop_has_gone_harms_nobody(db: terrace.Db) -> None:
    async def leave() -> None:
        for _ in range(100):
            ticket = db.sync_ticket()
            ticket.__await__()

    asyncio.run(leave())
    db.sync()
    assert db.is_empty()


def test_a_ticket_outside_of_a_loop_says_so(db: terrace.Db) -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        db.sync_ticket().__await__()


def test_an_ingest_takes_any_sorted_iterable(db: terrace.Db) -> None:
    db[b"00005"] = b"old"
    count = db.ingest((b"%05d" % n, b"value %d" % n) for n in range(10_000))
    assert count == 10_000 and db.count() == 10_000 and db[b"00005"] == b"value 5"
    users = db.keyspace("users")
    assert users.ingest(db.items(b"00100", b"00200")) == 100 and users.ingest([]) == 0
    assert users.ingest({b"a": b"1", b"b": b"2"}.items()) == 2


def test_an_ingest_that_fails_leaves_nothing(db: terrace.Db) -> None:
    with pytest.raises(terrace.InvalidInputError):
        db.ingest([(b"b", b""), (b"a", b"")])
    with pytest.raises(ZeroDivisionError):
        db.ingest((b"%d" % (1 // (5 - n)), b"") for n in range(10))
    with pytest.raises(RuntimeError, match="mine"), db.ingestion() as ingest:
        ingest.put(b"a", b"")
        raise RuntimeError("mine")
    with db.ingestion() as ingest:
        ingest.put(b"a", b"")
        ingest.abort()
    assert db.is_empty() and not db.verify().problems


def test_ingests_delete_and_finish_together(db: terrace.Db) -> None:
    users, names = db.create_keyspaces(["users", "names"])
    users[b"2"] = b"old"
    rows, index = users.ingestion(), names.ingestion()
    assert rows.update([(b"1", b"Ada")]) == 1
    rows.delete(b"2")
    index.put(b"Ada", b"1")
    with pytest.raises(terrace.InvalidInputError, match="twice"):
        terrace.Ingest.finish_together([rows, rows])
    assert b"1" not in users
    terrace.Ingest.finish_together([rows, index])
    assert dict(users) == {b"1": b"Ada"} and dict(names) == {b"Ada": b"1"}
    with pytest.raises(terrace.ClosedError, match="the ingest has been closed"):
        rows.finish()


def test_writes_before_a_close_are_there(path: Path) -> None:
    with terrace.open(path, options=terrace.Options(durability="synced")) as db:
        ticket = db.sync_ticket()
        db[b"a"] = b"1"
    assert ticket.is_durable()
    with terrace.open(path) as db:
        assert db[b"a"] == b"1"
