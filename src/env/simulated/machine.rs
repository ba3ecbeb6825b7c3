//! The simulated machine: its settings, its state, and the path that every call takes.
//!
//! A call first waits for its device, while other threads run, and then takes effect at one moment. A sync covers the
//! operations that were done when it began.
//!
//! One mutex guards the whole state. It is never held while a thread waits, so it is free whenever a simulated thread
//! runs.

use std::hash::{DefaultHasher, Hash};
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::device::{Cost, DeviceModel, Devices, REQUEST_BYTES_MAX};
use super::disk::{Disk, Journal};
use super::fault::{Operation, Reach, Script, Struck};
use super::holds::Holds;
use super::page_cache::PageCache;
use super::processor::ProcessorModel;
use super::random::Random;
use super::read_ahead::Transfers;
use super::schedule::{self, Clock};
use crate::env::lock::LockRegistry;
use crate::env::sync::{Mutex, MutexGuard};

/// Settings of a simulated machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SimConfig {
    /// Determines every choice: the order of threads, preemption, random numbers.
    pub seed: u64,
    /// The device of the root directory.
    pub device: DeviceModel,
    /// What flushes and compactions take besides.
    pub processor: ProcessorModel,
    /// Size of that device, in bytes.
    pub space_bytes: u64,
    /// What a sync makes durable besides its own file or directory.
    pub journal: Journal,
    /// How often a thread is preempted at a call, a notification or the start of a thread, in percent.
    pub preemption_percent: u8,
    /// Whether a thread may also be preempted where it takes a lock. Only in builds with debug assertions.
    pub preempt_at_locks: bool,
    /// Whether a thread may also be preempted where it reads a value that others replace without a lock, such as a
    /// view. Only in builds with debug assertions.
    pub preempt_at_looks: bool,
    /// Number of processors that the machine claims to have.
    pub cores: usize,
    /// Memory that the machine claims to have, in bytes.
    pub memory_bytes: u64,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            device: DeviceModel::instant(),
            processor: ProcessorModel::instant(),
            space_bytes: 1 << 40,
            journal: Journal::default(),
            preemption_percent: 20,
            preempt_at_locks: false,
            preempt_at_looks: false,
            cores: 2,
            memory_bytes: 4 << 30,
        }
    }
}

/// The state that the environment and open files share.
pub(super) struct Machine {
    pub(super) config: SimConfig,
    pub(super) clock: Arc<Clock>,
    pub(super) holds: Arc<Holds>,
    pub(super) locks: Arc<LockRegistry>,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) disk: Disk,
    pub(super) devices: Devices,
    pub(super) page_cache: PageCache,
    pub(super) transfers: Transfers,
    pub(super) script: Script,
    pub(super) random: Random,
    /// Sum of the jumps of the wall clock, in milliseconds.
    pub(super) jumped_millis: i64,
    pub(super) history: DefaultHasher,
}

impl State {
    pub(super) fn new(seed: u64, disk: Disk, devices: Devices) -> Self {
        let (script, random) = (Script::default(), Random::new(!seed));
        let (page_cache, transfers) = Default::default();
        Self {
            disk,
            devices,
            page_cache,
            transfers,
            script,
            random,
            jumped_millis: 0,
            history: DefaultHasher::new(),
        }
    }
}

impl State {
    /// Begins to read `range` of a file, which lies at `path`, as far as it is neither in memory nor on its way.
    pub(super) fn read_ahead(&mut self, file: u64, path: &Path, now: Duration, range: Range<u64>) {
        let missing = match self.page_cache.is_there() {
            true => self.page_cache.bring(file, &range),
            false => self.transfers.missing(file, range),
        };
        for part in missing {
            for start in part.clone().step_by(REQUEST_BYTES_MAX as usize) {
                let request = start..part.end.min(start + REQUEST_BYTES_MAX);
                let done = self.devices.charge(path, now, Cost::Read(request.end - request.start));
                self.transfers.begin(file, request, done);
            }
        }
    }
}

/// A call of `Env` or `File`.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) operation: Operation,
    /// Normalized.
    pub(super) path: &'a Path,
    pub(super) cost: Cost,
}

impl Machine {
    pub(super) fn new(config: SimConfig, clock: Arc<Clock>, state: State) -> Arc<Self> {
        Arc::new(Self {
            config,
            clock,
            holds: Arc::default(),
            locks: Arc::default(),
            state: Mutex::new(state),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Lets `call` take its time, decides how far it gets, and applies that part of its `effect`.
    pub(super) fn call<R>(
        &self,
        call: Call<'_>,
        effect: impl FnOnce(&mut State, Reach) -> io::Result<R>,
    ) -> io::Result<R> {
        let thread = schedule::current();
        // What is only begun ends nobody's turn.
        let is_begun = matches!(call.operation, Operation::WriteBack | Operation::ReadAhead);
        let mut rest = (!is_begun).then_some(call.cost);
        while let Some((request, later)) = rest.map(Cost::split) {
            let done = self.state().devices.charge(call.path, self.clock.now(), request);
            match &thread {
                Some(thread) => thread.pass_time(done),
                None => self.clock.advance_to(done),
            }
            rest = later;
        }
        let mut state = self.state();
        let index = thread.map(|thread| thread.index());
        (index, call.operation, call.path, call.cost, self.clock.now()).hash(&mut state.history);
        match state.script.judge(call.operation, call.path) {
            Ok(()) => effect(&mut state, Reach::Done),
            Err(Struck { reach, error }) => {
                if reach.has_effect(call.operation) {
                    // The call fails with the error of the fault, whatever its partial effect returns.
                    let _ = effect(&mut state, reach);
                }
                Err(error)
            }
        }
    }

    /// A call that concerns the path and takes a metadata operation's time.
    pub(super) fn on_path<R>(
        &self,
        operation: Operation,
        path: &Path,
        effect: impl FnOnce(&mut State, Reach) -> io::Result<R>,
    ) -> io::Result<R> {
        self.call(Call { operation, path, cost: Cost::Metadata }, effect)
    }
}

/// The absolute name without `.` and `..`; a relative one starts at the root.
pub(super) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}
