//! The environment that a simulated machine gives to the store, and what tests may do to the machine.

use std::fmt;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::device::{Cost, DeviceModel, Devices};
use super::disk::{Disk, SharedInode};
use super::fault::{FaultRule, Operation, Reach};
use super::file::SimFile;
use super::inode::FileOp;
use super::log::Survival;
use super::machine::{Call, Machine, SimConfig, State, normalize};
use super::page_cache::{PageReads, leave_out_this_thread};
use super::schedule::{self, Clock, Start};
use crate::env::lock::Claim;
use crate::env::sync::Hold;
use crate::env::{Access, Env, File, FileLock, LockKind, Priority, Space, Thread, Work};

/// Wall-clock time at the beginning of every simulation, in milliseconds since 1970.
const EPOCH_MILLIS: u64 = 1_700_000_000_000;

/// A machine in memory.
pub struct SimEnv {
    machine: Arc<Machine>,
}

impl SimEnv {
    /// A machine with an empty disk. Made within a simulation, it shares the simulation's clock.
    #[must_use]
    pub fn new(config: SimConfig) -> Arc<Self> {
        let clock = schedule::current().map_or_else(Arc::default, |thread| thread.clock());
        let disk = Disk::new(config.journal);
        Self::assemble(
            config,
            clock,
            State::new(config.seed, disk, Devices::new(config.device, config.space_bytes)),
        )
    }

    fn assemble(config: SimConfig, clock: Arc<Clock>, state: State) -> Arc<Self> {
        Arc::new(Self { machine: Machine::new(config, clock, state) })
    }

    /// Runs `body` on a new machine, as the first thread of a deterministic simulation.
    ///
    /// # Panics
    ///
    /// Passes on a panic of any simulated thread. Panics when the threads are deadlocked, or when threads are left
    /// over that do not end by themselves once `body` has returned; the message names them and what they wait for.
    pub fn run<R: Send + 'static>(
        config: SimConfig,
        body: impl FnOnce(Arc<Self>) -> R + Send + 'static,
    ) -> R {
        Self::new(config).simulate(body)
    }

    /// As [`SimEnv::run`], on this machine.
    ///
    /// # Panics
    ///
    /// As [`SimEnv::run`], and when the caller is part of a simulation itself.
    pub fn simulate<R: Send + 'static>(
        self: &Arc<Self>,
        body: impl FnOnce(Arc<Self>) -> R + Send + 'static,
    ) -> R {
        assert!(schedule::current().is_none(), "a simulation within a simulation");
        let SimConfig { seed, preemption_percent, preempt_at_locks, preempt_at_looks, .. } =
            self.machine.config;
        let (clock, holds) = (Arc::clone(&self.machine.clock), Arc::clone(&self.machine.holds));
        let start = Start { seed, preemption_percent, preempt_at_locks, preempt_at_looks, clock, holds };
        let env = Arc::clone(self);
        schedule::simulate(start, move || body(env))
    }

    /// Gives `dir` and everything below it a device of its own. Files that exist there stay where they are.
    pub fn add_device(&self, dir: &Path, model: DeviceModel, space_bytes: u64) {
        self.machine.state().devices.add(normalize(dir), model, space_bytes);
    }

    /// Changes the model of the device that serves `dir`, for work from now on.
    pub fn set_device(&self, dir: &Path, model: DeviceModel) {
        self.machine.state().devices.set_model(&normalize(dir), model);
    }

    /// Gives the machine a cache of this many bytes for the pages of files, so that not every read goes to a device. Without it,
    /// and after a crash, there is none.
    pub fn set_page_cache(&self, bytes: u64) {
        self.machine.state().page_cache.set_bytes(bytes);
    }

    /// What was read through the page cache, but by threads of a priority below [`Priority::Normal`].
    #[must_use]
    pub fn page_reads(&self) -> PageReads {
        self.machine.state().page_cache.reads()
    }

    /// Sets the size of the device that serves `dir`, in bytes.
    pub fn set_space(&self, dir: &Path, total_bytes: u64) {
        self.machine.state().devices.set_total(&normalize(dir), total_bytes);
    }

    /// Bytes that files occupy on the device that serves `dir`, removed ones included while they are open.
    #[must_use]
    pub fn used_bytes(&self, dir: &Path) -> u64 {
        self.machine.state().devices.used_bytes(&normalize(dir))
    }

    /// Every file and its length in bytes, in order of names.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        self.machine.state().disk.files()
    }

    /// Number of calls, failed ones included.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.machine.state().script.calls()
    }

    /// Number of mutating calls (see [`Operation::is_mutating`]).
    #[must_use]
    pub fn mutations(&self) -> u64 {
        self.machine.state().script.mutations()
    }

    /// A hash of all calls, with their threads and times: equal for equal runs.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.machine.state().history.finish()
    }

    /// For each rank of locks, the longest time for which a thread of a simulation on this machine has held one. Empty in
    /// builds without debug assertions.
    #[must_use]
    pub fn longest_holds(&self) -> Vec<Hold> {
        self.machine.holds.longest()
    }

    /// Cuts the power at a later mutating call: the next one if `others` is 0, otherwise after that many more. The
    /// struck call and all later calls fail. The effect of the struck call may survive, like that of any un-synced
    /// call.
    pub fn cut_after(&self, others: u64) {
        self.machine.state().script.cut_after(others);
    }

    /// The machine after a power cut at this moment, restarted: the same devices with what survived, no faults, no
    /// locks, counts from zero, time going on. This machine is not changed.
    #[must_use]
    pub fn crash(&self, survival: Survival) -> Arc<Self> {
        let mut state = self.machine.state();
        let devices = state.devices.blank();
        let disk = state.disk.remains(survival, &devices);
        let mut restarted = State::new(state.random.next(), disk, devices);
        restarted.jumped_millis = state.jumped_millis;
        Self::assemble(self.machine.config, Arc::clone(&self.machine.clock), restarted)
    }

    /// Adds a line to the fault script. Of several rules that strike a call, the first counts.
    pub fn fault(&self, rule: FaultRule) {
        self.machine.state().script.add(rule);
    }

    /// Empties the fault script.
    pub fn clear_faults(&self) {
        self.machine.state().script.clear();
    }

    /// Number of calls that the fault script has struck.
    #[must_use]
    pub fn faults_fired(&self) -> u64 {
        self.machine.state().script.fired()
    }

    /// Moves the wall clock, not the monotonic one.
    pub fn jump_clock(&self, millis: i64) {
        let mut state = self.machine.state();
        state.jumped_millis = state.jumped_millis.saturating_add(millis);
    }

    /// The bytes of a file, whatever the power and the fault script.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file.
    pub fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let inode = self.machine.state().disk.find(&normalize(path))?;
        let inode = inode.lock();
        let mut bytes = vec![0; inode.contents().len() as usize];
        inode.contents().read(0, &mut bytes);
        Ok(bytes)
    }

    /// Damages a file: replaces its stored bytes from `offset`, durably.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file.
    pub fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.tamper(path, FileOp::Write { offset, bytes: bytes.into() })
    }

    /// Damages a file: cuts or extends it, durably.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file.
    pub fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        self.tamper(path, FileOp::SetLen(len))
    }

    /// Gives a file another name, in another directory, as a backup by hard links does. A power cut makes a file of its own
    /// of each name.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, if the new name is taken, or lies in the same directory.
    pub fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.machine.state().disk.link(&normalize(from), &normalize(to))
    }

    fn file(&self, inode: SharedInode, path: &Path, access: Access) -> Arc<dyn File> {
        Arc::new(SimFile::new(Arc::clone(&self.machine), inode, path, access))
    }

    fn tamper(&self, path: &Path, op: FileOp) -> io::Result<()> {
        let inode = self.machine.state().disk.find(&normalize(path))?;
        inode.lock().tamper(&op);
        Ok(())
    }
}

impl fmt::Debug for SimEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimEnv").field("seed", &self.machine.config.seed).finish()
    }
}

impl Env for SimEnv {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = normalize(dir);
        self.machine.on_path(Operation::CreateDir, &dir, |state, reach| {
            let anchored = reach == Reach::Done;
            state.disk.create_dir(&dir, anchored)
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let dir = normalize(dir);
        self.machine.on_path(Operation::List, &dir, |state, _| state.disk.list(&dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = normalize(dir);
        let (flushes, end) = {
            let state = self.machine.state();
            (state.disk.flushes_of_dir(&dir), state.disk.next_number())
        };
        let call = Call { operation: Operation::SyncDir, path: &dir, cost: Cost::Sync(0, flushes) };
        self.machine.call(call, |state, reach| match reach {
            Reach::Done => {
                let State { disk, devices, .. } = state;
                disk.sync_dir(&dir, end, devices)
            }
            Reach::Cut | Reach::Never => Ok(()),
            Reach::Half | Reach::Refused => state.disk.abandon_dir(&dir, end),
        })
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let normal = normalize(path);
        let inode = self.machine.on_path(Operation::Create, &normal, |state, _| {
            let State { disk, devices, .. } = state;
            disk.create(&normal, devices)
        })?;
        Ok(self.file(inode, path, Access::ReadWrite))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let normal = normalize(path);
        let inode = self.machine.on_path(Operation::Open, &normal, |state, _| state.disk.find(&normal))?;
        Ok(self.file(inode, path, access))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (normalize(from), normalize(to));
        self.machine.on_path(Operation::Rename, &to, |state, _| state.disk.rename(&from, &to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = normalize(path);
        self.machine.on_path(Operation::Remove, &path, |state, _| {
            let inode = state.disk.remove(&path)?;
            let (unwritten, number, len) = {
                let inode = inode.lock();
                (inode.dirty_bytes(), inode.number, inode.contents().len())
            };
            state.page_cache.forget(number, 0..len);
            state.transfers.forget(number, &(0..len));
            state.devices.forget_dirty(&path, unwritten);
            Ok(())
        })
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<FileLock> {
        let path = normalize(path);
        self.machine.on_path(Operation::Lock, &path, |state, _| {
            state.disk.find(&path)?;
            let claim = Claim::enter(&self.machine.locks, path.clone(), kind)?;
            Ok(FileLock::new(Box::new(claim)))
        })
    }

    fn canonical(&self, dir: &Path) -> io::Result<PathBuf> {
        let dir = normalize(dir);
        self.machine.on_path(Operation::Canonical, &dir, |state, _| {
            if state.disk.has_directory(&dir) { Ok(dir.clone()) } else { Err(io::ErrorKind::NotFound.into()) }
        })
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let dir = normalize(dir);
        self.machine.on_path(Operation::Space, &dir, |state, _| {
            if !state.disk.has_directory(&dir) {
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(state.devices.space(&dir))
        })
    }

    fn now(&self) -> Duration {
        self.machine.clock.now()
    }

    fn unix_millis(&self) -> u64 {
        let passed = u64::try_from(self.now().as_millis()).unwrap_or(u64::MAX);
        let jumped = self.machine.state().jumped_millis;
        EPOCH_MILLIS.saturating_add(passed).saturating_add_signed(jumped)
    }

    fn sleep(&self, time: Duration) {
        let moment = self.now().saturating_add(time);
        match schedule::current() {
            Some(thread) => thread.pass_time(moment),
            None => {
                self.machine.clock.advance_to(moment);
                std::thread::yield_now();
            }
        }
    }

    fn spend(&self, work: Work) {
        let time = self.machine.config.processor.time(work);
        if !time.is_zero() {
            self.sleep(time);
        }
    }

    fn spawn(&self, name: &str, priority: Priority, body: Box<dyn FnOnce() + Send>) -> io::Result<Thread> {
        let body = Box::new(move || {
            if priority != Priority::Normal {
                leave_out_this_thread();
            }
            body();
        });
        let call = Call { operation: Operation::Spawn, path: Path::new(name), cost: Cost::Free };
        self.machine.call(call, |_, _| Ok(()))?;
        if let Some(thread) = schedule::current() {
            return thread.spawn(name, body);
        }
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Thread::new(Box::new(move || {
            // The panic hook has reported a panic already.
            let _ = started.join();
        })))
    }

    fn cores(&self) -> usize {
        self.machine.config.cores.max(1)
    }

    fn memory_bytes(&self) -> u64 {
        self.machine.config.memory_bytes
    }

    fn random(&self) -> u64 {
        self.machine.state().random.next()
    }
}
