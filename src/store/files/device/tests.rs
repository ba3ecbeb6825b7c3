//! Tests of names: when a name is durable.

use super::*;
use crate::env::simulated::{
    FaultError, FaultRule, FaultTarget, Journal, Operation, SimConfig, SimEnv, Survival,
};
use crate::types::PackId;

fn device() -> (Arc<SimEnv>, Device) {
    let env = SimEnv::new(SimConfig { journal: Journal::None, ..SimConfig::default() });
    env.create_dir(Path::new("/db")).unwrap();
    let device = Device::new(env.clone(), "/db".into(), Arc::new(Meter::default()));
    (env, device)
}

fn name(pack: u64) -> FileName {
    FileName::Pack(PackId(pack))
}

#[test]
fn a_sync_covers_the_names_that_were_given_before_and_no_others() {
    let (env, device) = device();
    device.create(name(1)).unwrap();
    let first = device.named();
    assert!(!device.is_durable(first));
    device.sync_names().unwrap();
    device.create(name(2)).unwrap();
    device.rename(name(2), name(3)).unwrap();
    let second = device.named();
    assert!(device.is_durable(first) && !device.is_durable(second));
    assert_eq!(env.crash(Survival::Nothing).files().len(), 1);
    device.sync_names_upto(second, WriteCause::Preallocate).unwrap();
    assert!(device.is_durable(second));
    assert_eq!(env.crash(Survival::Nothing).files().len(), 2);
    let counts = [WriteCause::Directory, WriteCause::Preallocate].map(|cause| device.meter.syncs(cause));
    assert_eq!(counts, [1, 1]);
}

#[test]
fn what_is_durable_needs_no_barrier_and_outlives_a_sync_that_fails() {
    let (env, device) = device();
    let first = device.named();
    device.sync_names().unwrap();
    let calls = env.calls();
    device.sync_names_upto(first, WriteCause::Directory).unwrap();
    assert_eq!(env.calls(), calls);
    let second = device.named();
    let target =
        FaultTarget::Matching { operation: Operation::SyncDir, path_suffix: "/db".into(), skipped: 0 };
    env.fault(FaultRule { target, error: FaultError::Io, sticky: false, partial: false });
    assert_eq!(device.sync_names_upto(second, WriteCause::Preallocate).unwrap_err().kind(), ErrorKind::Io);
    // The next sync would succeed, and say nothing of this name.
    assert_eq!(device.sync_names_upto(second, WriteCause::Directory).unwrap_err().kind(), ErrorKind::Io);
    assert!(device.sync_names().is_err() && !device.is_durable(second));
    device.sync_names_upto(first, WriteCause::Directory).unwrap();
}
