"""What tests share: a store in a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import terrace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The directory of a store that is not there yet."""
    return tmp_path / "store"


@pytest.fixture
def db(path: Path) -> Iterator[terrace.Db]:
    """An open store, empty."""
    with terrace.open(path) as store:
        yield store
