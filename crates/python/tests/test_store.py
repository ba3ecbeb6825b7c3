"""Opening, closing, keyspaces, snapshots, settings, and looking after a store."""

from __future__ import annotations

import errno
import gc
import os
import pickle
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import terrace
from terrace import stats as statistics


def test_what_was_written_is_there_after_reopening(path: Path) -> None:
    with terrace.open(path) as db:
        db[b"key"] = b"value"
        db.keyspace("users")[b"1"] = b"Ada"
    with terrace.open(str(path), must_exist=True) as db:
        assert db[b"key"] == b"value" and db.keyspace("users")[b"1"] == b"Ada"
        assert db.path == path and repr(db) == f"<terrace.Db '{path}'>"
        assert repr(db.keyspace("users")) == "<terrace.Keyspace 'users'>"
    assert repr(db) == f"<terrace.Db '{path}' (closed)>"


def test_a_closed_store_is_free_at_once_whoever_still_has_parts_of_it(path: Path) -> None:
    db = terrace.open(path)
    db.update({b"%03d" % n: b"" for n in range(500)})
    users, snapshot, transaction = db.keyspace("users"), db.snapshot(), db.transaction()
    transaction[b"key"] = b"value"
    walk, cursor, ingest, batch, view = iter(db), db.cursor(), db.ingestion(), db.batch(), db.keys()
    next(walk)
    batch[b"key"] = b"value"
    ticket = db.sync_ticket()
    db.close()
    db.close()
    assert db.closed
    with terrace.open(path):
        pass
    calls: list[Any] = [
        lambda: db[b"key"],
        lambda: db.put(b"key", b"value"),
        db.stats,
        db.sync,
        db.snapshot,
        db.batch,
        db.keyspaces,
        lambda: b"key" in db,
        lambda: users[b"key"],
        lambda: users.name,
        lambda: snapshot.get(b"key"),
        lambda: snapshot.keyspace(users)[b"key"],
        lambda: transaction[b"key"],
        transaction.commit,
        lambda: next(walk),
        lambda: iter(view),
        cursor.next,
        lambda: ingest.put(b"key", b"value"),
        ingest.finish,
        batch.write,
        db.refresh,
    ]
    for call in calls:
        with pytest.raises(terrace.ClosedError, match="the store has been closed"):
            call()
    # What ends quietly.
    snapshot.close()
    transaction.rollback()
    ingest.abort()
    ticket.wait()


def test_an_exception_leaves_a_with_block_and_closes_the_store(path: Path) -> None:
    with pytest.raises(RuntimeError, match="mine"), terrace.open(path) as db:
        raise RuntimeError("mine")
    assert db.closed


def test_a_store_that_is_forgotten_closes(path: Path) -> None:
    terrace.open(path)[b"key"] = b"value"
    gc.collect()
    with terrace.open(path) as db:
        assert db[b"key"] == b"value"


def test_a_part_outlives_the_name_of_its_store(path: Path) -> None:
    users = terrace.open(path).keyspace("users")
    gc.collect()
    users[b"1"] = b"Ada"
    walk = iter(users)
    del users
    gc.collect()
    assert next(walk) == b"1"


def test_a_second_opening_is_busy_and_a_missing_store_is_not_found(path: Path, tmp_path: Path) -> None:
    with terrace.open(path), pytest.raises(terrace.BusyError) as busy:
        terrace.open(path)
    assert str(path) in str(busy.value)
    with pytest.raises(terrace.NotFoundError):
        terrace.open(tmp_path / "none", must_exist=True)
    with pytest.raises(terrace.NotFoundError):
        terrace.open(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


def test_a_read_only_store_sees_its_moment_until_refreshed(path: Path) -> None:
    with terrace.open(path) as db:
        db[b"a"] = b"1"
        with terrace.open(path, read_only=True) as reader:
            db[b"a"] = b"2"
            before = reader.snapshot()
            assert reader[b"a"] == b"1"
            reader.refresh()
            assert reader[b"a"] == b"2" and before[b"a"] == b"1"
            with pytest.raises(terrace.ReadOnlyError):
                reader[b"a"] = b"3"


def test_errors_say_what_the_store_says(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(terrace.Error) as refused:
        terrace.open(file / "store")
    assert isinstance(refused.value, terrace.IoError) and refused.value.errno in (errno.ENOTDIR, errno.EEXIST)
    assert f"(os error {refused.value.errno})" in str(refused.value)
    assert refused.value.file is not None and str(file) in refused.value.file and refused.value.offset is None
    again = pickle.loads(pickle.dumps(refused.value))
    assert type(again) is terrace.IoError and str(again) == str(refused.value)
    assert again.errno == refused.value.errno and again.file == refused.value.file


def test_damage_is_corruption_with_file_and_offset(path: Path) -> None:
    with terrace.open(path) as db:
        db.update({b"%05d" % n: os.urandom(100) for n in range(20_000)})
        db.compact()
        db.wait_idle()
    pack = max(path.glob("*.pack"), key=lambda file: file.stat().st_size)
    with open(pack, "r+b") as opened:
        opened.seek(100_000)
        opened.write(bytes(1000))
    with terrace.open(path) as db:
        problems = db.verify().problems
        assert problems and all(isinstance(problem, terrace.CorruptionError) for problem in problems)
        with pytest.raises(terrace.CorruptionError) as damage:
            list(db.items())
        assert damage.value.file == str(pack) and damage.value.offset is not None
        assert f"at byte {damage.value.offset}" in str(damage.value)
    report = terrace.repair(path, path.with_name("repaired"))
    assert report.whole_catalog and 0 < report.entries < 20_000
    assert isinstance(report.lost[0], terrace.CorruptionError)


def test_every_class_of_error_is_an_error() -> None:
    classes = [getattr(terrace, name) for name in terrace.__all__ if name.endswith("Error")]
    assert len(classes) == 14 and all(issubclass(kind, terrace.Error) for kind in classes)
    assert issubclass(terrace.InvalidInputError, ValueError)


def test_keyspaces_are_apart_and_are_made_and_dropped_together(db: terrace.Db) -> None:
    ada, bob = db.create_keyspaces(["ada", "bob"], terrace.KeyspaceOptions(compression="lz4"))
    ada[b"key"] = b"ada"
    assert b"key" not in bob and b"key" not in db
    assert db.keyspaces() == ["ada", "bob", "default"] and bob.keyspace_options().compression == "lz4"
    assert db.existing_keyspace("eve") is None
    db.drop_keyspaces(["ada"])
    with pytest.raises(terrace.NotFoundError):
        ada[b"key"]
    with pytest.raises(terrace.InvalidInputError):
        db.drop_keyspace("default")
    with pytest.raises(terrace.InvalidInputError):
        db.keyspace("")


def test_a_keyspace_of_another_store_is_refused(db: terrace.Db, tmp_path: Path) -> None:
    with terrace.open(tmp_path / "other") as other:
        users = other.keyspace("users")
        for part in (db.snapshot(), db.transaction(), db.batch()):
            with pytest.raises(terrace.InvalidInputError, match="another store"):
                part.keyspace(users)


def test_a_snapshot_shows_one_moment_over_all_keyspaces_until_it_is_closed(db: terrace.Db) -> None:
    users = db.keyspace("users")
    db[b"a"], users[b"a"] = b"1", b"1"
    with db.snapshot() as snapshot:
        db[b"a"], users[b"a"] = b"2", b"2"
        there = snapshot.keyspace(users)
        assert (snapshot[b"a"], there[b"a"], db[b"a"]) == (b"1", b"1", b"2")
        assert db.stats().snapshots == 1
    assert db.stats().snapshots == 0
    with pytest.raises(terrace.ClosedError, match="the snapshot has been closed"):
        there[b"a"]


def test_settings_are_those_of_the_store(path: Path, tmp_path: Path) -> None:
    with terrace.open(path) as db:
        assert db.options() == terrace.Options() and db.keyspace_options() == terrace.KeyspaceOptions()
    chosen = terrace.Options(
        durability="synced",
        memory_bytes=64 << 20,
        space_bytes=1 << 30,
        memtable_bytes=8 << 20,
        wal_bytes_max=32 << 20,
        background_threads=1,
        keyspace=terrace.KeyspaceOptions(filter_bits_per_key=5, prefix=(b"/", 2), ttl=timedelta(hours=1)),
        tree="leveldb-2m",
    )
    with terrace.open(tmp_path / "chosen", options=chosen) as db:
        assert db.options() == chosen
        db.set_options(replace(chosen, memory_bytes=None, durability="buffered"))
        assert db.options() == replace(chosen, memory_bytes=None, durability="buffered")
        with pytest.raises(terrace.InvalidInputError, match="fixed while the store is open"):
            db.set_options(replace(chosen, tree="default"))
        with pytest.raises(terrace.InvalidInputError, match="memtable_bytes"):
            db.set_options(replace(chosen, memtable_bytes=1))
        fixed = db.keyspace("fixed", terrace.KeyspaceOptions(prefix=4, separate_from=1000))
        assert fixed.keyspace_options() == terrace.KeyspaceOptions(prefix=4, separate_from=1000)
        fixed.set_keyspace_options(replace(fixed.keyspace_options(), compression="lz4"))
        assert fixed.keyspace_options().compression == "lz4"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (terrace.Options(tree="no such tree"), "no such tree"),
        (terrace.Options(durability="maybe"), "'maybe', not 'buffered' or 'synced'"),  # type: ignore[arg-type]
        (terrace.Options(memory_bytes=1), "memory_bytes"),
        (terrace.Options(keyspace=terrace.KeyspaceOptions(ttl=timedelta(milliseconds=1))), "ttl"),
        (terrace.Options(keyspace=terrace.KeyspaceOptions(prefix=(b"ab", 1))), "one byte"),
        (terrace.Options(keyspace=terrace.KeyspaceOptions(compression="zip")), "zip"),  # type: ignore[arg-type]
    ],
)
def test_wrong_settings_are_refused_by_name(path: Path, options: terrace.Options, word: str) -> None:
    with pytest.raises(terrace.InvalidInputError, match=word):
        terrace.open(path, options=options)


def test_values_expire(path: Path) -> None:
    options = terrace.Options(keyspace=terrace.KeyspaceOptions(ttl=timedelta(days=1)))
    with terrace.open(path, options=options) as db:
        db[b"key"] = b"value"
        assert db[b"key"] == b"value"


def test_a_checkpoint_is_a_store(db: terrace.Db, tmp_path: Path) -> None:
    db[b"key"] = b"value"
    db.checkpoint(tmp_path / "copy")
    db[b"key"] = b"later"
    with terrace.open(tmp_path / "copy") as copy:
        assert copy[b"key"] == b"value"
    with pytest.raises(terrace.InvalidInputError):
        db.checkpoint(tmp_path / "copy")


def test_statistics_are_dataclasses_down_to_the_last(db: terrace.Db) -> None:
    db.update({b"%05d" % n: b"value" for n in range(1000)})
    db.compact()
    assert b"00001" in db
    stats = db.stats()
    assert stats.user_ops_written == 1000 and stats.flush.jobs >= 1 and stats.user_reads.gets >= 1
    assert stats.write_amplification > 1 and stats.written.total >= stats.written.wal > 0
    assert [space.name for space in stats.keyspaces] == ["default"]
    assert sum(level.entries for level in stats.keyspaces[0].shape.levels) == 1000
    assert stats.devices[0].dir == str(db.path)
    assert isinstance(stats.load.interval, timedelta) and len(stats.compaction.passed) == 8
    seen: set[type] = set()

    def look(value: Any) -> None:
        if is_dataclass(value):
            seen.add(type(value))
            for field in fields(value):
                look(getattr(value, field.name))
        elif isinstance(value, tuple):
            for item in value:
                look(item)
        else:
            assert isinstance(value, (int, float, str, timedelta, type(None))), value

    look(stats)
    look(db.verify())
    missing = {name for name in statistics.__all__ if getattr(statistics, name) not in seen}
    assert missing == {"StallStats", "RepairReport"}
    with pytest.raises(AttributeError):
        stats.last_seq = 0  # type: ignore[misc]
    assert db.get_property("terrace.num-entries") == "1000" and db.get_property("terrace.none") is None


def test_a_full_budget_is_over_budget_and_writes_nothing(path: Path) -> None:
    with terrace.open(path, options=terrace.Options(space_bytes=8 << 20)) as db:
        with pytest.raises(terrace.OverBudgetError):
            for n in range(100):
                db[b"%d" % n] = os.urandom(1 << 20)
        assert db.count() < 10


def test_devices_come_and_go(db: terrace.Db, tmp_path: Path) -> None:
    db.add_device(tmp_path / "second")
    assert [device.dir for device in db.stats().devices] == [str(db.path), str(tmp_path / "second")]
    db.drain_device(tmp_path / "second")
    db.remove_device(tmp_path / "second")
    assert len(db.stats().devices) == 1
