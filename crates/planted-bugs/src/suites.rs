//! Builds the store's tests with the planted bugs compiled in, and runs one test at a time.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::list::{Check, root};

/// What a build needs to have the switches in.
const SWITCH: &str = "--cfg terrace_planted";

/// How often it is looked whether a test has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The executables of the tests, by the file that each begins with, from the root of the repository.
pub struct Suites(BTreeMap<String, PathBuf>);

/// How a test has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Passed,
    /// By an assertion of its own, or one of the store.
    Failed,
    /// Not within the time limit.
    Hung,
    /// No test of that name ran, or several, or it ended otherwise than tests do.
    Broken,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Hung => "hung",
            Self::Broken => "broken",
        }
    }
}

impl Suites {
    /// Builds them, in a directory of their own: with other flags nothing of the usual build can be used.
    pub fn build() -> Result<Self> {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args([
                "test",
                "--package",
                "terrace",
                "--package",
                "terrace-torture",
                "--lib",
                "--tests",
                "--no-run",
            ])
            .args(["--message-format", "json-render-diagnostics"])
            .arg("--target-dir")
            .arg(target.join("planted"))
            .env("RUSTFLAGS", SWITCH)
            .current_dir(root())
            .stderr(Stdio::inherit())
            .output()
            .context("cargo cannot be run")?;
        ensure!(output.status.success(), "the tests do not build");
        let root = root().canonicalize()?;
        let mut executables = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let message: Value = serde_json::from_str(line).context("cargo says something else than JSON")?;
            let text = |value: &Value| value.as_str().map(PathBuf::from);
            let is_test = message["profile"]["test"] == true;
            let found = text(&message["executable"]).zip(text(&message["target"]["src_path"]));
            if let Some((executable, source)) = found.filter(|_| is_test) {
                let source = source.strip_prefix(&root).unwrap_or(&source).to_string_lossy().into_owned();
                executables.insert(source, executable);
            }
        }
        Ok(Self(executables))
    }

    /// Runs the test of `check`, with the bug of that name in the store, for `limit` at most.
    pub fn run(&self, check: &Check, bug: Option<&str>, limit: Duration) -> Result<Outcome> {
        let (source, filter) = filter(check);
        let executable = self.0.get(&source).with_context(|| format!("no program of tests has {check}"))?;
        let mut output = tempfile::tempfile()?;
        let mut command = Command::new(executable);
        command.args(filter).current_dir(root()).stdin(Stdio::null());
        command.stdout(output.try_clone()?).stderr(Stdio::null());
        command.env_remove("TERRACE_PLANT").envs(bug.map(|bug| ("TERRACE_PLANT", bug)));
        command.envs(check.variables.iter().map(|(name, value)| (name, value)));
        let mut test = command.spawn().with_context(|| format!("{check} cannot be started"))?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = test.try_wait()? {
                break status;
            }
            if start.elapsed() > limit {
                test.kill()?;
                test.wait()?;
                return Ok(Outcome::Hung);
            }
            std::thread::sleep(LOOK);
        };
        let mut text = String::new();
        std::io::Seek::rewind(&mut output)?;
        output.read_to_string(&mut text)?;
        Ok(outcome(status, &text))
    }
}

/// Files of tests that are programs by themselves; the others are modules of the `main.rs` beside them.
const PROGRAMS: [&str; 3] =
    ["tests/process.rs", "crates/torture/tests/corruption.rs", "crates/torture/tests/soak.rs"];

/// The file that the program with the test of `check` begins with, and what it is told to run this test alone.
fn filter(check: &Check) -> (String, Vec<String>) {
    let Check { file, test, .. } = check;
    let exactly = |name: String| vec![name, "--exact".to_owned()];
    match file.split_once("tests/") {
        // A unit test, in a module of any name.
        _ if file.starts_with("src/") => ("src/lib.rs".to_owned(), vec![test.clone()]),
        Some((folder, module)) if !PROGRAMS.contains(&file.as_str()) => {
            let module = module.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
            (format!("{folder}tests/main.rs"), exactly(format!("{module}::{test}")))
        }
        _ => (file.clone(), exactly(test.clone())),
    }
}

/// What a test's status and words say.
fn outcome(status: ExitStatus, text: &str) -> Outcome {
    match status.success() {
        true if text.contains("test result: ok. 1 passed; 0 failed") => Outcome::Passed,
        false if text.contains("test result: FAILED. 0 passed; 1 failed") => Outcome::Failed,
        _ => Outcome::Broken,
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_test_is_told_by_its_module() {
        let told = |file: &str| {
            let check = Check { file: file.to_owned(), test: "works".to_owned(), variables: Vec::new() };
            let (source, filter) = filter(&check);
            format!("{source} {}", filter.join(" "))
        };
        assert_eq!(told("src/store/wal/tests.rs"), "src/lib.rs works");
        assert_eq!(told("tests/ingest.rs"), "tests/main.rs ingest::works --exact");
        assert_eq!(told("tests/regress/mod.rs"), "tests/main.rs regress::works --exact");
        assert_eq!(told("tests/regress/jobs.rs"), "tests/main.rs regress::jobs::works --exact");
        assert_eq!(
            told("crates/torture/tests/crash.rs"),
            "crates/torture/tests/main.rs crash::works --exact"
        );
        for file in PROGRAMS {
            assert_eq!(told(file), format!("{file} works --exact"));
            assert!(root().join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn only_a_failed_test_has_failed() {
        let status = |words: &str| Command::new("sh").args(["-c", words]).status().unwrap();
        let (good, bad, killed) = (status("exit 0"), status("exit 101"), status("kill -9 $$"));
        let passed = "test result: ok. 1 passed; 0 failed; 0 ignored";
        assert_eq!(outcome(good, passed), Outcome::Passed);
        assert_eq!(outcome(bad, "test result: FAILED. 0 passed; 1 failed; 0 ignored"), Outcome::Failed);
        assert_eq!(outcome(good, "test result: ok. 0 passed; 0 failed; 0 ignored"), Outcome::Broken);
        assert_eq!(outcome(good, "test result: ok. 2 passed; 0 failed; 0 ignored"), Outcome::Broken);
        assert_eq!(outcome(bad, "test result: FAILED. 1 passed; 1 failed; 0 ignored"), Outcome::Broken);
        assert_eq!(outcome(killed, ""), Outcome::Broken);
        assert_eq!(outcome(bad, passed), Outcome::Broken);
    }
}
