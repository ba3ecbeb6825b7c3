"""Keyspaces, snapshots and transactions as maps."""

from __future__ import annotations

import array
import mmap
from pathlib import Path
from typing import Any

import pytest
import terrace

ENTRIES = {b"a": b"1", b"b": b"2", b"ba": b"3", b"c": b"4"}


def maps(db: terrace.Db) -> list[terrace.Map]:
    """The same entries seen by everything that can be read."""
    users = db.keyspace("users")
    db.update(ENTRIES)
    users.update(ENTRIES)
    snapshot = db.snapshot()
    transaction = db.transaction()
    own = db.transaction().keyspace(db.keyspace("empty"))
    own.update(ENTRIES)
    return [db, users, snapshot, snapshot.keyspace(users), transaction, transaction.keyspace(users), own]


def test_every_map_reads_as_a_sorted_dict_does(db: terrace.Db) -> None:
    for entries in maps(db):
        assert list(entries) == list(ENTRIES)
        assert list(reversed(entries)) == list(reversed(ENTRIES))
        assert dict(entries.items()) == ENTRIES == dict(entries)
        assert list(entries.values()) == list(ENTRIES.values())
        assert entries[b"ba"] == b"3" and entries.get(b"x") is None and entries.get(b"x", 7) == 7
        assert b"a" in entries and b"x" not in entries
        with pytest.raises(KeyError) as missing:
            entries[b"x"]
        assert missing.value.args == (b"x",)
        assert entries.multi_get(iter([b"c", b"x", b"a"])) == [b"4", None, b"1"]
        assert entries.first() == (b"a", b"1") and entries.last() == (b"c", b"4")
        assert entries.count() == 4 and not entries.is_empty()


def test_views_have_bounds_and_go_both_ways(db: terrace.Db) -> None:
    for entries in maps(db):
        assert list(entries.keys(b"b")) == [b"b", b"ba", b"c"]
        assert list(entries.keys(stop=b"b")) == [b"a"]
        assert list(entries.items(b"aa", b"bb")) == [(b"b", b"2"), (b"ba", b"3")]
        assert list(reversed(entries.values(b"aa", b"bb"))) == [b"3", b"2"]
        assert list(entries.keys(prefix=b"b")) == [b"b", b"ba"]
        assert list(reversed(entries.keys(prefix=b"b"))) == [b"ba", b"b"]
        assert entries.count(prefix=b"b") == 2
        assert list(entries.keys(b"c", b"a")) == []
        with pytest.raises(terrace.InvalidInputError, match="not both"):
            entries.keys(b"a", prefix=b"b")


def test_a_view_starts_anew_and_knows_what_it_has(db: terrace.Db) -> None:
    for entries in maps(db):
        keys, items, values = entries.keys(b"b"), entries.items(prefix=b"b"), entries.values()
        assert list(keys) == list(keys)
        assert b"ba" in keys and b"a" not in keys and b"x" not in keys
        assert (b"b", b"2") in items and (b"b", b"3") not in items and (b"c", b"4") not in items
        assert b"4" in values and b"5" not in values
    annotated: terrace.View[bytes] = db.keys()
    assert terrace.View[bytes] is not None and list(annotated) == list(ENTRIES)


def test_an_iteration_shows_the_moment_at_which_it_began(db: terrace.Db) -> None:
    db.update({b"%04d" % n: b"old" for n in range(1000)})
    walk = iter(db.items())
    assert next(walk) == (b"0000", b"old")
    db.clear()
    db[b"0001"] = b"new"
    assert [value for _, value in walk] == [b"old"] * 999
    assert list(db) == [b"0001"]


def test_long_scans_are_complete_in_both_directions(db: terrace.Db) -> None:
    # More than is read ahead at once, with values that end the reading ahead early.
    entries = {b"%05d" % n: b"v" * (n % 7 * 20_000) for n in range(1000)}
    db.update(entries)
    assert list(db.items()) == list(entries.items())
    assert list(reversed(db.items())) == list(reversed(entries.items()))
    assert list(db.values(b"00100", b"00300")) == list(entries.values())[100:300]


def test_writes_are_those_of_a_dict(db: terrace.Db) -> None:
    db[b"a"] = b"1"
    db[b"a"] = b"2"
    assert db.setdefault(b"a", b"3") == b"2" and db.setdefault(b"b", b"3") == b"3"
    assert db.pop(b"a") == b"2" and db.pop(b"a", None) is None and db.pop(b"a", b"!") == b"!"
    with pytest.raises(KeyError):
        db.pop(b"a")
    with pytest.raises(TypeError):
        db.pop(b"a", None, None)  # type: ignore[call-overload]
    del db[b"b"]
    with pytest.raises(KeyError):
        del db[b"b"]
    db.delete(b"b")
    db.update(db.keyspace("users"))
    db.update([(b"x", b"1"), (b"y", b"2")])
    db.update(x for x in [(b"z", b"3")])
    assert dict(db) == {b"x": b"1", b"y": b"2", b"z": b"3"}
    db.clear()
    assert db.is_empty() and db.first() is None and db.last() is None


def test_an_update_that_fails_writes_nothing(db: terrace.Db) -> None:
    def pairs() -> Any:
        yield b"a", b"1"
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        db.update(pairs())
    with pytest.raises(terrace.InvalidInputError):
        db.update([(b"a", b"1"), (bytes(70_000), b"")])
    assert db.is_empty()


def test_deletes_of_ranges_and_prefixes(db: terrace.Db) -> None:
    keys = [b"a", b"b", b"\xfe", b"\xff", b"\xff\xff", b"\xff\xffx"]
    for entries in (db, db.keyspace("users")):
        entries.update((key, b"") for key in keys)
        entries.delete_range(b"b", b"\xff")
        assert list(entries) == [b"a", b"\xff", b"\xff\xff", b"\xff\xffx"]
        entries.delete_prefix(b"\xff\xff")
        assert list(entries) == [b"a", b"\xff"]
        entries.delete_range(None, None, durability="synced")
        assert entries.is_empty()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: array.array("B", data)])
def test_whatever_has_a_buffer_is_a_key_and_a_value(db: terrace.Db, kind: Any) -> None:
    key, value = kind(b"key"), kind(b"\0value")
    db[key] = value
    assert db[key] == b"\0value" and key in db and list(db.keys(key)) == [b"key"]
    assert type(db[key]) is bytes
    db.put(memoryview(b"k-e-y")[::2], memoryview(b"sliced")[1:])
    assert db[b"key"] == b"liced"
    db.delete(key)
    assert key not in db


def test_a_mapped_file_is_a_value(db: terrace.Db, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mapped")
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        db[b"file"] = mapped
    assert db[b"file"] == b"mapped"


@pytest.mark.parametrize("wrong", ["text", 5, None, 1.5, [1]])
def test_what_has_no_buffer_is_refused_by_name(db: terrace.Db, wrong: Any) -> None:
    for call in (
        lambda: db.put(b"key", wrong),
        lambda: db[wrong],
        lambda: wrong in db,
        lambda: db.multi_get([wrong]),
        lambda: db.update([(wrong, b"")]),
        lambda: db.delete_prefix(wrong),
    ):
        with pytest.raises(TypeError, match=f"bytes-like object is required, not '{type(wrong).__name__}'"):
            call()
    assert db.is_empty()


def test_the_empty_key_and_the_longest_one(db: terrace.Db) -> None:
    db.update({b"": b"empty", bytes(65_535): b"long"})
    assert list(db.values()) == [b"empty", b"long"]
    with pytest.raises(terrace.InvalidInputError):
        db[bytes(65_536)] = b""


def test_there_is_no_len_and_a_store_is_true(db: terrace.Db) -> None:
    with pytest.raises(TypeError):
        len(db)  # type: ignore[arg-type]
    assert db and db.is_empty()


def test_cursors_seek_and_turn_round(db: terrace.Db) -> None:
    db.update(ENTRIES)
    with db.snapshot() as snapshot:
        db.clear()
        for cursor in (snapshot.cursor(), snapshot.cursor(b"a", b"d")):
            assert cursor.current() is None
            assert cursor.seek(b"bb") == (b"c", b"4") and cursor.current() == (b"c", b"4")
            assert cursor.next() is None and cursor.prev() == (b"c", b"4") and cursor.prev() == (b"ba", b"3")
            assert cursor.seek_for_prev(b"az") == (b"a", b"1") and cursor.prev() is None
            assert cursor.seek_to_last() == (b"c", b"4") and cursor.seek_to_first() == (b"a", b"1")
        assert snapshot.cursor(prefix=b"b").seek_to_last() == (b"ba", b"3")
    assert db.cursor().next() is None
