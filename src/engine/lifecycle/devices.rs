//! The devices of a store that is being opened: finds its directories besides home, and takes new ones in.
//!
//! # A new device
//!
//! 1. Its directory is made and locked, and has no file of a store.
//! 2. Its speed is measured. What a power cut leaves of that is removed when the device is opened.
//! 3. IDENTITY there names the store and the device; durable.
//! 4. DEVICES at home names it; durable. Only now an edit may.
//!
//! A power cut between the last two leaves a directory of an id that the store does not know. It is new when it is given again.
//!
//! # One that is there
//!
//! DEVICES says where it was last. It may be given from elsewhere: IDENTITY says which it is. Without it the store is not opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::opening::Opening;
use crate::env::FileLock;
use crate::error::{Error, ErrorKind, Result};
use crate::format::devices::{DeviceList, ListedDevice};
use crate::format::identity::{Identity, StoreId};
use crate::format::names::FileName;
use crate::store::files::device::Device;
use crate::store::files::devices::{Devices, Member, UNKNOWN_BANDWIDTH};
use crate::store::files::meter::{Meter, WriteCause};
use crate::store::files::write_queue::WriteQueue;
use crate::store::{device_list, identity};
use crate::types::DeviceId;

/// So many bytes are written to find out how fast a device is, or a memtable's worth, if that is less; in pieces of
/// [`PIECE_BYTES`].
const CALIBRATION_BYTES: u64 = 16 << 20;
const PIECE_BYTES: u64 = 1 << 20;

/// The number of the file that is written for it; it is removed as recycled files are.
const CALIBRATION_FILE: FileName = FileName::Recycled(0);

/// A directory that was given or is listed.
struct Found {
    device: Arc<Device>,
    lock: Option<FileLock>,
    /// Which device it is, if it has been one of this store.
    id: Option<DeviceId>,
}

/// Opens the devices of the store `store`, whose home is open, and which are `listed` there.
pub(super) fn open(
    opening: &Opening,
    (home, store): (&Arc<Device>, StoreId),
    listed: Option<DeviceList>,
    meter: &Arc<Meter>,
) -> Result<Devices> {
    if let Some(other) = listed.as_ref().map(|list| list.store).filter(|listed| *listed != store) {
        let what = format!("the devices are those of store {other}, and this is store {store}");
        return Err(Error::corruption(&home.path(FileName::Devices), 0, what));
    }
    let none = || DeviceList { store, next: DeviceId(1), home_bandwidth: 0, devices: Vec::new() };
    let mut list = listed.clone().unwrap_or_else(none);
    let open = Opener { opening, home, meter, store };
    let mut found: Vec<Found> = Vec::new();
    for dir in &opening.devices {
        let dir = open.directory_given(dir)?;
        if found.iter().any(|other| other.device.dir() == dir) {
            return Err(refused(&dir, "is given twice"));
        }
        let given = open.given(dir, &list)?;
        if let Some(id) = given.id.filter(|_| found.iter().any(|other| other.id == given.id)) {
            return Err(refused(
                given.device.dir(),
                &format!("is a copy of device {id}, which is given too"),
            ));
        }
        found.push(given);
    }
    for ListedDevice { id, dir, .. } in &list.devices {
        if !found.iter().any(|given| given.id == Some(*id)) {
            found.push(open.listed(Path::new(dir), *id)?);
        }
    }
    if found.is_empty() {
        return Ok(Devices::alone(home.clone()));
    }
    if list.home_bandwidth == 0 {
        list.home_bandwidth = measured(opening, home);
    }
    for device in &mut found {
        open.enlist(device, &mut list)?;
    }
    if !opening.read_only {
        // Also where nothing has changed: a sync that failed may have left the name where later syncs pass over it.
        let is_trusted = listed.as_ref() == Some(&list) && planted!("devices-not-listed-again");
        if !is_trusted {
            device_list::write(home, &list)?;
        }
    }
    members(opening, home, &list, found)
}

/// Takes the one directory that `opening` gives in as a device of an open store.
pub(super) fn add(opening: &Opening, store: StoreId, meter: &Arc<Meter>, devices: &Devices) -> Result<()> {
    let home = devices.home();
    let none = DeviceList { store, next: DeviceId(1), home_bandwidth: 0, devices: Vec::new() };
    let mut list = device_list::find(&home.device)?.unwrap_or(none);
    let open = Opener { opening, home: &home.device, meter, store };
    let [dir] = &opening.devices[..] else { return Ok(()) };
    let dir = open.directory_given(dir)?;
    if devices.members().iter().any(|member| member.device.dir() == dir) {
        return Err(refused(&dir, "is one of the store already"));
    }
    let mut found = open.given(dir, &list)?;
    if list.home_bandwidth == 0 {
        list.home_bandwidth = measured(opening, &home.device);
    }
    open.enlist(&mut found, &mut list)?;
    device_list::write(&home.device, &list)?;
    let with_queue = match home.queue {
        Some(_) => None,
        None => Some(home.with_queue(list.home_bandwidth, start_queue(opening, &home.device)?)),
    };
    if let (Some(id), Some(listed)) = (found.id, list.devices.last()) {
        let queue = start_queue(opening, &found.device)?;
        devices.add(with_queue, Member::new((id, found.device), listed.bandwidth, Some(queue), found.lock));
    }
    Ok(())
}

/// Lets the device `id` of an open store go: first from DEVICES, then its directory is no store's any more.
pub(super) fn remove(devices: &Devices, id: DeviceId) -> Result<()> {
    let (home, member) = (devices.home(), devices.member(id));
    if let Err(packs) = devices.take_out(id) {
        let why = format!(
            "still has {packs} packs: iterators and snapshots may hold some, or a job or an ingest that began before writes them"
        );
        return Err(Error::new(
            ErrorKind::Busy,
            format!("the device {} {why}", member.device.dir().display()),
        ));
    }
    let unlisted = device_list::find(&home.device).and_then(|list| match list {
        Some(mut list) => {
            list.devices.retain(|listed| listed.id != id);
            device_list::write(&home.device, &list)
        }
        None => Ok(()),
    });
    if let Err(error) = unlisted {
        devices.put_back(member);
        return Err(error);
    }
    member.close();
    for name in [FileName::Identity, FileName::Lock] {
        member.device.remove(name)?;
    }
    Ok(())
}

fn start_queue(opening: &Opening, device: &Device) -> Result<WriteQueue> {
    WriteQueue::start(&opening.env).map_err(|e| Error::io("start a background thread for", device.dir(), e))
}

fn members(
    opening: &Opening,
    home: &Arc<Device>,
    list: &DeviceList,
    mut found: Vec<Found>,
) -> Result<Devices> {
    let queue = |device: &Device| match opening.read_only {
        true => Ok(None),
        false => start_queue(opening, device).map(Some),
    };
    let mut members =
        vec![Member::new((DeviceId(0), home.clone()), list.home_bandwidth.max(1), queue(home)?, None)];
    for ListedDevice { id, bandwidth, .. } in &list.devices {
        if let Some(Found { device, lock, .. }) = found.iter_mut().find(|found| found.id == Some(*id)) {
            let queue = queue(device)?;
            members.push(Member::new((*id, device.clone()), (*bandwidth).max(1), queue, lock.take()));
        }
    }
    Ok(Devices::new(members))
}

/// What is needed to open a directory besides home.
struct Opener<'a> {
    opening: &'a Opening,
    home: &'a Arc<Device>,
    meter: &'a Arc<Meter>,
    store: StoreId,
}

impl Opener<'_> {
    /// The name of a directory that the caller has given. It is made if it is missing.
    fn directory_given(&self, dir: &Path) -> Result<PathBuf> {
        let env = &self.opening.env;
        if !self.opening.read_only {
            env.create_dir(dir).map_err(|e| Error::io("create the directory", dir, e))?;
        }
        let dir = env.canonical(dir).map_err(|e| Error::io("find the directory", dir, e))?;
        if dir == self.home.dir() {
            return Err(refused(&dir, "is the directory of the store itself"));
        }
        Ok(dir)
    }

    /// A device that the caller has given.
    fn given(&self, dir: PathBuf, list: &DeviceList) -> Result<Found> {
        let (device, lock) = self.locked(dir)?;
        let dir = device.dir();
        let names = device.list()?;
        if !names.contains(&FileName::Identity) {
            let is_ours = |name: &&FileName| {
                !matches!(name, FileName::Lock | FileName::IdentityTemp | FileName::Recycled(_))
            };
            if let Some(name) = names.iter().find(is_ours) {
                return Err(refused(
                    dir,
                    &format!("has {name} of a store, and no IDENTITY: it cannot be taken in"),
                ));
            }
            if self.opening.read_only {
                return Err(refused(
                    dir,
                    "is no device of the store, and a store that is only read takes none in",
                ));
            }
            return Ok(Found { device, lock, id: None });
        }
        let Identity { store, device: id } = identity::read(&device)?;
        if store != self.store {
            return Err(refused(
                dir,
                &format!("is a device of store {store}, and this is store {}", self.store),
            ));
        }
        let listed = list.devices.iter().find(|listed| listed.id == id);
        if listed.is_none() && id < list.next {
            return Err(refused(dir, "was a device of this store once: remove its files to give it anew"));
        }
        if let Some(last) = listed.filter(|listed| self.is_elsewhere(listed, dir)) {
            let why = format!(
                "is a copy of device {id}, which is in {}: remove its files to give it anew",
                last.dir
            );
            return Err(refused(dir, &why));
        }
        Ok(Found { device, lock, id: listed.map(|_| id) })
    }

    /// Whether `listed` is where it was last, and that is not `dir`: an addition that was cut off, or a copy of its directory, has
    /// left the same id there.
    fn is_elsewhere(&self, listed: &ListedDevice, dir: &Path) -> bool {
        let Ok(last) = self.opening.env.canonical(Path::new(&listed.dir)) else { return false };
        let found =
            || identity::read(&Device::new(self.opening.env.clone(), last.clone(), self.meter.clone()));
        last != dir && found().is_ok_and(|found| found == Identity { store: self.store, device: listed.id })
    }

    /// The device `id`, which was in `dir` last.
    fn listed(&self, dir: &Path, id: DeviceId) -> Result<Found> {
        let missing = |what: &str| {
            let message = format!(
                "device {id} of the store in {} is missing: {}{what}. Mount it, or give the directory where it is now",
                self.home.dir().display(),
                dir.display()
            );
            Error::new(ErrorKind::NotFound, message)
        };
        let Ok(dir) = self.opening.env.canonical(dir) else { return Err(missing(" is not there")) };
        let (device, lock) = self.locked(dir)?;
        if !device.list()?.contains(&FileName::Identity) {
            return Err(missing(" has no IDENTITY"));
        }
        let found = identity::read(&device)?;
        if found != (Identity { store: self.store, device: id }) {
            return Err(missing(&format!(" is device {} of store {}", found.device, found.store)));
        }
        Ok(Found { device, lock, id: Some(id) })
    }

    /// The directory `dir`, locked.
    fn locked(&self, dir: PathBuf) -> Result<(Arc<Device>, Option<FileLock>)> {
        let device = Arc::new(Device::new(self.opening.env.clone(), dir, self.meter.clone()));
        let lock = if self.opening.read_only { None } else { Some(device.lock()?) };
        Ok((device, lock))
    }

    /// Enters `found` into the list, with where it is now.
    fn enlist(&self, found: &mut Found, list: &mut DeviceList) -> Result<()> {
        let path: PathBuf = found.device.dir().into();
        let Some(dir) = path.to_str().map(str::to_owned) else {
            return Err(refused(&path, "has a name that is not UTF-8"));
        };
        if let Some(listed) = list.devices.iter_mut().find(|listed| Some(listed.id) == found.id) {
            listed.dir = dir;
            return Ok(());
        }
        let id = list.next;
        let Some(next) = id.0.checked_add(1) else {
            return Err(refused(&path, "would be one device too many"));
        };
        let bandwidth = measured(self.opening, &found.device);
        identity::write(&found.device, &Identity { store: self.store, device: id })?;
        list.devices.push(ListedDevice { id, bandwidth, dir });
        (list.next, found.id) = (DeviceId(next), Some(id));
        Ok(())
    }
}

/// Bytes per second that `device` writes.
fn measured(opening: &Opening, device: &Device) -> u64 {
    let bytes = CALIBRATION_BYTES.min(opening.options.memtable_bytes).max(1);
    let write = || -> Result<Duration> {
        device.remove(CALIBRATION_FILE)?;
        let file = device.create(CALIBRATION_FILE)?;
        let piece = vec![0x5a; usize::try_from(PIECE_BYTES.min(bytes)).unwrap_or(0)];
        let start = opening.env.now();
        for offset in (0..bytes).step_by(piece.len()) {
            file.write(WriteCause::Manifest, offset, &piece)?;
        }
        file.sync(WriteCause::Manifest)?;
        Ok(opening.env.now().saturating_sub(start))
    };
    let time = write();
    // What cannot be removed now is removed when the store is opened next.
    let _ = device.remove(CALIBRATION_FILE);
    let per_second = |time: Duration| (bytes as f64 / time.as_secs_f64().max(1e-6)) as u64;
    time.map_or(UNKNOWN_BANDWIDTH, per_second).max(1)
}

fn refused(dir: &Path, why: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("the device {} {why}", dir.display()))
}
