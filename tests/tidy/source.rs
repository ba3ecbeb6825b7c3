//! The files of the repository, and Rust text with everything but code blanked out.

use std::io;
use std::path::{Path, PathBuf};

/// Directories that hold no source.
const SKIPPED: &[&str] = &["target", ".git", "corpus", "artifacts"];

/// Endings of the files that are looked at.
const TEXT: &[&str] = &["rs", "md", "toml", "txt", "sh", "hex", "yml"];

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path from the root of the repository, with `/`.
    pub path: String,
    pub text: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the whole file is compiled for tests only.
    pub fn is_test(&self) -> bool {
        let stem = self.path.trim_end_matches(".rs");
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || stem.ends_with("/tests")
            || stem.ends_with("/testing")
            || stem.ends_with("/interleavings")
    }

    /// The text with comments, strings and characters replaced by blanks, line by line.
    pub fn code(&self) -> String {
        blank(&self.text)
    }

    /// As [`Source::code`], ending where the unit tests of the file begin.
    pub fn production(&self) -> String {
        let code = self.code();
        let end = code.match_indices("#[cfg(test)]").find(|(at, _)| {
            let rest = code[at + "#[cfg(test)]".len()..].trim_start();
            rest.starts_with("mod ") && rest.find('{').is_some_and(|brace| !rest[..brace].contains(';'))
        });
        end.map_or(code.clone(), |(at, _)| code[..at].into())
    }

    /// Module path within the crate: `store/table/mod.rs` is store, table.
    pub fn module(&self) -> Option<Vec<&str>> {
        let path = self.path.strip_prefix("src/")?.strip_suffix(".rs")?;
        let mut names: Vec<&str> = path.split('/').collect();
        names.pop_if(|last| matches!(*last, "mod" | "lib"));
        Some(names)
    }
}

/// All text files below the root of the repository.
pub fn repository() -> io::Result<Vec<Source>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    let mut directories = vec![PathBuf::from(root)];
    while let Some(directory) = directories.pop() {
        let directory_name = directory.file_name().and_then(|name| name.to_str()).unwrap_or("").to_owned();
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
            if path.is_dir() {
                if !SKIPPED.contains(&name) {
                    directories.push(path);
                }
            } else if TEXT.contains(&ending) || directory_name == ".ci" {
                let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                sources.push(Source { text: std::fs::read_to_string(&path)?, path: relative });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

/// Replaces what is no code by blanks; ends of lines stay.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = match skipped(bytes, at) {
            Some(end) => end.min(bytes.len()),
            None => {
                out.push(if bytes[at].is_ascii() { bytes[at] as char } else { '?' });
                at += 1;
                continue;
            }
        };
        out.extend(bytes[at..end].iter().map(|byte| if *byte == b'\n' { '\n' } else { ' ' }));
        at = end;
    }
    out
}

/// End of the comment, string or character that begins at `at`, if one does.
fn skipped(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let inside_word = at > 0 && word(&bytes[at - 1]);
    let find = |from: usize, what: &[u8]| {
        let found = bytes[from..].windows(what.len()).position(|window| window == what);
        found.map_or(bytes.len(), |found| from + found + what.len())
    };
    match rest {
        [b'/', b'/', ..] => Some(find(at, b"\n") - 1),
        [b'/', b'*', ..] => Some(find(at, b"*/")),
        [b'"', ..] => Some(string_end(bytes, at)),
        [b'b', b'"', ..] if !inside_word => Some(string_end(bytes, at + 1)),
        [b'r', b'"' | b'#', ..] if !inside_word => {
            let marks = rest[1..].iter().take_while(|byte| **byte == b'#').count();
            (rest.get(1 + marks) == Some(&b'"')).then(|| {
                let close = format!("\"{}", "#".repeat(marks));
                find(at + 2 + marks, close.as_bytes())
            })
        }
        [b'\'', b'\\', ..] => Some(find(at + 3, b"'")),
        [b'\'', _, b'\'', ..] => Some(at + 3),
        _ => None,
    }
}

fn string_end(bytes: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// The words of `code`, with where they begin.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter_map(move |word| {
        let start = at;
        at += word.len() + 1;
        (!word.is_empty()).then_some((start, word))
    })
}

/// Number of the line that holds byte `at`.
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count()
}
