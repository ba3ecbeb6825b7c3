"""Documentation: examples that run, and words for everything that is public."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import terrace
from terrace import errors, options, stats

CRATE = Path(__file__).resolve().parent.parent
PAGE = CRATE.parent.parent / "docs" / "python.md"
CHECKS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def public() -> Iterator[tuple[str, Any]]:
    """Everything that is public, with its name."""
    yield "terrace", terrace
    for name in terrace.__all__:
        item = getattr(terrace, name)
        if name.startswith("_"):
            continue
        yield name, item
        if inspect.isclass(item) and item.__module__ == "terrace":
            for member, value in vars(item).items():
                if not member.startswith("_"):
                    yield f"{name}.{member}", value
    for module in (errors, options, stats):
        yield module.__name__, module


EXAMPLES = [
    pytest.param(test, id=name)
    for name, item in public()
    if (test := doctest.DocTestParser().get_doctest(inspect.getdoc(item) or "", {}, name, None, 0)).examples
]


@pytest.mark.parametrize("test", EXAMPLES)
def test_examples_of_the_documentation_run(test: doctest.DocTest, db: terrace.Db, tmp_path: Path) -> None:
    test.globs = {"db": db, "path": tmp_path, "terrace": terrace}
    outcome = doctest.DocTestRunner(optionflags=CHECKS).run(test, clear_globs=False)
    assert outcome.failed == 0 and outcome.attempted > 0


def test_everything_public_has_words_and_most_of_it_an_example() -> None:
    bare = [name for name, item in public() if not inspect.getdoc(item)]
    assert not bare
    assert len(EXAMPLES) > 70


def test_classes_without_a_constructor_say_so() -> None:
    for name in ("Db", "Keyspace", "Snapshot", "Transaction", "Batch", "Ticket", "Ingest", "Cursor", "View", "Map"):
        with pytest.raises(TypeError):
            getattr(terrace, name)()


@pytest.mark.skipif(not PAGE.exists(), reason="the package is not in a checkout")
def test_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testfile(str(PAGE), module_relative=False, optionflags=CHECKS, encoding="utf-8")
    assert outcome.failed == 0 and outcome.attempted > 10


@pytest.mark.skipif(not PAGE.exists(), reason="the package is not in a checkout")
def test_statistics_are_those_of_the_store() -> None:
    check = [sys.executable, str(CRATE / "tools" / "generate_stats.py"), "--check"]
    outcome = subprocess.run(check, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
