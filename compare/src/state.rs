//! Finished turns, kept in a file of one JSON object a line, so that a run that was cut off can go on.
//!
//! The first line says what run it is: turns of another one are not taken over.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::calibration::Calibration;
use crate::results::PhaseResult;
use crate::schedule::Slot;
use crate::settings::Settings;

/// What a run is known by.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Run {
    pub commit: String,
    pub settings: Settings,
}

/// A turn that is over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finished {
    pub slot: Slot,
    /// Times that it was run.
    pub attempts: usize,
    /// That all of that took.
    pub seconds: f64,
    /// Why it does not count, if it does not.
    pub void: Option<String>,
    pub before: Calibration,
    pub after: Calibration,
    /// Share of processor time that was stolen meanwhile.
    pub steal: f64,
    /// Of the engine.
    pub version: String,
    pub phases: Vec<PhaseResult>,
}

/// The file, and what was in it.
pub struct State {
    file: File,
    pub finished: Vec<Finished>,
}

impl State {
    /// Begins a new file.
    ///
    /// # Errors
    /// Whatever the file system reports.
    pub fn begin(path: &Path, run: &Run) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut state = Self { file, finished: Vec::new() };
        state.append(run)?;
        Ok(state)
    }

    /// Goes on with the file of a run that was cut off. Where its last line was torn, that turn is run again.
    ///
    /// # Errors
    /// No such file, or one of another run.
    pub fn resume(path: &Path, run: &Run) -> Result<Self> {
        let open = OpenOptions::new().read(true).write(true).open(path);
        let mut file = open.with_context(|| format!("cannot resume from {}", path.display()))?;
        let mut reader = BufReader::new(&file);
        let mut line = String::new();
        let mut end = reader.read_line(&mut line)? as u64;
        let earlier: Run =
            serde_json::from_str(&line).with_context(|| format!("{} is damaged", path.display()))?;
        ensure!(
            earlier == *run,
            "{} is of another run: its commit, engines, workloads, sizes, threads or lengths differ",
            path.display()
        );
        let mut finished = Vec::new();
        loop {
            line.clear();
            let bytes = reader.read_line(&mut line)?;
            let Ok(turn) = serde_json::from_str(&line) else { break };
            finished.push(turn);
            end += bytes as u64;
        }
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        Ok(Self { file, finished })
    }

    /// The turn, if it is over.
    pub fn find(&self, slot: Slot) -> Option<&Finished> {
        self.finished.iter().find(|finished| finished.slot == slot)
    }

    /// Keeps a turn.
    ///
    /// # Errors
    /// Whatever the file system reports.
    pub fn keep(&mut self, turn: Finished) -> Result<()> {
        self.append(&turn)?;
        self.finished.push(turn);
        Ok(())
    }

    fn append(&mut self, object: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_string(object)?;
        line.push('\n');
        self.file.write_all(line.as_bytes())?;
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::scorecard::Group;
    use crate::settings::tests::full;
    use crate::store::Engine;

    /// A turn that counts, and has no phases.
    pub fn finished(round: usize, engine: Engine) -> Finished {
        let calm = Calibration {
            disk_write_mb_per_s: 500.0,
            disk_sync_us: 50.0,
            memory_copy_gb_per_s: 10.0,
            memory_miss_ns: 100.0,
        };
        Finished {
            slot: Slot { round, group: Group::Small, engine },
            attempts: 1,
            seconds: 1.0,
            void: None,
            before: calm,
            after: calm,
            steal: 0.0,
            version: "1.2".to_owned(),
            phases: Vec::new(),
        }
    }

    fn run() -> Run {
        Run { commit: "c".to_owned(), settings: full() }
    }

    #[test]
    fn finished_turns_are_found_again_and_a_torn_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let mut state = State::begin(&path, &run()).unwrap();
        let (one, two) = (finished(0, Engine::Shaped("bolt-gc")), finished(0, Engine::Lmdb));
        state.keep(one.clone()).unwrap();
        state.keep(two.clone()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 10]).unwrap();
        let mut state = State::resume(&path, &run()).unwrap();
        assert_eq!((state.find(one.slot), state.find(two.slot)), (Some(&one), None));
        state.keep(two.clone()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        assert_eq!(State::resume(&path, &run()).unwrap().finished, [one, two]);
    }

    #[test]
    fn turns_of_another_run_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        assert!(State::resume(&path, &run()).is_err());
        State::begin(&path, &run()).unwrap();
        assert!(State::resume(&path, &Run { commit: "d".to_owned(), ..run() }).is_err());
        for other in [
            Settings { engines: vec![Engine::Shaped("bolt-gc"), Engine::Lmdb], ..full() },
            Settings { records: 1, ..full() },
            Settings { value_bytes: 1024, ..full() },
            Settings { load_threads: 2, ..full() },
        ] {
            assert!(State::resume(&path, &Run { settings: other, ..run() }).is_err());
        }
        assert!(State::resume(&path, &run()).is_ok());
    }
}
