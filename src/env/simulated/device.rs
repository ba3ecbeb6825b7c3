//! Simulated storage devices: how long their work takes in virtual time, and how much they hold.
//!
//! A device serves a directory and everything below it, unless a deeper directory has a device of its own. Requests
//! queue: up to `queue_depth` of them overlap their latencies, while their transfers share the bandwidth one after
//! another.
//!
//! The presets model the disks on which the papers' authors measured, roughly, by what the makers state. The makers
//! do not state how long a flush takes: that is what others measured with `fio --sync=1 --bs=4k`, collected in
//! [ceph-diskbench](https://github.com/TheJJ/ceph-diskbench).
//!
//! Writes go to a page cache at memory speed. They reach the device when they are synced, in requests of bounded
//! length, or when the cache holds more than `dirty_bytes_max` of them: then the writer waits until the excess is
//! written. What is read ahead ([`File::read_ahead`](crate::env::File::read_ahead)) queues like a read, and nobody waits for it
//! before its bytes are read. Reads go to the device, unless the machine has a page cache for them, too
//! ([`SimEnv::set_page_cache`](super::SimEnv::set_page_cache)).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::env::Space;

/// What the work of a device costs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceModel {
    /// Time before the transfer of a read.
    pub read_latency: Duration,
    /// Time of a flush. A sync takes one where it writes over what is there, two where the file system's journal must be
    /// committed, for a file that has grown or names that have changed, and none where nothing waits for it.
    pub flush_latency: Duration,
    /// Time of a change of names, lengths or holes, which does not queue.
    pub metadata_latency: Duration,
    /// Bytes per second.
    pub read_bandwidth: u64,
    /// Bytes per second.
    pub write_bandwidth: u64,
    /// Speed of the page cache, in bytes per second.
    pub cache_bandwidth: u64,
    /// Un-synced bytes above which a writer waits for the device.
    pub dirty_bytes_max: u64,
    /// Requests that overlap; at least 1.
    pub queue_depth: usize,
    /// Where one thread submits all requests, as the reactor of a driver in user space (SPDK) does: its time for each of them. Zero
    /// where callers submit their own.
    pub reactor_latency: Duration,
    /// Bytes per second that this thread passes on.
    pub reactor_bandwidth: u64,
}

impl DeviceModel {
    /// A device whose work takes no time.
    #[must_use]
    pub const fn instant() -> Self {
        Self {
            read_latency: Duration::ZERO,
            flush_latency: Duration::ZERO,
            metadata_latency: Duration::ZERO,
            read_bandwidth: u64::MAX,
            write_bandwidth: u64::MAX,
            cache_bandwidth: u64::MAX,
            dirty_bytes_max: u64::MAX,
            queue_depth: 1,
            reactor_latency: Duration::ZERO,
            reactor_bandwidth: u64::MAX,
        }
    }

    /// The solid-state disk of a laptop, on a SATA port: Samsung 860 EVO, 1 TB, on which BoLT was measured.
    ///
    /// Data sheet: 550 MB/s read, 500 MB/s written once the fast buffer is full, 10,000 reads of 4 KiB a second one at a
    /// time. 490 synced writes a second: 2 ms for a flush.
    #[must_use]
    pub const fn laptop_sata_ssd() -> Self {
        Self {
            read_latency: Duration::from_micros(92),
            flush_latency: Duration::from_millis(2),
            metadata_latency: Duration::from_micros(5),
            read_bandwidth: 550_000_000,
            write_bandwidth: 500_000_000,
            cache_bandwidth: 4_000_000_000,
            dirty_bytes_max: 256 << 20,
            queue_depth: 32,
            reactor_latency: Duration::ZERO,
            reactor_bandwidth: u64::MAX,
        }
    }

    /// The solid-state disk of a server, on a SATA port: Intel D3-S4510, 480 GB, on which PTierDB was measured.
    ///
    /// Data sheet: 560 MB/s read, 490 MB/s written. 1,600 synced writes a second: 0.6 ms for a flush. The read latency is that
    /// of the laptop's, whose cells are alike.
    #[must_use]
    pub const fn datacenter_sata_ssd() -> Self {
        Self {
            flush_latency: Duration::from_micros(600),
            read_bandwidth: 560_000_000,
            write_bandwidth: 490_000_000,
            ..Self::laptop_sata_ssd()
        }
    }

    /// A consumer solid-state disk on an NVMe port, such as Samsung 970 EVO.
    ///
    /// Data sheet: 15,000 reads of 4 KiB a second one at a time, up to 3,400 MB/s read; written between the 2,500 MB/s of
    /// the fast buffer and the 1,200 behind it. 0.5 ms for a flush is assumed; a 970 PRO takes 2.2.
    #[must_use]
    pub const fn nvme() -> Self {
        Self {
            read_latency: Duration::from_micros(70),
            flush_latency: Duration::from_micros(500),
            read_bandwidth: 3_000_000_000,
            write_bandwidth: 1_800_000_000,
            queue_depth: 128,
            ..Self::laptop_sata_ssd()
        }
    }

    /// A disk of 7200 revolutions per minute.
    #[must_use]
    pub const fn hdd() -> Self {
        Self {
            read_latency: Duration::from_micros(8500),
            flush_latency: Duration::from_millis(8),
            read_bandwidth: 160_000_000,
            write_bandwidth: 150_000_000,
            queue_depth: 1,
            ..Self::laptop_sata_ssd()
        }
    }

    /// Two disks of 15,000 revolutions per minute, striped: Seagate Cheetah 15K.7, 450 GB, on which LSbM was measured.
    ///
    /// Product manual, of one: 3.4 ms to seek for a read, 3.9 for a write, 2.0 to wait for the sector; 122 to 204 MB/s,
    /// of which the middle is taken. Each serves a read of its own. A flush takes a seek.
    #[must_use]
    pub const fn hdd_15k_pair() -> Self {
        Self {
            read_latency: Duration::from_micros(5400),
            flush_latency: Duration::from_micros(5900),
            read_bandwidth: 326_000_000,
            write_bandwidth: 326_000_000,
            queue_depth: 2,
            ..Self::laptop_sata_ssd()
        }
    }

    /// A device by its name, one of [`DeviceModel::presets`].
    ///
    /// ```
    /// use terrace::env::simulated::DeviceModel;
    /// assert_eq!(DeviceModel::preset("nvme"), Some(DeviceModel::nvme()));
    /// assert_eq!(DeviceModel::preset("drum"), None);
    /// ```
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, model)| *model)
    }

    /// Names that [`DeviceModel::preset`] knows.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }
}

const PRESETS: &[(&str, DeviceModel)] = &[
    ("laptop-sata-ssd", DeviceModel::laptop_sata_ssd()),
    ("datacenter-sata-ssd", DeviceModel::datacenter_sata_ssd()),
    ("nvme", DeviceModel::nvme()),
    ("hdd-15k-pair", DeviceModel::hdd_15k_pair()),
];

/// Longest request for data to be written, or read ahead; a file system splits longer ones, and other requests come in between.
pub(super) const REQUEST_BYTES_MAX: u64 = 512 << 10;

/// The cost of a call.
#[derive(Clone, Copy, Hash)]
pub(super) enum Cost {
    Free,
    Metadata,
    /// A read of this many bytes.
    Read(u64),
    /// A read of this many bytes from the page cache.
    ReadCached(u64),
    /// A read of which a part was read ahead.
    ReadAhead {
        /// Bytes that come from memory.
        ready: u64,
        /// Bytes that are still to be read.
        missing: u64,
        /// When the last transfer ends that was begun ahead.
        until: Duration,
    },
    /// A write of this many bytes to the page cache.
    Write(u64),
    /// A write of this many bytes from the page cache to the device.
    WriteBack(u64),
    /// A sync: bytes to write, and the number of flushes behind them.
    Sync(u64, u32),
}

impl Cost {
    /// The first request that the call makes of the device, and the rest of the call.
    pub(super) fn split(self) -> (Self, Option<Self>) {
        match self {
            Self::Sync(bytes, flushes) if bytes > REQUEST_BYTES_MAX => {
                (Self::WriteBack(REQUEST_BYTES_MAX), Some(Self::Sync(bytes - REQUEST_BYTES_MAX, flushes)))
            }
            whole => (whole, None),
        }
    }
}

/// The time that `bytes` take.
fn transfer(bytes: u64, bandwidth: u64) -> Duration {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(bandwidth.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

struct Device {
    dir: PathBuf,
    model: DeviceModel,
    /// When each place in the queue becomes free.
    places: Vec<Duration>,
    /// When the last transfer ends.
    transferred: Duration,
    /// When the thread that submits has submitted all that came in.
    submitted: Duration,
    /// Bytes in the page cache that wait to be written.
    dirty_bytes: u64,
    total_bytes: u64,
    used_bytes: Arc<AtomicU64>,
}

impl Device {
    fn new(dir: PathBuf, model: DeviceModel, total_bytes: u64) -> Self {
        let places = vec![Duration::ZERO; model.queue_depth.max(1)];
        Self {
            dir,
            model,
            places,
            transferred: Duration::ZERO,
            submitted: Duration::ZERO,
            dirty_bytes: 0,
            total_bytes,
            used_bytes: Arc::default(),
        }
    }

    /// Queues work that comes in at `now`; returns when it ends.
    fn serve(&mut self, now: Duration, latency: Duration, transfer: Duration) -> Duration {
        let mut end = now;
        if let Some(place) = self.places.iter_mut().min() {
            end = ((*place).max(now) + latency).max(self.transferred) + transfer;
            *place = end;
            self.transferred = end;
        }
        end
    }

    /// When a request for `bytes` that comes in at `now` has been submitted.
    fn submit(&mut self, now: Duration, bytes: u64) -> Duration {
        let DeviceModel { reactor_latency, reactor_bandwidth, .. } = self.model;
        let taken = reactor_latency + transfer(bytes, reactor_bandwidth);
        if taken.is_zero() {
            return now;
        }
        self.submitted = self.submitted.max(now) + taken;
        self.submitted
    }

    fn charge(&mut self, now: Duration, cost: Cost) -> Duration {
        let model = self.model;
        match cost {
            Cost::Free => now,
            Cost::Metadata => now + model.metadata_latency,
            Cost::ReadCached(bytes) => now + transfer(bytes, model.cache_bandwidth),
            Cost::Read(bytes) => {
                let now = self.submit(now, bytes);
                self.serve(now, model.read_latency, transfer(bytes, model.read_bandwidth))
            }
            Cost::ReadAhead { ready, missing, until } => {
                let copied = now + transfer(ready, model.cache_bandwidth);
                let read = if missing > 0 { self.charge(now, Cost::Read(missing)) } else { now };
                copied.max(read).max(until)
            }
            Cost::Write(bytes) => {
                let cached = now + transfer(bytes, model.cache_bandwidth);
                self.dirty_bytes += bytes;
                let excess = self.dirty_bytes.saturating_sub(model.dirty_bytes_max);
                self.dirty_bytes -= excess;
                if excess == 0 {
                    return cached;
                }
                let now = self.submit(cached, excess);
                self.serve(now, Duration::ZERO, transfer(excess, model.write_bandwidth))
            }
            Cost::WriteBack(bytes) => self.write_back(now, Duration::ZERO, bytes),
            Cost::Sync(bytes, flushes) => self.write_back(now, flushes * model.flush_latency, bytes),
        }
    }

    fn write_back(&mut self, now: Duration, latency: Duration, bytes: u64) -> Duration {
        let written = bytes.min(self.dirty_bytes);
        self.dirty_bytes -= written;
        let now = self.submit(now, written);
        self.serve(now, latency, transfer(written, self.model.write_bandwidth))
    }
}

/// The devices of the machine, the one of the root directory first.
pub(super) struct Devices {
    list: Vec<Device>,
}

impl Devices {
    pub(super) fn new(root: DeviceModel, total_bytes: u64) -> Self {
        Self { list: vec![Device::new(PathBuf::from("/"), root, total_bytes)] }
    }

    /// Puts a device under `dir`.
    pub(super) fn add(&mut self, dir: PathBuf, model: DeviceModel, total_bytes: u64) {
        self.list.push(Device::new(dir, model, total_bytes));
    }

    /// The same devices, idle and empty.
    pub(super) fn blank(&self) -> Self {
        let blank = |device: &Device| Device::new(device.dir.clone(), device.model, device.total_bytes);
        Self { list: self.list.iter().map(blank).collect() }
    }

    fn index(&self, path: &Path) -> usize {
        let serving = self.list.iter().enumerate().filter(|(_, device)| path.starts_with(&device.dir));
        serving.max_by_key(|(_, device)| device.dir.as_os_str().len()).map_or(0, |(index, _)| index)
    }

    /// When work on `path` that comes in at `now` ends.
    pub(super) fn charge(&mut self, path: &Path, now: Duration, cost: Cost) -> Duration {
        let index = self.index(path);
        self.list[index].charge(now, cost)
    }

    /// Forgets the un-synced bytes of a removed file: they are never written.
    pub(super) fn forget_dirty(&mut self, path: &Path, bytes: u64) {
        let index = self.index(path);
        let device = &mut self.list[index];
        device.dirty_bytes = device.dirty_bytes.saturating_sub(bytes);
    }

    /// The count of bytes that the files on the device of `path` occupy.
    pub(super) fn used(&self, path: &Path) -> &Arc<AtomicU64> {
        &self.list[self.index(path)].used_bytes
    }

    /// Bytes that the files on the device of `path` occupy.
    pub(super) fn used_bytes(&self, path: &Path) -> u64 {
        self.used(path).load(Ordering::Relaxed)
    }

    /// Space of the device of `path`.
    pub(super) fn space(&self, path: &Path) -> Space {
        let total = self.list[self.index(path)].total_bytes;
        Space { total, free: total.saturating_sub(self.used_bytes(path)) }
    }

    /// Sets what work on the device of `path` costs; what has been queued ends when it would have.
    pub(super) fn set_model(&mut self, path: &Path, model: DeviceModel) {
        let index = self.index(path);
        let device = &mut self.list[index];
        device.model = model;
        device.places.resize(model.queue_depth.max(1), device.transferred);
    }

    /// Sets the size of the device of `path`.
    pub(super) fn set_total(&mut self, path: &Path, total_bytes: u64) {
        let index = self.index(path);
        self.list[index].total_bytes = total_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn device(queue_depth: usize) -> Device {
        let model = DeviceModel {
            read_latency: MILLI,
            flush_latency: 5 * MILLI,
            read_bandwidth: 1_000_000,
            write_bandwidth: 1_000_000,
            dirty_bytes_max: 10_000,
            queue_depth,
            ..DeviceModel::instant()
        };
        Device::new(PathBuf::from("/"), model, u64::MAX)
    }

    #[test]
    fn a_single_queue_serves_one_after_another() {
        let mut device = device(1);
        assert_eq!(device.charge(Duration::ZERO, Cost::Read(1000)), 2 * MILLI);
        assert_eq!(device.charge(Duration::ZERO, Cost::Read(1000)), 4 * MILLI);
        assert_eq!(device.charge(10 * MILLI, Cost::Read(0)), 11 * MILLI);
    }

    #[test]
    fn a_deep_queue_overlaps_latencies_but_not_transfers() {
        let mut device = device(2);
        assert_eq!(device.charge(Duration::ZERO, Cost::Read(1000)), 2 * MILLI);
        assert_eq!(device.charge(Duration::ZERO, Cost::Read(1000)), 3 * MILLI);
    }

    #[test]
    fn one_thread_submits_one_request_after_another() {
        let mut device = device(2);
        device.model.reactor_latency = MILLI;
        device.model.reactor_bandwidth = 2_000_000;
        assert_eq!(
            device.charge(Duration::ZERO, Cost::Read(2000)),
            5 * MILLI,
            "2 to submit, 1 to begin, 2 to read"
        );
        assert_eq!(
            device.charge(Duration::ZERO, Cost::Read(0)),
            5 * MILLI,
            "submitted at 3, behind the other"
        );
        device.charge(Duration::ZERO, Cost::Write(10_000));
        assert_eq!(device.charge(10 * MILLI, Cost::Write(2000)), 14 * MILLI, "only what goes to the device");
    }

    #[test]
    fn a_write_is_paid_at_the_sync() {
        let mut device = device(1);
        assert_eq!(device.charge(Duration::ZERO, Cost::Write(4000)), Duration::ZERO);
        assert_eq!(device.charge(Duration::ZERO, Cost::Sync(4000, 1)), 9 * MILLI);
        assert_eq!(device.charge(9 * MILLI, Cost::Sync(0, 2)), 19 * MILLI);
        assert_eq!(device.charge(19 * MILLI, Cost::Sync(0, 0)), 19 * MILLI);
    }

    #[test]
    fn a_long_sync_lets_others_in_between() {
        let (first, rest) = Cost::Sync(REQUEST_BYTES_MAX + 1000, 1).split();
        assert!(matches!(first, Cost::WriteBack(REQUEST_BYTES_MAX)));
        assert!(matches!(rest.map(Cost::split), Some((Cost::Sync(1000, 1), None))));
        let mut device = device(1);
        device.dirty_bytes = 4000;
        assert_eq!(device.charge(Duration::ZERO, Cost::WriteBack(3000)), 3 * MILLI);
        assert_eq!(device.charge(Duration::ZERO, Cost::Read(0)), 4 * MILLI);
        assert_eq!(device.charge(3 * MILLI, Cost::Sync(1000, 1)), 10 * MILLI);
    }

    #[test]
    fn presets_are_told_apart_by_their_names() {
        let models: Vec<_> = DeviceModel::presets().filter_map(DeviceModel::preset).collect();
        assert_eq!(models.len(), PRESETS.len());
        assert!((1..models.len()).all(|at| !models[..at].contains(&models[at])));
    }

    #[test]
    fn a_writer_waits_when_the_page_cache_is_full() {
        let mut device = device(1);
        assert_eq!(device.charge(Duration::ZERO, Cost::Write(10_000)), Duration::ZERO);
        assert_eq!(device.charge(Duration::ZERO, Cost::Write(3000)), 3 * MILLI);
    }

    #[test]
    fn a_device_that_changes_goes_on_with_what_is_queued() {
        let mut devices = Devices::new(DeviceModel { read_latency: MILLI, ..DeviceModel::instant() }, 100);
        let mut read = |model: Option<DeviceModel>| {
            model.into_iter().for_each(|model| devices.set_model(Path::new("/db"), model));
            devices.charge(Path::new("/db/1.pack"), Duration::ZERO, Cost::Read(0))
        };
        let slow = DeviceModel { read_latency: 3 * MILLI, ..DeviceModel::instant() };
        assert_eq!([read(None), read(Some(slow)), read(None)], [MILLI, 4 * MILLI, 7 * MILLI]);
    }

    #[test]
    fn the_deepest_directory_decides_the_device() {
        let mut devices = Devices::new(DeviceModel::instant(), 100);
        devices.add(PathBuf::from("/db/fast"), DeviceModel::nvme(), 7);
        assert_eq!(devices.space(Path::new("/db/fast/1.pack")).total, 7);
        assert_eq!(devices.space(Path::new("/db/faster")).total, 100);
    }
}
