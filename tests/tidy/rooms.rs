//! The rooms of a layer: its modules, in an order in which each may use only those before it.

use super::source::{Source, line_of, words};

/// The rooms of each layer that has an order, from the lowest up. `ARCHITECTURE.md` says what each is for.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "engine",
        &[
            "shared",
            "keyspace",
            "space",
            "log",
            "pace",
            "read",
            "jobs",
            "schedule",
            "write",
            "observe",
            "lifecycle",
        ],
    ),
    (
        "policy",
        &[
            "closure",
            "clusters",
            "prefixes",
            "costs",
            "plan",
            "load",
            "devices",
            "view",
            "retainer",
            "placer",
            "layout",
            "cutter",
            "pacer",
            "level0",
            "expiry",
            "deleted",
            "hidden",
            "release",
            "collector",
            "picker",
            "rewriter",
            "relocation",
            "config",
            "planner",
        ],
    ),
];

/// Imports between the rooms of a layer go one way. What a layer shows to others (`pub use` in its `mod.rs`) its own rooms
/// import from where it is.
pub fn rooms(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for (layer, order) in ROOMS {
        let place = |room: &str| order.iter().position(|other| *other == room);
        for source in sources.iter().filter(|source| !source.is_test()) {
            let Some(module) = source.module().filter(|module| module.len() > 1 && module[0] == *layer)
            else {
                continue;
            };
            let room = module[1];
            let Some(own) = place(room) else {
                problems
                    .push(format!("{}: {room} is no room of {layer}: give it a place in ROOMS", source.path));
                continue;
            };
            let code = source.production();
            for (at, name) in named(&code, &module) {
                if place(&name).is_none_or(|target| target > own) {
                    let line = line_of(&code, at);
                    problems.push(format!("{}:{line}: {room} must not use {name}", source.path));
                }
            }
        }
    }
    problems
}

/// The document of the architecture has the rooms in their order.
pub fn documented(sources: &[Source]) -> Vec<String> {
    let Some(document) = sources.iter().find(|source| source.path == "ARCHITECTURE.md") else {
        return vec!["there is no ARCHITECTURE.md".into()];
    };
    let text = document.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = ROOMS.iter().map(|(layer, order)| (layer, format!("`{}`", order.join("` < `"))));
    let missing = lines.filter(|(_, line)| !text.contains(line.as_str()));
    missing.map(|(layer, line)| format!("ARCHITECTURE.md: the rooms of {layer} are {line}")).collect()
}

/// What `code`, which is `module`, names of its own layer: the first word behind the layer, in braces the first of each.
fn named(code: &str, module: &[&str]) -> Vec<(usize, String)> {
    let words: Vec<(usize, &str)> = words(code).collect();
    let mut found = Vec::new();
    for (index, &(at, word)) in words.iter().enumerate() {
        let last = match word {
            "crate" if words.get(index + 1).is_some_and(|next| next.1 == module[0]) => index + 1,
            // A chain of them counts once, from its first.
            "super" if !code[..at].ends_with("super::") => {
                let more = words[index + 1..].iter().take_while(|next| next.1 == "super").count();
                if more + 2 != module.len() {
                    continue;
                }
                index + more
            }
            _ => continue,
        };
        let end = words[last].0 + words[last].1.len();
        let Some(rest) = code[end..].strip_prefix("::") else { continue };
        let names = first_names(rest).into_iter().filter(|name| name != "self");
        found.extend(names.map(|name| (at, name)));
    }
    found
}

/// The first word of `rest`, or of each part of it if it begins with a brace.
fn first_names(rest: &str) -> Vec<String> {
    let first = |part: &str| words(part).next().map(|(_, word)| word.to_owned());
    let Some(inside) = rest.strip_prefix('{') else { return first(rest).into_iter().collect() };
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b',' | b'}' if depth == 0 => {
                names.extend(first(&inside[start..at]));
                start = at + 1;
                if byte == b'}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}
