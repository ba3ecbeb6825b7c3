//! The list of planted bugs, read from the tables of `docs/planted-bugs.md`.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

/// A bug that can be planted.
pub struct Bug {
    pub name: String,
    /// Who is to notice it.
    pub check: Check,
}

/// A test, and what it is told.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Check {
    /// The file that the test stands in, from the root of the repository.
    pub file: String,
    /// Its function.
    pub test: String,
    /// Variables of its environment.
    pub variables: Vec<(String, String)>,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.test)?;
        self.variables.iter().try_for_each(|(name, value)| write!(f, ", {name}={value}"))
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

/// Reads the tables: `| name | file | what it breaks | test, variables |`, names between backquotes.
pub fn read() -> Result<Vec<Bug>> {
    let path = root().join("docs/planted-bugs.md");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let bugs: Vec<Bug> = rows.map(bug).collect::<Result<_>>()?;
    ensure!(!bugs.is_empty(), "{} has no table", path.display());
    Ok(bugs)
}

fn bug(row: &str) -> Result<Bug> {
    let parse = || {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let &["", name, _, _, check, ""] = &cells[..] else { return None };
        let mut check = quoted(check);
        let (file, test) = check.next()?.split_once(": ")?;
        let variables = check.map(|variable| variable.split_once('='));
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let variables = variables.map(|variable| variable.map(own)).collect::<Option<_>>()?;
        let check = Check { file: file.to_owned(), test: test.to_owned(), variables };
        Some(Bug { name: quoted(name).next()?.to_owned(), check })
    };
    parse().with_context(|| format!("not a row of a bug: {row}"))
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn every_row_is_a_bug_of_its_own() {
        let bugs = read().unwrap();
        assert!(bugs.len() >= 40, "{} bugs", bugs.len());
        for (at, bug) in bugs.iter().enumerate() {
            assert!(bugs[..at].iter().all(|other| other.name != bug.name), "{} stands there twice", bug.name);
            assert!(root().join(&bug.check.file).is_file(), "{}", bug.check);
        }
        assert!(bug("| `name` | `file.rs` | breaks | `no test` |").is_err());
    }
}
