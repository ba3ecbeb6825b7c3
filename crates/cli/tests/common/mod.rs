//! Shared by the tests: runs the built command in a directory of its own.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

pub mod browser;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde::de::DeserializeOwned;

/// A directory for one test.
pub struct Workplace {
    dir: tempfile::TempDir,
}

impl Workplace {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), contents).unwrap();
    }

    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> T {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    /// The command with `arguments`, separated by blanks, in this directory.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_terrace"));
        command.args(arguments.split_whitespace()).current_dir(self.dir.path());
        command
    }

    pub fn run(&self, arguments: &str) -> Ran {
        self.run_with(arguments, "")
    }

    /// Runs with `input` on standard input.
    pub fn run_with(&self, arguments: &str, input: impl AsRef<[u8]>) -> Ran {
        let mut command = self.command(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command that does not read its input closes it.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        Ran::new(child.wait_with_output().unwrap())
    }

    /// Runs what must succeed in silence on standard error, and returns its output.
    pub fn succeed(&self, arguments: &str) -> String {
        let ran = self.run(arguments);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "terrace {arguments}");
        ran.stdout
    }
}

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            status: output.status.code().unwrap(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}
