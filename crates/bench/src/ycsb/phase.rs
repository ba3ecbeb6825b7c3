//! One phase: its load threads, the wait for them, and the resulting figures.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::chooser::{Choosers, LengthChooser};
use super::keys::{InsertOrder, KeyFormat};
use super::ledger::Ledger;
use super::values::ValueFormat;
use super::worker::{Findings, LastKey, Load, Worker, harness_nanos};
use super::workload::{Mix, Operation, Workload};
use super::{Config, LOAD};
use crate::Result;
use crate::generator::Rng;
use crate::progress::Progress;
use crate::recording::{Recorder, Recording};
use crate::report::{Counted, LatencySummary, PhaseReport};
use crate::store::{Counters, Store};

/// A phase that can be run.
pub struct PhasePlan {
    pub name: String,
    pub workload: Workload,
    /// Unlimited when `None`: the phase ends by time.
    pub operations: Option<u64>,
    pub keys: KeyFormat,
    pub values: ValueFormat,
}

impl PhasePlan {
    /// What all phases on one store must have in common.
    pub fn shape(&self) -> (InsertOrder, usize, u64, usize) {
        let Workload { insert_order, zero_padding, insert_start, .. } = self.workload;
        (insert_order, zero_padding, insert_start, self.values.bytes())
    }

    fn is_load(&self) -> bool {
        self.name == LOAD
    }

    /// First record that the load does not insert.
    fn load_end(&self) -> u64 {
        self.workload.insert_start + self.workload.records
    }
}

/// Runs phase number `index` and returns its report and descriptions of wrong answers.
pub fn run_phase(
    config: &Config,
    plan: &PhasePlan,
    index: u64,
    store: &dyn Store,
    ledger: &Ledger,
) -> Result<(PhaseReport, Vec<String>)> {
    let mix = if plan.is_load() { Mix::only(Operation::Insert) } else { plan.workload.mix.clone() };
    let records = ledger.records();
    if records.is_empty() && mix.share(Operation::Insert) < 1.0 {
        return Err(format!("phase {} needs records: run the {LOAD} phase first", plan.name).into());
    }
    let planned =
        if plan.is_load() { Some(plan.load_end().saturating_sub(records.end)) } else { plan.operations };
    let time = config.time.filter(|_| !plan.is_load());
    let choosers = Choosers::new(&plan.workload, planned, ledger);
    let harness_us = harness_nanos(&plan.keys, &plan.values, &choosers.asked, ledger) / 1000.0;
    let scans = mix.share(Operation::Scan) > 0.0;
    let last_key = if scans { LastKey::of(ledger, &plan.keys) } else { LastKey::default() };
    let updates = mix.share(Operation::Update) + mix.share(Operation::ReadModifyWrite) > 0.0;
    let lengths = LengthChooser::new(&plan.workload.scan_length);

    let (before, cpu_before) = (store.counters(), process_cpu());
    let mut recorder = Recorder::start(store, Operation::ALL.map(Operation::name));
    let started = recorder.started();
    let load = Load {
        store,
        ledger,
        keys: &plan.keys,
        values: &plan.values,
        mix: &mix,
        lengths: &lengths,
        insert_limit: if plan.is_load() { plan.load_end() } else { u64::MAX },
        scans_are_current: config.threads == 1 || !updates,
        started,
        deadline: time.map(|time| started + time),
        pace: config.target.map(|target| Duration::from_secs_f64(config.threads as f64 / target)),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let progress = Progress::start(&plan.name, planned.unwrap_or(u64::MAX), time);
    let workers: Vec<_> = (0..config.threads as u64)
        .map(|thread| {
            let rng = Rng::stream(config.seed, index << 16 | thread);
            Worker::new(&load, rng, choosers.clone(), last_key.clone(), recorder.probe())
        })
        .collect();
    let findings = recorder.sampling(|| run_workers(&load, workers, planned, config.target, &progress));
    progress.finish();
    let findings = findings?;
    let (run_time, cpu) = (started.elapsed(), process_cpu().saturating_sub(cpu_before));
    let mut drain_s = 0.0;
    if plan.is_load() {
        recorder.sampling(|| store.drain())?;
        drain_s = (started.elapsed() - run_time).as_secs_f64();
    }
    let since = store.counters().since(&before);
    let (recording, latency_us) = recorder.finish();
    let measured = Measured { since, run_time, cpu, drain_s, harness_us, recording, latency_us };
    Ok(report(config, plan, measured, &load, findings))
}

/// Runs the workers on a thread each, shows their progress, and stops them all when one fails.
fn run_workers(
    load: &Load,
    workers: Vec<Worker>,
    operations: Option<u64>,
    target: Option<f64>,
    progress: &Progress,
) -> Result<Findings> {
    let threads = workers.len() as u64;
    let (sender, receiver) = mpsc::channel();
    let mut all = Findings::default();
    let mut failure = None;
    std::thread::scope(|scope| {
        for (thread, worker) in (0..threads).zip(workers) {
            let sender = sender.clone();
            // The load's threads share what is left to insert; the others have quotas.
            let quota = match operations {
                Some(operations) if load.insert_limit == u64::MAX => {
                    operations / threads + u64::from(thread < operations % threads)
                }
                _ => u64::MAX,
            };
            let offset =
                target.map_or(Duration::ZERO, |target| Duration::from_secs_f64(thread as f64 / target));
            scope.spawn(move || {
                // The receiver outlives every sender: it is only dropped after all threads have ended.
                let _ = sender.send(worker.run(quota, offset));
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(Progress::INTERVAL) {
                Ok(Ok(findings)) => all.merge(findings),
                Ok(Err(error)) => {
                    load.stop.store(true, Ordering::Relaxed);
                    failure.get_or_insert(error);
                }
                Err(RecvTimeoutError::Timeout) => progress.show(load.done.load(Ordering::Relaxed)),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    failure.map_or(Ok(all), Err)
}

/// What was measured around the load threads.
struct Measured {
    since: Counters,
    run_time: Duration,
    cpu: Duration,
    drain_s: f64,
    harness_us: f64,
    recording: Recording,
    latency_us: BTreeMap<&'static str, LatencySummary>,
}

fn report(
    config: &Config,
    plan: &PhasePlan,
    measured: Measured,
    load: &Load,
    findings: Findings,
) -> (PhaseReport, Vec<String>) {
    let store = load.store;
    let seconds = measured.run_time.as_secs_f64();
    let operations = findings.operations;
    let (records, mut key) = (load.ledger.records(), Vec::new());
    plan.keys.build(records.start, &mut key);
    let report = PhaseReport {
        engine: store.engine().to_owned(),
        profile: store.profile().to_owned(),
        workload: plan.name.clone(),
        records: records.end - records.start,
        operations,
        threads: config.threads,
        key_bytes: key.len(),
        value_bytes: plan.values.bytes(),
        seed: config.seed,
        target_ops_per_s: config.target,
        seconds,
        ops_per_s: operations as f64 / seconds,
        drain_s: measured.drain_s,
        harness_us_per_op: measured.harness_us,
        latency_us: measured.latency_us,
        counted: Counted::from(&measured.since),
        logical_bytes: load.ledger.logical_bytes(),
        cpu_us_per_op: (operations > 0).then(|| measured.cpu.as_secs_f64() * 1e6 / operations as f64),
        verified: findings.verified,
        wrong: findings.wrong,
        recording: measured.recording,
    };
    (report, findings.examples)
}

/// Processor time of the whole process so far, background threads included.
fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
