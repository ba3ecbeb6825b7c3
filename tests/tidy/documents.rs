//! Rules about the documents, and about the agreement of documents and sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::source::{Source, words};

/// Documents that people read first.
const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "STYLE.md",
    "CHANGELOG.md",
    "docs/design.md",
    "docs/format.md",
    "docs/invariants.md",
    "docs/planted-bugs.md",
    "docs/reliability.md",
];

fn text<'a>(sources: &'a [Source], path: &str) -> &'a str {
    sources.iter().find(|source| source.path == path).map_or("", |source| &source.text)
}

/// What stands between backquotes on `line`.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The number in an id of an invariant, `I7` or, as the start of a test's name, `i7_`.
fn invariant(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('I').or_else(|| {
        let rest = word.strip_prefix('i')?;
        rest.split_once('_').map(|(digits, _)| digits)
    })?;
    digits.parse().ok()
}

/// Every invariant that is cited is registered, and the register knows what it talks of.
pub fn invariants(sources: &[Source]) -> Vec<String> {
    let register = text(sources, "docs/invariants.md");
    let rows: Vec<Vec<&str>> = register
        .lines()
        .filter(|line| line.starts_with("| I"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let known: BTreeSet<u32> = rows.iter().filter_map(|row| invariant(row[1])).collect();
    let mut problems = Vec::new();
    let rust = || sources.iter().filter(|source| source.is_rust() && !source.path.starts_with("tests/tidy/"));
    for source in rust() {
        let cited: BTreeSet<u32> = words(&source.text).filter_map(|(_, word)| invariant(word)).collect();
        let unknown = cited.difference(&known);
        problems.extend(unknown.map(|id| format!("{}: I{id} is not in docs/invariants.md", source.path)));
    }
    let functions: BTreeSet<&str> = rust()
        .flat_map(|source| {
            let words: Vec<&str> = words(&source.text).map(|(_, word)| word).collect();
            words.windows(2).filter(|pair| pair[0] == "fn").map(|pair| pair[1]).collect::<Vec<_>>()
        })
        .collect();
    for row in rows {
        let (id, tests) = (row[1], row.get(5).copied().unwrap_or(""));
        if row.len() != 7 || row[2..6].iter().any(|cell| cell.is_empty()) {
            problems.push(format!("docs/invariants.md: {id} has an empty cell"));
        }
        for name in quoted(tests) {
            let (file, name) = match name.split_once(": ") {
                Some((file, name)) => (Some(file), name),
                None if name.contains('/') => (Some(name), ""),
                None => (None, name),
            };
            let exists =
                |file: &str| sources.iter().any(|s| s.path == file || s.path == format!("src/{file}"));
            if let Some(file) = file.filter(|file| !exists(file)) {
                problems.push(format!("docs/invariants.md: {id} names {file}, which is not there"));
            }
            let found = match name.strip_suffix('*') {
                Some(start) => functions.iter().any(|function| function.starts_with(start)),
                None => name.is_empty() || functions.contains(name),
            };
            if !found {
                problems.push(format!("docs/invariants.md: {id} names {name}, which is not there"));
            }
        }
    }
    problems
}

/// The bugs that `docs/planted-bugs.md` lists are those that are planted, each in one file, and the tests that notice
/// them exist. So do the schedules that these tests are to run.
pub fn planted_bugs(sources: &[Source]) -> Vec<String> {
    let rows = text(sources, "docs/planted-bugs.md").lines().filter(|line| line.starts_with("| `"));
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_rust() && source.path.starts_with("src/")) {
        let names = source.text.split("planted!(\"").skip(1).filter_map(|rest| rest.split('"').next());
        names.for_each(|name| _ = places.entry(name).or_default().insert(&source.path));
    }
    let schedules = text(sources, "crates/torture/src/schedules.rs");
    let mut problems = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let cell = |at: usize| cells.get(at).and_then(|cell| quoted(cell).next()).unwrap_or("");
        let (name, file, check) = (cell(1), format!("src/{}", cell(2)), cell(4));
        let (test_file, test) = check.split_once(": ").unwrap_or((check, ""));
        let function = format!("fn {test}(");
        let found = places.remove(name).unwrap_or_default();
        if found.len() != 1 || !found.contains(&*file) {
            problems.push(format!("docs/planted-bugs.md: {name} is planted in {found:?}, not in {file}"));
        }
        if !text(sources, test_file).contains(&function) {
            problems.push(format!("docs/planted-bugs.md: {name} names {check:?}, which is no test"));
        }
        let case = row.split_once("`TERRACE_CASE=").and_then(|(_, rest)| rest.split('`').next());
        let runs_schedules = ["/crash.rs", "/fault.rs"].iter().any(|end| test_file.ends_with(end));
        if let Some(schedule) = case.filter(|_| runs_schedules).and_then(|case| case.split('/').next())
            && !schedules.contains(&format!("name: \"{schedule}\""))
        {
            problems.push(format!("docs/planted-bugs.md: {name} names {schedule:?}, which is no schedule"));
        }
    }
    let unlisted = places.into_keys();
    problems.extend(unlisted.map(|name| format!("docs/planted-bugs.md does not list {name}")));
    problems
}

/// `docs/format.md` names every module of the format.
pub fn formats(sources: &[Source]) -> Vec<String> {
    let document = text(sources, "docs/format.md");
    let named: BTreeSet<&str> = document.lines().flat_map(quoted).collect();
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let path = source.module().unwrap_or_default();
        let ["format", module, ..] = path[..] else { continue };
        if !named.contains(module) {
            problems.push(format!("{}: docs/format.md does not name `{module}`", source.path));
        }
    }
    problems
}

/// The map of the code is complete: every file and directory of `src` is on it by its path, and what is on it exists.
pub fn code_map(sources: &[Source]) -> Vec<String> {
    let map = text(sources, "ARCHITECTURE.md");
    let named: BTreeSet<&str> =
        map.lines().flat_map(quoted).filter(|name| name.starts_with("src/")).collect();
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with("src/") && !source.is_test()) {
        let path = source.path.trim_end_matches("/mod.rs");
        let covered = named.contains(path)
            || named.iter().any(|name| {
                // A directory named with a closing slash stands for all that is in it.
                name.ends_with('/') && (path.starts_with(name) || path == name.trim_end_matches('/'))
            });
        if !covered {
            problems.push(format!("{path}: ARCHITECTURE.md does not show it"));
        }
    }
    for name in named {
        let inside = format!("{}/", name.trim_end_matches('/'));
        if !sources.iter().any(|source| source.path == name || source.path.starts_with(&inside)) {
            problems.push(format!("ARCHITECTURE.md shows {name}, which is not there"));
        }
    }
    problems
}

/// The documents are there, and their links lead somewhere.
pub fn links(sources: &[Source]) -> Vec<String> {
    let missing = DOCUMENTS.iter().filter(|path| text(sources, path).is_empty());
    let mut problems: Vec<String> = missing.map(|path| format!("{path} is missing")).collect();
    for source in sources.iter().filter(|source| source.path.ends_with(".md")) {
        let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for link in source.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or("");
            if file.is_empty() || link.contains("://") {
                continue;
            }
            let target = resolve(folder, file);
            let inside = format!("{target}/");
            let known = |s: &Source| s.path == target || s.path.starts_with(&inside);
            // What is not text that this test reads: licenses, pictures.
            let is_there = || Path::new(env!("CARGO_MANIFEST_DIR")).join(&target).is_file();
            if !sources.iter().any(known) && !is_there() {
                problems.push(format!("{}: the link to {link} leads nowhere", source.path));
            }
        }
    }
    problems
}

/// `file` as seen from `folder`, from the root of the repository.
fn resolve(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
