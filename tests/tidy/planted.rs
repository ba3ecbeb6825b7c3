//! Tests of the rules: each finds the problem in a small tree that has one, and none in the same tree without it.

use super::source::Source;
use super::{Rule, code, documents, rooms};

/// Asserts that `rule` finds as many problems in a file `path` as `expected` names, each by a part of its message.
fn finds(rule: Rule, path: &str, text: &str, expected: &[&str]) {
    finds_in(rule, &[Source::new(path, text)], expected);
}

fn finds_in(rule: Rule, sources: &[Source], expected: &[&str]) {
    let problems = rule(sources);
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, part) in problems.iter().zip(expected) {
        assert!(problem.contains(part), "{problem:?} does not say {part:?}");
    }
}

#[test]
fn an_import_against_the_direction_is_found() {
    finds(code::layers, "src/types/x.rs", "use crate::format::X;", &["x.rs:1: types must not know format"]);
    finds(
        code::layers,
        "src/policy/x.rs",
        "\n\nfn f() { crate::engine::g() }",
        &[":3: policy must not know engine"],
    );
    finds(
        code::layers,
        "src/store/x.rs",
        "use crate::{engine, env};",
        &["store must not know the whole crate"],
    );
    finds(code::layers, "src/store/x.rs", "use crate::Error;", &["store must not know Error"]);
    finds(code::layers, "src/store/a/b.rs", "use super::super::super::policy::P;", &["must not know policy"]);
    finds(code::layers, "src/novel/x.rs", "", &["novel is no layer"]);
    finds(
        code::layers,
        "src/store/a/b.rs",
        "use super::super::file; pub(super) fn f() {} pub(crate) fn g() {}",
        &[],
    );
    finds(code::layers, "src/types/x.rs", "// crate::engine\nconst A: &str = \"crate::engine\";", &[]);
    finds(code::layers, "src/types/x.rs", "#[cfg(test)]\nmod tests { use crate::engine::E; }", &[]);
    finds(code::layers, "src/types/x/tests.rs", "use crate::engine::E;", &[]);
}

#[test]
fn an_import_from_a_room_above_is_found() {
    let finds = |path, text, expected: &[&str]| finds(rooms::rooms, path, text, expected);
    finds("src/policy/plan.rs", "use super::view::Claims;", &["plan.rs:1: plan must not use view"]);
    finds(
        "src/policy/plan.rs",
        "\nuse crate::policy::{costs::C, picker};",
        &[":2: plan must not use picker"],
    );
    finds("src/policy/picker/a.rs", "use super::super::{view::{Claims, X}, planner};", &["not use planner"]);
    finds(
        "src/policy/picker/a.rs",
        "use super::choice::C; use crate::policy::view::V; pub(super) fn f() {}",
        &[],
    );
    finds("src/policy/picker.rs", "use super::{self, view}; pub(in crate::policy) fn f() {}", &[]);
    finds("src/policy/picker.rs", "use super::TreeView;", &["picker must not use TreeView"]);
    finds("src/policy/novel.rs", "", &["novel is no room of policy"]);
    finds("src/engine/read/a.rs", "use crate::engine::write::path::P;", &["read must not use write"]);
    finds("src/engine/write/a.rs", "use crate::engine::read::path::P;", &[]);
    finds("src/engine/read/tests.rs", "use crate::engine::write::path::P;", &[]);
}

#[test]
fn a_long_file_is_found() {
    finds(code::file_length, "src/a.rs", &"\n".repeat(801), &["801 lines"]);
    let tested = format!("{}#[cfg(test)]\nmod tests {{{}}}", "\n".repeat(700), "\n".repeat(700));
    finds(code::file_length, "src/a.rs", &tested, &[]);
}

#[test]
fn a_long_function_is_found() {
    let long = |head: &str| format!("{head} {{{}}}", "\n".repeat(70));
    finds(code::function_length, "src/a.rs", &long("fn f(a: [u8; 4])"), &["fn f has 71 lines"]);
    finds(code::function_length, "src/a.rs", &long("fn f(); struct S"), &[]);
    finds(code::function_length, "src/a.rs", &long("type F = fn(u8); struct S"), &[]);
    finds(code::function_length, "src/a.rs", "fn f() { \"{\"; '{'; r#\"{\"# } struct S {\n}", &[]);
}

#[test]
fn a_call_past_the_environment_is_found() {
    finds(code::banned_calls, "src/db/x.rs", "fs::read(p)", &["x.rs:1: fs::"]);
    finds(code::banned_calls, "src/db/x.rs", "Instant::now()", &["x.rs:1: Instant::now"]);
    finds(code::banned_calls, "src/env/x.rs", "Instant::now()", &[]);
    finds(code::banned_calls, "src/env/x.rs", "println!()", &["println!"]);
    finds(code::banned_calls, "src/db/x.rs", "self.offs::<u8>(); // println!()", &[]);
    finds(code::banned_calls, "crates/cli/src/x.rs", "println!()", &[]);
}

#[test]
fn unsafe_code_elsewhere_is_found() {
    finds(code::unsafe_code, "src/a.rs", "unsafe { x() }", &["src/a.rs:1: unsafe"]);
    finds(code::unsafe_code, "src/a.rs", "#![deny(unsafe_code)] // unsafe", &[]);
    finds(code::unsafe_code, "src/store/memtable/arena.rs", "unsafe { x() }", &[]);
    finds(code::unsafe_code, "crates/capi/src/native/a.rs", "unsafe { x() }", &[]);
    finds(code::unsafe_code, "crates/capi/src/a.rs", "unsafe { x() }", &["crates/capi/src/a.rs:1: unsafe"]);
}

#[test]
fn what_is_unfinished_or_not_ascii_is_found() {
    let word = concat!("TO", "DO");
    finds(
        code::plain_and_finished,
        "src/a.rs",
        &format!("\n// {word}: later"),
        &[&format!("a.rs:2: {word}")],
    );
    finds(code::plain_and_finished, "docs/a.md", "caf\u{e9}", &["not ASCII"]);
    finds(code::plain_and_finished, "src/a.rs", concat!("#[", "ignore = \"slow\"]"), &["does not run"]);
    finds(code::headers, "src/a.rs", "use std::fmt;", &["does not start with //!"]);
    finds(code::headers, "src/a.rs", "//! A.", &[]);
}

#[test]
fn a_file_of_tests_that_no_program_has_is_found() {
    let main = |text: &str| Source::new("crates/a/tests/main.rs", text);
    let tree = |main: Source, file: &str| {
        let manifest = Source::new("crates/a/Cargo.toml", "path = \"tests/alone.rs\"");
        [main, manifest, Source::new(&format!("crates/a/tests/{file}"), "")]
    };
    for file in ["b.rs", "b/mod.rs"] {
        finds_in(code::programs_of_tests, &tree(main("mod b;\n"), file), &[]);
        finds_in(
            code::programs_of_tests,
            &tree(main("// mod b;\nmod bc;\n"), file),
            &["no program of tests has it"],
        );
    }
    finds_in(code::programs_of_tests, &tree(main(""), "alone.rs"), &[]);
    finds_in(code::programs_of_tests, &tree(main(""), "b/c.rs"), &[]);
    finds(code::programs_of_tests, "crates/a/tests/b.rs", "", &[]);
}

#[test]
fn a_gap_in_the_register_of_invariants_is_found() {
    let register = |row: &str| Source::new("docs/invariants.md", &format!("{row}\n"));
    let cites = Source::new("src/a.rs", "// I3\nfn i3_works() {}");
    let row = "| I3 | s | k | a | `a.rs: i3_*` |";
    finds_in(documents::invariants, &[register(row), cites.clone()], &[]);
    finds_in(
        documents::invariants,
        &[register("| I4 | s | k | a | none |"), cites.clone()],
        &["I3 is not in"],
    );
    finds_in(documents::invariants, &[register("| I3 | s | | a | none |"), cites.clone()], &["empty cell"]);
    let gone = register("| I3 | s | k | a | `b.rs: i3_works`, `i3_stops` |");
    finds_in(documents::invariants, &[gone, cites], &["names b.rs", "names i3_stops"]);
}

#[test]
fn a_gap_in_a_document_is_found() {
    let module = Source::new("src/format/block.rs", "//! B.");
    finds_in(documents::formats, std::slice::from_ref(&module), &["does not name `block`"]);
    finds_in(documents::formats, &[module.clone(), Source::new("docs/format.md", "| `block` |")], &[]);

    let map = |text: &str| Source::new("ARCHITECTURE.md", text);
    finds_in(documents::code_map, &[module.clone(), map("nothing")], &["does not show it"]);
    finds_in(documents::code_map, &[module.clone(), map("`src/format/`")], &[]);
    finds_in(
        documents::code_map,
        &[module, map("`src/format/block.rs`, `src/old.rs`")],
        &["shows src/old.rs"],
    );

    let page = |text: &str| Source::new("docs/page.md", text);
    let bare = documents::links(&[page("none")]).len();
    assert_eq!(documents::links(&[page("[a](../docs/page.md#b), [c](https://d.e)")]).len(), bare);
    assert_eq!(documents::links(&[page("[a](lost.md)")]).len(), bare + 1);
}

#[test]
fn a_planted_bug_that_nobody_lists_or_notices_is_found() {
    let code = |name: &str| Source::new("src/a.rs", &format!("if planted!(\"{name}\") {{}}"));
    let list = |row: &str| Source::new("docs/planted-bugs.md", row);
    let tests = Source::new("tests/a.rs", "fn works() {}");
    let find = |code: Source, row: &str| documents::planted_bugs(&[code, list(row), tests.clone()]);
    let row = "| `bug` | `a.rs` | b | `tests/a.rs: works`, `A=b` |";
    assert_eq!(find(code("bug"), row), [""; 0]);
    assert_eq!(find(code("bug"), "").len(), 1);
    assert_eq!(find(code("other"), row).len(), 2);
    assert_eq!(find(code("bug"), &row.replace("`a.rs`", "`b.rs`")).len(), 1);
    assert_eq!(find(code("bug"), &row.replace("works", "works_not")).len(), 1);

    let row = "| `bug` | `a.rs` | b | `tests/crash.rs: works`, `TERRACE_CASE=puts/3` |";
    let find = |schedule: &str| {
        let schedules = Source::new("crates/torture/src/schedules.rs", &format!("name: \"{schedule}\","));
        let tests = Source::new("tests/crash.rs", "fn works() {}");
        documents::planted_bugs(&[code("bug"), list(row), tests, schedules])
    };
    assert_eq!(find("puts"), [""; 0]);
    assert_eq!(find("merges").len(), 1);
}
