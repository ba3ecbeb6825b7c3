//! Rules about Rust sources.

use super::source::{Source, line_of, words};

/// Lines of a file, its unit tests left out.
const FILE_LINES_MAX: usize = 800;
const FILE_LINES_NOTED: usize = 600;

/// Lines of a function.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that are longer for now. The list only shrinks.
const LONG_FUNCTIONS: &[&str] = &[];

/// Where `unsafe` is allowed: shared raw memory and advice on it, system calls without a wrapper, argued in the modules' headers, a test's allocator that measures,
/// the peers that are C or C++, and functions for C. A name that ends with a slash stands for all that is in that folder.
const UNSAFE_FILES: &[&str] = &[
    "src/env/huge_pages.rs",
    "src/env/posix/linux.rs",
    "src/store/memtable/arena.rs",
    "src/store/memtable/skiplist.rs",
    "src/types/buffer.rs",
    "src/types/pages.rs",
    "crates/capi/src/border.rs",
    "crates/capi/src/leveldb/",
    "crates/capi/src/native/",
    "crates/torture/src/allocation.rs",
    "crates/uring/src/ring.rs",
    "compare/src/store/c_api.rs",
    "compare/src/store/leveldb.rs",
    "compare/src/store/lmdb.rs",
    "compare/src/store/rocksdb.rs",
];

/// What each module of the crate may import. Whoever is not a key may import nothing; `lib` shows everything.
const LAYERS: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("format", &["types"]),
    ("catalog", &["types", "format"]),
    ("policy", &["types", "catalog", "options"]),
    ("merge", &["types"]),
    ("env", &[]),
    ("error", &[]),
    ("planted", &[]),
    ("options", &["types", "error"]),
    ("events", &["error", "stats"]),
    ("filter", &[]),
    ("stats", &["error"]),
    ("slice", &["types", "format", "store"]),
    ("bounds", &[]),
    ("batch", &["types", "format", "error", "bounds"]),
    ("iter", &["engine", "error", "slice"]),
    ("store", &["types", "format", "catalog", "merge", "env", "error"]),
    (
        "engine",
        &[
            "types", "format", "catalog", "policy", "merge", "env", "store", "error", "options", "stats",
            "slice", "batch", "events", "filter",
        ],
    ),
    (
        "db",
        &[
            "bounds", "types", "env", "engine", "error", "options", "stats", "slice", "batch", "iter",
            "events", "filter",
        ],
    ),
];

/// Calls that belong to `env` alone.
const ENV_CALLS: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "fs::",
    "thread::spawn",
    "thread::sleep",
    "thread::Builder",
    "Instant::now",
    "SystemTime",
];

/// Output belongs to the tool.
const OUTPUT_CALLS: &[&str] = &["println!", "eprintln!", "print!", "eprint!"];

/// Imports between layers go one way.
pub fn layers(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let Some(module) = source.module() else { continue };
        let Some(&layer) = module.first() else { continue };
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
            problems.push(format!("{}: {layer} is no layer: give it a place in LAYERS", source.path));
            continue;
        };
        let code = source.production();
        for (at, target) in imports(&code, &module) {
            if target != layer && !allowed.contains(&target.as_str()) {
                let line = line_of(&code, at);
                problems.push(format!("{}:{line}: {layer} must not know {target}", source.path));
            }
        }
    }
    problems
}

/// The modules of the crate's root that `code`, which is `module`, names.
fn imports(code: &str, module: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let words: Vec<(usize, &str)> = words(code).collect();
    for (index, &(at, word)) in words.iter().enumerate() {
        let mut next = index + 1;
        let mut above = match word {
            "crate" => 0,
            // A chain of them counts once, from its first.
            "super" if !code[..at].ends_with("super::") => module.len() - 1,
            _ => continue,
        };
        while word == "super" && words.get(next).is_some_and(|next| next.1 == "super") && above > 0 {
            (above, next) = (above - 1, next + 1);
        }
        if above > 0 {
            continue;
        }
        let (last, length) = (words[next - 1].0, words[next - 1].1.len());
        match (code[last + length..].starts_with("::"), words.get(next)) {
            (true, Some(&(start, name))) if start == last + length + 2 => found.push((at, name.into())),
            // Braces, or a star: which modules it means cannot be told.
            (true, _) => found.push((at, "the whole crate".into())),
            // `pub(super)` and the like.
            (false, _) => {}
        }
    }
    found
}

/// Files are short enough to be read.
pub fn file_length(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let lines = source.production().lines().count();
        if lines > FILE_LINES_MAX {
            problems.push(format!("{}: {lines} lines; split it", source.path));
        } else if lines > FILE_LINES_NOTED {
            println!("{}: {lines} lines; think of splitting it", source.path);
        }
    }
    problems
}

/// Functions fit on a screen.
pub fn function_length(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut excused = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        for (name, line, lines) in functions(&source.code()) {
            let id = format!("{}: {name}", source.path);
            match LONG_FUNCTIONS.iter().find(|excuse| **excuse == id) {
                _ if lines <= FUNCTION_LINES_MAX => {}
                Some(excuse) => excused.push(*excuse),
                None => {
                    problems.push(format!("{}:{line}: fn {name} has {lines} lines; split it", source.path))
                }
            }
        }
    }
    let stale = LONG_FUNCTIONS.iter().filter(|excuse| !excused.contains(excuse));
    problems.extend(stale.map(|excuse| format!("{excuse} is short now: take it off LONG_FUNCTIONS")));
    problems
}

/// Name, line and length in lines of every function with a body.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let words: Vec<(usize, &str)> = words(code).collect();
    let mut found = Vec::new();
    for pair in words.windows(2).filter(|pair| pair[0].1 == "fn") {
        let (start, name) = (pair[0].0, pair[1].1);
        // The type of a function has no name: `fn(u8)`.
        if code[start + 2..pair[1].0].contains('(') {
            continue;
        }
        let Some((open, close)) = body(code, start) else { continue };
        debug_assert!(open < close);
        let (first, last) = (line_of(code, start), line_of(code, close));
        found.push((name.to_owned(), first, last + 1 - first));
    }
    found
}

/// Where the body of the function that begins at `start` opens and closes.
fn body(code: &str, start: usize) -> Option<(usize, usize)> {
    let (mut nested, mut braces, mut open) = (0, 0, None);
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' if open.is_none() => nested += 1,
            b')' | b']' if open.is_none() => nested -= 1,
            b';' if open.is_none() && nested == 0 => return None,
            b'{' if open.is_some() || nested == 0 => {
                open = open.or(Some(at));
                braces += 1;
            }
            b'}' if open.is_some() => {
                braces -= 1;
                if braces == 0 {
                    return open.map(|open| (open, at));
                }
            }
            _ => {}
        }
    }
    None
}

/// Files, threads, time and output have their one place.
pub fn banned_calls(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with("src/") && !source.is_test()) {
        let code = source.production();
        let env = if source.path.starts_with("src/env/") { &[] } else { ENV_CALLS };
        for call in env.iter().chain(OUTPUT_CALLS) {
            for (at, _) in code.match_indices(call) {
                let inside = code[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
                if !inside {
                    problems.push(format!("{}:{}: {call}", source.path, line_of(&code, at)));
                }
            }
        }
        if ["src/engine/", "src/store/"].iter().any(|layer| source.path.starts_with(layer)) {
            let locks = words(&code).filter(|word| word.1 == "Mutex");
            problems.extend(locks.map(|(at, _)| {
                format!("{}:{}: a lock without a place in their order", source.path, line_of(&code, at))
            }));
        }
    }
    problems
}

/// `unsafe` stays where it is argued for.
pub fn unsafe_code(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    let allowed = |path: &str| {
        UNSAFE_FILES
            .iter()
            .any(|name| if name.ends_with('/') { path.starts_with(name) } else { path == *name })
    };
    for source in sources.iter().filter(|source| source.is_rust()) {
        if !allowed(&source.path) {
            let code = source.code();
            let uses = words(&code).filter(|word| word.1 == "unsafe");
            problems.extend(uses.map(|(at, _)| format!("{}:{}: unsafe", source.path, line_of(&code, at))));
        }
    }
    problems
}

/// Every module says what it is.
pub fn headers(sources: &[Source]) -> Vec<String> {
    let modules = sources.iter().filter(|source| source.is_rust() && !source.path.starts_with("fuzz/"));
    let bare = modules.filter(|source| !source.text.starts_with("//!"));
    bare.map(|source| format!("{}: does not start with //!", source.path)).collect()
}

/// Sources are ASCII, finished, and every test in them runs.
pub fn plain_and_finished(sources: &[Source]) -> Vec<String> {
    let unfinished = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
    let ignored = concat!("#[", "ignore");
    let mut problems = Vec::new();
    for source in sources {
        for (number, line) in source.text.lines().enumerate() {
            let place = format!("{}:{}", source.path, number + 1);
            if !line.is_ascii() {
                problems.push(format!("{place}: not ASCII"));
            }
            if let Some((_, word)) = words(line).find(|(_, word)| unfinished.contains(word)) {
                problems.push(format!("{place}: {word}"));
            }
            if line.contains(ignored) {
                problems.push(format!("{place}: a test that does not run"));
            }
        }
    }
    problems
}

/// Every file of tests is a module of the program beside it, or a program that the manifest names: no other runs.
pub fn programs_of_tests(sources: &[Source]) -> Vec<String> {
    let text =
        |path: String| sources.iter().find(|source| source.path == path).map(|source| source.text.as_str());
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let Some((folder, name)) = source.path.split_once("tests/") else { continue };
        let name = name.trim_end_matches(".rs").trim_end_matches("/mod");
        let Some(main) =
            text(format!("{folder}tests/main.rs")).filter(|_| !name.contains('/') && name != "main")
        else {
            continue;
        };
        let manifest = text(format!("{folder}Cargo.toml")).unwrap_or("");
        let named = manifest.contains(&format!("path = \"tests/{name}.rs\""));
        if !named && !main.lines().any(|line| line == format!("mod {name};")) {
            problems.push(format!("{}: no program of tests has it", source.path));
        }
    }
    problems
}
