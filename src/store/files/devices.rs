//! The devices of a store: its directories, and which of them has each pack.
//!
//! The first one, *home*, has the log and the manifest. The others have packs alone. A pack that is not noted is at home.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::device::{Device, Named};
use super::meter::WriteCause;
use super::read_times::{ReadTimes, ReadVolume};
use super::recycled::RecycledFiles;
use super::write_queue::WriteQueue;
use crate::env::sync::OrderedMutex;
use crate::env::{Env, FileLock, Space};
use crate::error::{ErrorKind, Result};
use crate::types::{DeviceId, PackId};

/// So much of a device is left free, or one part in [`KEPT_PART`] of it, if that is less.
const KEPT_BYTES: u64 = 64 << 20;
const KEPT_PART: u64 = 64;

/// Bytes per second of a device that was not measured.
pub(crate) const UNKNOWN_BANDWIDTH: u64 = 100_000_000;

/// A device that was found full gets nothing for so long.
const FULL: Duration = Duration::from_secs(10);

/// One directory of the store.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: DeviceId,
    pub(crate) device: Arc<Device>,
    pub(crate) recycled: Arc<RecycledFiles>,
    /// Bytes per second that it was measured to write when it was added.
    pub(crate) rated_bandwidth: u64,
    /// Where a store has several.
    pub(crate) queue: Option<WriteQueue>,
    /// Bytes of all tables that it was given.
    given: AtomicU64,
    /// Bytes of tables that were moved there for their readers.
    brought: AtomicU64,
    reads: ReadTimes,
    /// Whether it gets nothing more, because it is to be removed.
    is_leaving: AtomicBool,
    /// Until then it is taken for full, in nanoseconds of the monotonic clock.
    full_until: AtomicU64,
    _lock: Option<FileLock>,
}

impl Member {
    pub(crate) fn new(
        (id, device): (DeviceId, Arc<Device>),
        rated_bandwidth: u64,
        queue: Option<WriteQueue>,
        lock: Option<FileLock>,
    ) -> Self {
        let recycled = Arc::new(RecycledFiles::new(device.clone()));
        let (given, brought, reads, full_until, is_leaving) = Default::default();
        Self {
            id,
            device,
            recycled,
            rated_bandwidth,
            queue,
            given,
            brought,
            reads,
            is_leaving,
            full_until,
            _lock: lock,
        }
    }

    /// Notes that it was given a table of so many bytes.
    pub(in crate::store) fn gave(&self, bytes: u64) {
        self.given.fetch_add(bytes, Relaxed);
    }

    /// Notes that a write has found it full.
    fn found_full(&self) {
        let until = self.device.now() + FULL;
        self.full_until.store(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// The same result; if it is that the disk is full, it is noted.
    pub(in crate::store) fn noting<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| {
            if error.kind() == ErrorKind::DiskFull {
                self.found_full();
            }
        })
    }

    /// Writes no more, and keeps no dead files from now on.
    pub(crate) fn close(&self) {
        if let Some(queue) = &self.queue {
            queue.stop();
        }
        self.recycled.close();
    }

    /// Bytes of all tables that it was given.
    pub(crate) fn given_bytes(&self) -> u64 {
        self.given.load(Relaxed)
    }

    /// Notes that tables of so many bytes were moved there for their readers.
    pub(crate) fn brought(&self, bytes: u64) {
        self.brought.fetch_add(bytes, Relaxed);
    }

    /// Bytes of tables that were moved there for their readers.
    pub(crate) fn brought_bytes(&self) -> u64 {
        self.brought.load(Relaxed)
    }

    /// Bytes that it was given and has not written.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.queue.as_ref().map_or(0, WriteQueue::pending_bytes)
    }

    /// Bytes per second that it has written lately.
    pub(crate) fn bandwidth(&self) -> u64 {
        self.queue.as_ref().and_then(WriteQueue::bandwidth).unwrap_or(self.rated_bandwidth)
    }

    /// Whether readers wait for it longer than they should.
    pub(crate) fn readers_wait(&self) -> bool {
        self.reads.are_slow(self.device.now())
    }

    /// How long users wait for a block from there, in nanoseconds: of late, and with nothing in the way; 0 if that is unknown.
    pub(crate) fn read_nanos(&self) -> [u64; 2] {
        self.reads.nanos(self.device.now())
    }

    /// Whether it gets nothing more, because it is to be removed.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Relaxed)
    }

    /// The same device with a queue, where it has got company.
    pub(crate) fn with_queue(&self, rated_bandwidth: u64, queue: WriteQueue) -> Self {
        let (device, recycled) = (self.device.clone(), self.recycled.clone());
        let given = AtomicU64::new(self.given_bytes());
        Self { recycled, given, ..Self::new((self.id, device), rated_bandwidth, Some(queue), None) }
    }

    /// Bytes that are left there for tables, and how large the file system is; 0 where that cannot be told.
    pub(crate) fn room(&self, env: &dyn Env) -> Space {
        let space = env.space(self.device.dir()).unwrap_or(Space { total: 0, free: 0 });
        let is_full = u128::from(self.full_until.load(Relaxed)) > env.now().as_nanos();
        if is_full || self.is_leaving.load(Relaxed) {
            return Space { free: 0, ..space };
        }
        Space { free: space.free.saturating_sub(KEPT_BYTES.min(space.total / KEPT_PART)), ..space }
    }

    /// The free bytes of [`Member::room`].
    pub(crate) fn free_bytes(&self, env: &dyn Env) -> u64 {
        self.room(env).free
    }
}

/// The directories of an open store.
#[derive(Debug)]
pub(crate) struct Devices {
    /// Home first.
    members: ArcSwap<Vec<Arc<Member>>>,
    read: ReadVolume,
    /// The packs that are not at home.
    places: OrderedMutex<Places>,
}

/// The packs that are not at home.
#[derive(Debug, Default)]
struct Places {
    of: HashMap<PackId, DeviceId>,
    /// Those of jobs that have not ended: tables there may be still to come.
    of_jobs: HashSet<PackId>,
}

impl Devices {
    /// These, home first.
    pub(crate) fn new(members: Vec<Member>) -> Self {
        let members = members.into_iter().map(Arc::new).collect();
        let (read, places) = Default::default();
        Self { members: ArcSwap::from_pointee(members), read, places }
    }

    /// Home alone.
    pub(crate) fn alone(home: Arc<Device>) -> Self {
        Self::new(vec![Member::new((DeviceId(0), home), UNKNOWN_BANDWIDTH, None, None)])
    }

    /// All of them, home first.
    pub(crate) fn members(&self) -> Arc<Vec<Arc<Member>>> {
        self.members.load_full()
    }

    /// The one that has log and manifest.
    pub(crate) fn home(&self) -> Arc<Member> {
        self.members.load()[0].clone()
    }

    /// Time since a fixed moment.
    pub(crate) fn now(&self) -> Duration {
        self.members.load()[0].device.now()
    }

    /// The device `id`; home if there is none of that id.
    pub(crate) fn member(&self, id: DeviceId) -> Arc<Member> {
        let members = self.members.load();
        members.iter().find(|member| member.id == id).unwrap_or(&members[0]).clone()
    }

    /// Notes when a user's read of `bytes` on a device started and ended, where there are several. Returns the age of what is read
    /// now, if it came from the device ([`Heat::read`](crate::catalog::Heat::read)).
    pub(in crate::store) fn note_read(
        &self,
        id: DeviceId,
        bytes: u64,
        times: (Duration, Duration),
    ) -> Option<u16> {
        let members = self.members.load();
        let member = members.iter().find(|member| members.len() > 1 && member.id == id)?;
        member.reads.note(times).then(|| self.read.note(bytes))
    }

    /// The age of what users have read; it grows by one when they have read `bytes_max` from the devices.
    pub(crate) fn read_age(&self, bytes_max: u64) -> u16 {
        self.read.age(bytes_max)
    }

    /// The device that has `pack`.
    pub(crate) fn of(&self, pack: PackId) -> Arc<Member> {
        let place = self.places.lock().of.get(&pack).copied();
        place.map_or_else(|| self.home(), |id| self.member(id))
    }

    /// Takes in `member`; `home` takes the place of the one that is there.
    pub(crate) fn add(&self, home: Option<Member>, member: Member) {
        if let Some(home) = home {
            let mut members = (*self.members()).clone();
            members[0] = Arc::new(home);
            self.members.store(Arc::new(members));
        }
        self.put_back(Arc::new(member));
    }

    /// Takes the device `id`, which is not home, out of the list, unless it has packs, written or being written; then returns how
    /// many. Readers may hold some that no version in force has.
    pub(crate) fn take_out(&self, id: DeviceId) -> std::result::Result<(), usize> {
        // Under this lock no pack there begins: see `note_begun`.
        let places = self.places.lock();
        match places.of.values().filter(|place| **place == id).count() {
            0 => {
                let members = self.members();
                let left = members.iter().filter(|member| member.id != id).cloned().collect();
                self.members.store(Arc::new(left));
                Ok(())
            }
            packs => Err(packs),
        }
    }

    /// Takes back a device that was taken out.
    pub(crate) fn put_back(&self, member: Arc<Member>) {
        let mut members = (*self.members()).clone();
        members.push(member);
        self.members.store(Arc::new(members));
    }

    /// Notes that `pack` is on the device `id`.
    pub(crate) fn note(&self, pack: PackId, id: DeviceId) {
        if self.home().id != id {
            self.places.lock().of.insert(pack, id);
        }
    }

    /// Notes that a job writes `pack` on the device `id`. Returns whether it may: whether that is one of the store's still, and not
    /// leaving.
    pub(in crate::store) fn note_begun(&self, pack: PackId, id: DeviceId) -> bool {
        let mut places = self.places.lock();
        let members = self.members.load();
        if members[0].id == id {
            return true;
        }
        let stays =
            |member: &Member| !member.is_leaving.load(Relaxed) || planted!("leaving-device-is-written");
        if !members.iter().any(|member| member.id == id && stays(member)) {
            return false;
        }
        places.of.insert(pack, id);
        places.of_jobs.insert(pack);
        true
    }

    /// Notes that the job of `pack` has ended, and all that it leaves is seen; or that nobody is to wait for its end.
    pub(crate) fn note_ended(&self, pack: PackId) {
        self.places.lock().of_jobs.remove(&pack);
    }

    /// Whether any job that has not ended writes to the device `id`.
    pub(crate) fn is_written(&self, id: DeviceId) -> bool {
        let places = self.places.lock();
        places.of_jobs.iter().any(|pack| places.of.get(pack) == Some(&id))
    }

    /// From now on no job begins a pack on the device `id`, or jobs may again.
    pub(crate) fn set_leaving(&self, id: DeviceId, is_leaving: bool) {
        // Whoever has begun one has noted it: see `note_begun`.
        let _places = self.places.lock();
        // One that has gone is not home.
        if let Some(member) = self.members.load().iter().find(|member| member.id == id) {
            member.is_leaving.store(is_leaving, Relaxed);
        }
    }

    /// Notes that there is no such pack any more.
    pub(in crate::store) fn forget(&self, pack: PackId) {
        let mut places = self.places.lock();
        places.of.remove(&pack);
        places.of_jobs.remove(&pack);
    }

    /// From now on keeps up to `bytes_max` bytes of dead files, on all devices together.
    pub(crate) fn keep_recycled_up_to(&self, bytes_max: u64) {
        let members = self.members.load();
        members.iter().for_each(|member| member.recycled.keep_up_to(bytes_max / members.len() as u64));
    }

    /// Bytes that recycled files take.
    pub(crate) fn recycled_bytes(&self) -> u64 {
        self.members.load().iter().map(|member| member.recycled.bytes()).sum()
    }

    /// Number of preallocated packs that no job has taken.
    pub(crate) fn pooled(&self) -> u64 {
        self.members.load().iter().map(|member| member.recycled.pooled()).sum()
    }

    /// Frees the space of recycled files. Returns whether any space came free.
    pub(crate) fn free_recycled(&self) -> Result<bool> {
        let members = self.members.load();
        members.iter().try_fold(false, |freed, member| Ok(member.recycled.free()? | freed))
    }

    /// Makes durable the names that packs had by these moments, each on its device.
    pub(crate) fn sync_names(&self, named: &[(DeviceId, Named)]) -> Result<()> {
        let sync = |&(id, named): &(DeviceId, Named)| {
            self.member(id).device.sync_names_upto(named, WriteCause::Directory)
        };
        let at_home = planted!("names-synced-at-home-alone");
        named.iter().filter(|(id, _)| !at_home || *id == self.home().id).try_for_each(sync)
    }

    /// Ends the write queues, and keeps no dead files from now on.
    pub(crate) fn close(&self) {
        self.members.load().iter().for_each(|member| member.close());
    }
}

#[cfg(test)]
mod tests;
