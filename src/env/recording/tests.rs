//! Tests of the recording environment.

use super::*;
use crate::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv};

fn p(path: &str) -> &Path {
    Path::new(path)
}

fn workload(env: &RecordingEnv) {
    env.create_dir(p("store")).unwrap();
    let dir = env.canonical(p("store")).unwrap();
    let lock = env.create(&dir.join("LOCK")).unwrap();
    drop(env.lock(&dir.join("LOCK"), LockKind::Exclusive).unwrap());
    drop(env.lock(&dir.join("LOCK"), LockKind::Shared).unwrap());
    lock.write_at(0, b"abc").unwrap();
    lock.write_at(3, b"def").unwrap();
    lock.write_at(0, b"x").unwrap();
    lock.read_at(0, &mut [0; 6]).unwrap();
    lock.sync().unwrap();
    lock.set_len(100).unwrap();
    lock.punch(0, 4096).unwrap();
    env.rename(&dir.join("LOCK"), &dir.join("KEY")).unwrap();
    env.remove(&dir.join("KEY")).unwrap();
    env.sync_dir(&dir).unwrap();
    env.create_dir(p("/other")).unwrap();
}

const START: &str = "create-dir .\ncreate LOCK\nlock LOCK\nlock-shared LOCK\n";
const END: &str = "write LOCK 0+1\nsync LOCK\nset-len LOCK 100\npunch LOCK 0+4096\nrename LOCK KEY\nremove KEY\n\
                   sync-dir .\ncreate-dir /other\n";

#[test]
fn each_change_is_a_line() {
    let env = RecordingEnv::new(SimEnv::new(SimConfig::default()));
    workload(&env);
    assert_eq!(env.take(), format!("{START}write LOCK 0+3\nwrite LOCK 3+3\n{END}"));
    assert_eq!(env.take(), "");
}

#[test]
fn appends_are_merged_on_request() {
    let env = RecordingEnv::merging_appends(SimEnv::new(SimConfig::default()));
    workload(&env);
    assert_eq!(env.take(), format!("{START}write LOCK 0+6 in 2 calls\n{END}"));
}

#[test]
fn a_failure_is_recorded_and_passed_on() {
    let machine = SimEnv::new(SimConfig::default());
    let env = RecordingEnv::new(Arc::clone(&machine) as Arc<dyn Env>);
    let file = env.create(p("/f")).unwrap();
    for operation in [Operation::WriteAt, Operation::Sync] {
        let target = FaultTarget::Matching { operation, path_suffix: "f".to_owned(), skipped: 0 };
        machine.fault(FaultRule { target, error: FaultError::NoSpace, sticky: false, partial: false });
    }
    let refused = file.write_at(0, b"x").unwrap_err();
    file.sync().unwrap_err();
    assert_eq!(env.take(), format!("create /f\nwrite /f 0+1: {refused}\nsync /f: {refused}\n"));
}
