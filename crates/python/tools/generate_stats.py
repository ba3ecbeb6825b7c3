#!/usr/bin/env python3
"""Writes the dataclasses of `terrace.stats`, and the Rust code that fills them, from the structs in `src/stats*` of the store.

    python3 tools/generate_stats.py            writes both files
    python3 tools/generate_stats.py --check    says which of them is not what it would write; exit status 1 then

Field names, types and documentation are the store's own, so neither a new counter nor a new word for it is missed.
"""

from __future__ import annotations

import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SOURCES = HERE.parent.parent / "src"
PYTHON = HERE / "python" / "terrace" / "stats.py"
RUST = HERE / "src" / "records.rs"

PLAIN = {
    "u8": "int",
    "u16": "int",
    "u32": "int",
    "u64": "int",
    "usize": "int",
    "f64": "float",
    "bool": "bool",
    "String": "str",
    "PathBuf": "str",
    "Duration": "timedelta",
    "Error": "Error",
}

# What the structs' methods compute, in Python.
COMPUTED = {
    "Stats": [
        (
            "write_amplification",
            "Bytes written to tables, log and manifest for each byte that callers have written; 0 before the first write.",
            "return self.written.total / self.user_bytes_written if self.user_bytes_written else 0.0",
            "float",
        )
    ],
    "ByCause": [("total", "All causes together.", "return sum(getattr(self, name) for name in self.__slots__)", "int")],
    "ReadByCause": [("total", "All causes together.", "return sum(getattr(self, name) for name in self.__slots__)", "int")],
    "CacheStats": [
        (
            "hit_ratio",
            "Share of requests for blocks that the cache answered, 0 to 1; 0 before the first request.",
            "return self.hits / (self.hits + self.misses) if self.hits + self.misses else 0.0",
            "float",
        )
    ],
    "PassedBytes": [
        (
            "moved_share",
            "The share that moved, 0 to 1; 0 if nothing has left the level.",
            "return self.moved / (self.moved + self.merged) if self.moved + self.merged else 0.0",
            "float",
        )
    ],
    "CompactionStats": [
        (
            "records_per_second",
            "Entries read per second of compaction time; 0 before the first compaction.",
            "return self.records_in * 1e6 / self.micros if self.micros else 0.0",
            "float",
        )
    ],
}


@dataclass
class Struct:
    """A struct of the store."""

    name: str
    doc: str
    # Name, type in Rust, documentation.
    fields: list[tuple[str, str, str]] = field(default_factory=list)


def told(lines: list[str]) -> str:
    """Rust's documentation as plain text: without examples, and with links as what they show."""
    text = "\n".join(lines).split("```")[0].strip()
    text = " ".join(text.split())
    text = re.sub(r"\[(`[^`]*`)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\[`(?:crate::)?([^`\]]*)`\]", r"`\1`", text)
    text = text.replace("u64::MAX", "2**64 - 1")
    return re.sub(r"`[^`]*`", lambda code: code[0].replace("::", "."), text)


def structs(source: str) -> list[Struct]:
    """The public structs of a file."""
    found: list[Struct] = []
    doc: list[str] = []
    inside: Struct | None = None
    for line in source.split("#[cfg(test)]")[0].splitlines():
        text = line.strip()
        if text.startswith("///"):
            doc.append(text[3:].removeprefix(" "))
        elif match := re.match(r"pub struct (\w+) \{$", line):
            inside = Struct(match[1], told(doc))
            found.append(inside)
            doc = []
        elif inside and (match := re.match(r"    pub (\w+): (.+),$", line)):
            inside.fields.append((match[1], match[2], told(doc)))
            doc = []
        elif line == "}":
            inside, doc = None, []
        elif not text.startswith("#["):
            doc = []
    return found


def python_type(rust: str) -> str:
    """The type of a field in Python."""
    if match := re.match(r"Option<(.+)>$", rust):
        return f"{python_type(match[1])} | None"
    if match := re.match(r"Vec<(.+)>$", rust) or re.match(r"\[(\w+); \d+\]$", rust):
        return f"tuple[{python_type(match[1])}, ...]"
    return PLAIN.get(rust, rust)


def docstring(text: str, indent: str) -> str:
    """`text` as a docstring."""
    width = 110 - len(indent)
    one = f'"""{text}"""'
    if len(one) <= width:
        return indent + one
    lines = textwrap.wrap(text, width - 3)
    body = "\n".join(f"{indent}{line}" for line in lines[1:])
    return f'{indent}"""{lines[0]}\n{body}\n{indent}"""'


def python(all_structs: list[Struct]) -> str:
    """The module `terrace.stats`."""
    out = [
        '"""Statistics and reports of a store, as plain values. See `Db.stats`, `Db.verify` and `terrace.repair`.',
        "",
        "Made by tools/generate_stats.py from the store's own structs.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from dataclasses import dataclass",
        "from datetime import timedelta",
        "",
        "from terrace.errors import Error",
        "",
        "__all__ = [",
        *(f'    "{struct.name}",' for struct in sorted(all_structs, key=lambda struct: struct.name)),
        "]",
    ]
    for struct in all_structs:
        out += ["", "", "@dataclass(frozen=True, slots=True)", f"class {struct.name}:", docstring(struct.doc, "    ")]
        for name, rust, doc in struct.fields:
            out += ["", f"    {name}: {python_type(rust)}", docstring(doc, "    ")]
        for name, doc, body, kind in COMPUTED.get(struct.name, []):
            out += ["", "    @property", f"    def {name}(self) -> {kind}:", docstring(doc, "        "), f"        {body}"]
    return "\n".join(out) + "\n"


def rust(all_structs: list[Struct]) -> str:
    """The module `records`."""
    out = [
        "//! Statistics and reports as dataclasses of Python. Made by tools/generate_stats.py from the store's own structs.",
        "",
        "use crate::record::records;",
        "",
        "records! {",
    ]
    for struct in all_structs:
        names = ", ".join(name for name, _, _ in struct.fields)
        lines = textwrap.wrap(names, 100)
        out += [f"    {struct.name} {{", *(f"        {line}" for line in lines), "    }"]
    return "\n".join([*out, "}"]) + "\n"


def main() -> int:
    """Writes or checks the two files."""
    files = [SOURCES / "stats.rs", *sorted((SOURCES / "stats").glob("*.rs"))]
    all_structs = [struct for file in files for struct in structs(file.read_text())]
    known = {struct.name for struct in all_structs}
    for struct in all_structs:
        for name, kind, doc in struct.fields:
            words = set(re.findall(r"[A-Z]\w+", python_type(kind))) - known - {"None", "Error"}
            if words or not doc:
                print(f"{struct.name}.{name}: {kind} has no type in Python, or no documentation", file=sys.stderr)
                return 1
    wanted = {PYTHON: python(all_structs), RUST: rust(all_structs)}
    stale = [file for file, text in wanted.items() if not file.exists() or file.read_text() != text]
    if "--check" in sys.argv:
        for file in stale:
            print(f"{file.relative_to(HERE)} is not what tools/generate_stats.py writes", file=sys.stderr)
        return 1 if stale else 0
    for file in stale:
        file.write_text(wanted[file])
    return 0


if __name__ == "__main__":
    sys.exit(main())
