"""A store against a dict, by random steps that hypothesis draws and shrinks."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import terrace
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

# Few bytes, so that keys meet, are prefixes of one another, and end in what a prefix's end must carry over.
KEYS = st.lists(st.sampled_from([b"\0", b"a", b"b", b"\xfe", b"\xff"]), max_size=4).map(b"".join)
VALUES = st.binary(max_size=3) | st.integers(0, 70_000).map(lambda length: b"v" * length)
BOUNDS = st.none() | KEYS
SPACES = st.sampled_from(["default", "users"])
DURABILITIES = st.sampled_from([None, "buffered", "synced"])
PAIRS = st.lists(st.tuples(KEYS, VALUES), max_size=8)

Model = dict[str, dict[bytes, bytes]]


def within(model: dict[bytes, bytes], start: bytes | None, stop: bytes | None) -> dict[bytes, bytes]:
    """The entries from `start` on, up to and without `stop`, sorted."""
    low = start or b""
    return {key: model[key] for key in sorted(model) if key >= low and (stop is None or key < stop)}


class Store(RuleBasedStateMachine):
    """Two keyspaces of a store, and two dicts that must be equal to them."""

    snapshots: Bundle[tuple[terrace.Snapshot, Model]] = Bundle("snapshots")

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.model: Model = {"default": {}, "users": {}}
        self.open()

    def open(self) -> None:
        # Small memtables and blocks, so that flushes and compactions happen by themselves.
        options = terrace.Options(memory_bytes=1 << 20, memtable_bytes=16 << 10, wal_bytes_max=64 << 10)
        self.db = terrace.open(self.directory / "store", options=options)
        self.spaces = {"default": self.db, "users": self.db.keyspace("users")}

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.db.close()
            shutil.rmtree(self.directory)

    @rule(space=SPACES, key=KEYS, value=VALUES, durability=DURABILITIES)
    def put(self, space: str, key: bytes, value: bytes, durability: terrace.options.Durability | None) -> None:
        self.spaces[space].put(key, value, durability=durability)
        self.model[space][key] = value

    @rule(space=SPACES, key=KEYS)
    def delete(self, space: str, key: bytes) -> None:
        self.spaces[space].delete(key)
        self.model[space].pop(key, None)

    @rule(space=SPACES, key=KEYS)
    def del_or_key_error(self, space: str, key: bytes) -> None:
        there = self.model[space].pop(key, None) is not None
        try:
            del self.spaces[space][key]
            assert there
        except KeyError as error:
            assert error.args == (key,) and not there

    @rule(space=SPACES, key=KEYS, value=VALUES)
    def pop_and_setdefault(self, space: str, key: bytes, value: bytes) -> None:
        entries, model = self.spaces[space], self.model[space]
        assert entries.setdefault(key, value) == model.setdefault(key, value)
        assert entries.pop(key + b"a", None) == model.pop(key + b"a", None)

    @rule(space=SPACES, start=BOUNDS, stop=BOUNDS)
    def delete_range(self, space: str, start: bytes | None, stop: bytes | None) -> None:
        self.spaces[space].delete_range(start, stop)
        for key in within(self.model[space], start, stop):
            del self.model[space][key]

    @rule(space=SPACES, prefix=KEYS, in_batch=st.booleans())
    def delete_prefix(self, space: str, prefix: bytes, in_batch: bool) -> None:
        if in_batch:
            with self.db.batch() as batch:
                batch.keyspace(self.spaces[space]).delete_prefix(prefix)
        else:
            self.spaces[space].delete_prefix(prefix)
        for key in [key for key in self.model[space] if key.startswith(prefix)]:
            del self.model[space][key]

    @rule(space=SPACES, pairs=PAIRS)
    def update(self, space: str, pairs: list[tuple[bytes, bytes]]) -> None:
        self.spaces[space].update(pairs)
        self.model[space].update(pairs)

    @rule(space=SPACES, pairs=PAIRS)
    def ingest(self, space: str, pairs: list[tuple[bytes, bytes]]) -> None:
        entries = dict(sorted(dict(pairs).items()))
        assert self.spaces[space].ingest(iter(entries.items())) == len(entries)
        self.model[space].update(entries)

    @rule(puts=st.lists(st.tuples(SPACES, KEYS, st.none() | VALUES), max_size=8), transaction=st.booleans())
    def write_together(self, puts: list[tuple[str, bytes, bytes | None]], transaction: bool) -> None:
        chosen: terrace.Transaction | terrace.Batch = self.db.transaction() if transaction else self.db.batch()
        with chosen as group:
            for space, key, value in puts:
                there = group.keyspace(self.spaces[space])
                if value is None:
                    there.delete(key)
                    self.model[space].pop(key, None)
                else:
                    there[key] = value
                    self.model[space][key] = value
                if isinstance(there, terrace.Transaction):
                    assert dict(there) == self.model[space]
                    assert list(reversed(there)) == sorted(self.model[space], reverse=True)

    @rule(target=snapshots)
    def snapshot(self) -> tuple[terrace.Snapshot, Model]:
        return self.db.snapshot(), {name: dict(entries) for name, entries in self.model.items()}

    @rule(pair=snapshots, space=SPACES, key=KEYS)
    def look_back(self, pair: tuple[terrace.Snapshot, Model], space: str, key: bytes) -> None:
        snapshot, model = pair
        try:
            there = snapshot.keyspace(self.spaces[space])
        except terrace.InvalidInputError:
            return  # it is one of an earlier opening
        assert dict(there) == model[space] and there.get(key) == model[space].get(key)

    @rule(space=SPACES, start=BOUNDS, stop=BOUNDS, key=KEYS)
    def read(self, space: str, start: bytes | None, stop: bytes | None, key: bytes) -> None:
        entries, model = self.spaces[space], within(self.model[space], start, stop)
        assert list(entries.items(start, stop)) == list(model.items())
        assert list(reversed(entries.keys(start, stop))) == list(reversed(model))
        assert list(entries.values(start, stop)) == list(model.values())
        assert entries.count(start, stop) == len(model)
        assert (key in entries.keys(start, stop)) == (key in model)
        assert list(entries.keys(prefix=key)) == [k for k in sorted(self.model[space]) if k.startswith(key)]
        assert entries.get(key) == self.model[space].get(key) and (key in entries) == (key in self.model[space])
        assert entries.multi_get([key, b"a", key]) == [self.model[space].get(k) for k in (key, b"a", key)]
        behind = entries.cursor(start, stop).seek(key)
        assert behind == next(((k, v) for k, v in model.items() if k >= key), None)
        before = entries.cursor(start, stop).seek_for_prev(key)
        assert before == next(((k, v) for k, v in reversed(model.items()) if k <= key), None)

    @rule(what=st.sampled_from(["flush", "compact", "wait_idle", "sync"]))
    def look_after(self, what: str) -> None:
        getattr(self.db, what)()

    @rule()
    def reopen(self) -> None:
        self.db.close()
        self.open()

    @invariant()
    def equal(self) -> None:
        if hasattr(self, "db"):
            for name, entries in self.spaces.items():
                assert list(entries.items()) == sorted(self.model[name].items())


Store.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStore = Store.TestCase
