//! One engine's turn: phases on one store, in a process and a directory of their own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use terrace_bench::report::{LatencySummary, PhaseReport};
use terrace_bench::ycsb::{Config, Session};

use crate::process::{Usage, settle, space_bytes};
use crate::store::{Engine, Sync};

/// First argument of a process that is to run a job, given as the second.
pub const CHILD: &str = "--child";

/// What to measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub engine: Engine,
    /// Empty or missing.
    pub directory: PathBuf,
    pub phases: Vec<Phase>,
    pub records: u64,
    pub operations: u64,
    pub threads: usize,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub seed: u64,
    pub sync: Sync,
}

/// One phase of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// Name in reports.
    pub name: String,
    /// Name of the phase of [`terrace_bench::ycsb`] that it is.
    pub workload: String,
}

impl Phase {
    /// The phase that bears the name of its workload.
    pub fn of_name(name: String) -> Self {
        Self { workload: name.clone(), name }
    }
}

/// What was measured in one phase; amounts include what the engine did until it had come to rest afterwards.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measurement {
    pub engine: Engine,
    pub phase: String,
    pub threads: usize,
    pub operations: u64,
    /// Rate of the operations alone.
    pub ops_per_s: f64,
    /// Rate when the time until the engine was at rest counts too.
    pub drained_ops_per_s: f64,
    /// Processor time of the process, the load generator's included.
    pub cpu_us_per_op: f64,
    /// Of that, at most so much is the load generator's.
    pub harness_us_per_op: f64,
    pub latency_us: BTreeMap<String, LatencySummary>,
    /// Bytes of keys and values that the phase wrote.
    pub user_bytes: u64,
    /// Bytes written to devices.
    pub written_bytes: u64,
    /// Bytes of disk in use at the end.
    pub space_bytes: u64,
    /// Bytes of keys and values of all records at the end.
    pub logical_bytes: u64,
}

impl Job {
    /// Runs the job in a process of its own; the directory is gone afterwards.
    pub fn run_in_child(&self) -> Result<Vec<Measurement>> {
        let mut child = Command::new(std::env::current_exe()?);
        child.arg(CHILD).arg(serde_json::to_string(self)?).stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = child.output()?;
        if self.directory.exists() {
            std::fs::remove_dir_all(&self.directory)?;
        }
        if !output.status.success() {
            bail!("{} failed: {}", self.engine.name(), output.status);
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Runs the job in this process.
    pub fn run(&self) -> Result<Vec<Measurement>> {
        std::fs::create_dir_all(&self.directory)?;
        let plain = |error: terrace_bench::Error| anyhow!("{}: {error}", self.engine.name());
        let mut session = Session::new(self.config(), &mut |_: &str| ()).map_err(plain)?;
        let store = self.engine.open(&self.directory, self.sync)?;
        let mut measurements = Vec::new();
        for Phase { name, .. } in &self.phases {
            let (before, started) = (Usage::now()?, Instant::now());
            let phase = session.run_next(&*store).map_err(plain)?;
            let (report, wrong) = phase.context("invariant: every phase has a name")?;
            if let Some(wrong) = wrong.first() {
                bail!("{} is wrong in {name}: {wrong}", self.engine.name());
            }
            let seconds = (settle()? - started).as_secs_f64();
            measurements.push(self.measurement(name, &report, before, seconds)?);
        }
        store.close().map_err(plain)?;
        Ok(measurements)
    }

    fn measurement(
        &self,
        name: &str,
        report: &PhaseReport,
        before: Usage,
        seconds: f64,
    ) -> Result<Measurement> {
        let (after, operations) = (Usage::now()?, report.operations as f64);
        let writes =
            report.latency_us.iter().filter(|(operation, _)| !matches!(**operation, "read" | "scan"));
        let record_bytes = (report.key_bytes + report.value_bytes) as u64;
        Ok(Measurement {
            engine: self.engine,
            phase: name.to_owned(),
            threads: self.threads,
            operations: report.operations,
            ops_per_s: report.ops_per_s,
            drained_ops_per_s: operations / seconds.max(report.seconds),
            cpu_us_per_op: (after.cpu - before.cpu).as_secs_f64() * 1e6 / operations,
            harness_us_per_op: report.harness_us_per_op,
            latency_us: report
                .latency_us
                .iter()
                .map(|(&name, latency)| (name.to_owned(), latency.clone()))
                .collect(),
            user_bytes: writes.map(|(_, latency)| latency.count * record_bytes).sum(),
            written_bytes: after.written_bytes - before.written_bytes,
            space_bytes: space_bytes(&self.directory)?,
            logical_bytes: report.logical_bytes,
        })
    }

    fn config(&self) -> Config {
        Config {
            phases: self.phases.iter().map(|phase| phase.workload.clone()).collect(),
            property_files: Vec::new(),
            properties: Vec::new(),
            records: Some(self.records),
            operations: Some(self.operations),
            threads: self.threads,
            key_bytes: Some(self.key_bytes),
            value_bytes: Some(self.value_bytes),
            target: None,
            time: None,
            seed: self.seed,
        }
    }
}
