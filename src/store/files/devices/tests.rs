//! Tests of devices that leave: what still begins there, and what is waited for.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::env::simulated::{SimConfig, SimEnv};
use crate::store::files::meter::Meter;
use crate::store::files::pack::PackStore;

const SECOND: DeviceId = DeviceId(1);

/// A store at `/home` and `/second`.
fn packs() -> PackStore {
    let env = SimEnv::new(SimConfig::default());
    let meter = Arc::new(Meter::default());
    let member = |id: u16, dir: &str| {
        env.create_dir(Path::new(dir)).unwrap();
        let device = Arc::new(Device::new(env.clone(), dir.into(), meter.clone()));
        Member::new((DeviceId(id), device), UNKNOWN_BANDWIDTH, None, None)
    };
    let devices = Arc::new(Devices::new(vec![member(0, "/home"), member(1, "/second")]));
    PackStore::new(devices, BTreeMap::new(), false)
}

#[test]
fn a_pack_for_a_device_that_leaves_begins_at_home() {
    let packs = packs();
    let begin = |id: u64| packs.create(PackId(id), SECOND, WriteCause::Compaction, 1 << 20).unwrap().device();
    assert_eq!(begin(1), SECOND);
    packs.devices().set_leaving(SECOND, true);
    assert_eq!(begin(2), DeviceId(0));
    packs.devices().set_leaving(SECOND, false);
    assert_eq!(begin(3), SECOND);
}

#[test]
fn what_jobs_write_is_told_until_they_end() {
    let packs = packs();
    let devices = packs.devices();
    let begun = packs.create(PackId(1), SECOND, WriteCause::Compaction, 1 << 20).unwrap();
    devices.set_leaving(SECOND, true);
    assert!(devices.is_written(SECOND) && !devices.is_written(DeviceId(0)));
    drop(begun);
    assert!(!devices.is_written(SECOND), "it was given up");

    devices.set_leaving(SECOND, false);
    let begun = packs.create(PackId(2), SECOND, WriteCause::Compaction, 1 << 20).unwrap();
    let sealed = begun.begin_seal().unwrap().finish().unwrap();
    assert!(devices.is_written(SECOND), "no edit names it yet");
    devices.note_ended(sealed.id);
    assert!(!devices.is_written(SECOND));
    assert_eq!(devices.take_out(SECOND), Err(1), "it is there, whoever wrote it");
    packs.remove(sealed.id).unwrap();
    assert_eq!(devices.take_out(SECOND), Ok(()));
}

#[test]
fn home_does_not_leave_for_a_device_that_has_gone() {
    let packs = packs();
    let devices = packs.devices();
    // Two callers have looked up the same device; the first has removed it by now.
    devices.take_out(SECOND).unwrap();
    devices.set_leaving(SECOND, true);
    assert!(!devices.home().is_leaving(), "home would take nothing any more");
}
