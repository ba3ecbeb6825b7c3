//! The provenance of a run: machine, command, version and commit.

use std::fs;

use serde::{Deserialize, Serialize};

/// One stored run: its provenance beside what it measured, in one object.
#[derive(Clone, Debug, Serialize)]
pub struct Run<T> {
    /// Where it comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Names the streams of random numbers.
    pub seed: u64,
    /// What was measured, phase by phase.
    pub phases: Vec<T>,
}

/// The provenance of a run. A field that an old run does not have is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// The command line.
    pub command: String,
    /// Version of Terrace.
    pub version: String,
    /// Commit that the program was built from, with `-dirty` behind it if sources had been changed; `unknown` if it was
    /// built outside a repository.
    pub commit: String,
    /// Where it ran.
    pub machine: Machine,
}

/// A machine, as far as it decides what is measured; things that could not be found out are empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Model of the processors.
    pub cpu: String,
    /// Processors that this process may use.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Name and release of the operating system's kernel.
    pub kernel: String,
}

impl Provenance {
    /// The provenance of a run by this program.
    #[must_use]
    pub fn here() -> Self {
        let quoted = std::env::args().enumerate().map(|(index, word)| match index {
            // The program's place says nothing, its name does.
            0 => word.rsplit('/').next().unwrap_or_default().to_owned(),
            _ if word.contains(|c: char| c.is_whitespace() || c == '\'') => format!("{word:?}"),
            _ => word,
        });
        Self {
            command: quoted.collect::<Vec<_>>().join(" "),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("TERRACE_COMMIT").to_owned(),
            machine: Machine::here(),
        }
    }
}

impl Machine {
    /// The one that this runs on.
    #[must_use]
    pub fn here() -> Self {
        let field = |file: &str, name: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map_or_else(String::new, |rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
        };
        let kibibytes = field("/proc/meminfo", "MemTotal");
        let kibibytes: u64 = kibibytes.trim_end_matches(" kB").parse().unwrap_or(0);
        let kernel = rustix::system::uname();
        Self {
            cpu: field("/proc/cpuinfo", "model name"),
            cpus: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            memory_bytes: kibibytes * 1024,
            kernel: format!("{} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy()),
        }
    }
}
