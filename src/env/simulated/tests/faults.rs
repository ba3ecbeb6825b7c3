//! Tests of the fault script.

use std::io::ErrorKind;

use super::*;
use crate::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, Survival};

fn rule(target: FaultTarget, error: FaultError) -> FaultRule {
    FaultRule { target, error, sticky: false, partial: false }
}

fn matching(operation: Operation, path_suffix: &str, skipped: u64) -> FaultTarget {
    FaultTarget::Matching { operation, path_suffix: path_suffix.to_owned(), skipped }
}

#[test]
fn a_failed_sync_loses_what_later_syncs_do_not_write() {
    for journal in [Journal::Ext4Like, Journal::None] {
        let env = machine(journal);
        let file = named(&env, "/f");
        file.write_at(0, b"lost").unwrap();
        env.fault(rule(matching(Operation::Sync, "f", 0), FaultError::Io));
        assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
        assert_eq!(env.read_file(p("/f")).unwrap(), b"lost");
        file.sync().unwrap();
        assert_eq!(env.crash(Survival::Nothing).read_file(p("/f")).unwrap(), b"");
        file.write_at(4, b"kept").unwrap();
        file.sync().unwrap();
        assert_eq!(env.crash(Survival::Nothing).read_file(p("/f")).unwrap(), b"\0\0\0\0kept");
        assert_eq!(env.crash(Survival::Everything).read_file(p("/f")).unwrap(), b"lostkept");
    }
}

#[test]
fn a_failed_write_back_loses_its_range_whatever_is_synced_later() {
    let env = machine(Journal::None);
    let file = named(&env, "/f");
    file.write_at(0, b"kept").unwrap();
    file.write_at(4, b"lost").unwrap();
    file.write_at(8, b"kept").unwrap();
    env.fault(rule(matching(Operation::WriteBack, "f", 1), FaultError::Io));
    file.write_back(0..4, false).unwrap();
    file.write_back(4..8, true).unwrap_err();
    assert_eq!(env.crash(Survival::Nothing).read_file(p("/f")).unwrap(), b"", "nothing is durable by it");
    file.write_back(8..12, true).unwrap();
    file.sync().unwrap();
    assert_eq!(env.read_file(p("/f")).unwrap(), b"keptlostkept");
    assert_eq!(env.crash(Survival::Nothing).read_file(p("/f")).unwrap(), b"kept\0\0\0\0kept");
    assert_eq!(env.crash(Survival::Everything).read_file(p("/f")).unwrap(), b"keptlostkept");
}

#[test]
fn a_write_after_a_failed_sync_hides_what_was_lost() {
    let env = machine(Journal::None);
    let file = named(&env, "/f");
    file.write_at(0, b"old").unwrap();
    env.fault(rule(matching(Operation::Sync, "f", 0), FaultError::Io));
    file.sync().unwrap_err();
    file.write_at(0, b"new").unwrap();
    file.sync().unwrap();
    for seed in 0..50 {
        assert_eq!(env.crash(Survival::Random(seed)).read_file(p("/f")).unwrap(), b"new");
    }
}

#[test]
fn a_failed_directory_sync_leaves_names_in_doubt() {
    let env = machine(Journal::None);
    env.create(p("/f")).unwrap();
    env.fault(rule(matching(Operation::SyncDir, "/", 0), FaultError::Io));
    env.sync_dir(p("/")).unwrap_err();
    env.sync_dir(p("/")).unwrap();
    assert!(paths(&env.crash(Survival::Nothing)).is_empty());
    assert_eq!(paths(&env.crash(Survival::Everything)).len(), 1);
}

#[test]
fn a_rule_strikes_the_call_that_it_names() {
    let env = machine(Journal::Ext4Like);
    env.fault(rule(matching(Operation::Create, ".pack", 1), FaultError::TooManyFiles));
    env.create(p("/1.pack")).unwrap();
    env.create(p("/1.wal")).unwrap();
    let error = env.create(p("/2.pack")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
    assert_eq!(env.faults_fired(), 1);
    env.create(p("/2.pack")).unwrap();
}

#[test]
fn every_call_can_be_struck_by_its_index() {
    let workload = |env: &SimEnv| -> std::io::Result<()> {
        env.create_dir(p("/d"))?;
        let file = env.create(p("/d/a"))?;
        file.write_at(0, b"x")?;
        file.sync()?;
        file.read_at(0, &mut [0])?;
        env.rename(p("/d/a"), p("/d/b"))?;
        env.sync_dir(p("/d"))
    };
    let calls = {
        let env = machine(Journal::Ext4Like);
        workload(&env).unwrap();
        env.calls()
    };
    assert_eq!(calls, 7);
    for index in 0..calls + 1 {
        let env = machine(Journal::Ext4Like);
        env.fault(rule(FaultTarget::Call(index), FaultError::Io));
        assert_eq!(workload(&env).is_err(), index < calls);
        assert_eq!(env.faults_fired(), u64::from(index < calls));
    }
}

#[test]
fn a_sticky_fault_lasts_until_it_is_cleared() {
    let env = machine(Journal::Ext4Like);
    let file = named(&env, "/f");
    env.fault(FaultRule { sticky: true, ..rule(matching(Operation::Punch, "", 0), FaultError::Unsupported) });
    for _ in 0..2 {
        assert_eq!(file.punch(0, 4096).unwrap_err().kind(), ErrorKind::Unsupported);
    }
    file.write_at(0, b"other calls go on").unwrap();
    env.clear_faults();
    file.punch(0, 4096).unwrap();
}

#[test]
fn a_partial_write_stores_its_first_half() {
    let env = machine(Journal::Ext4Like);
    let file = named(&env, "/f");
    env.fault(FaultRule { partial: true, ..rule(matching(Operation::WriteAt, "", 0), FaultError::NoSpace) });
    assert_eq!(file.write_at(0, b"abcdef").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(env.read_file(p("/f")).unwrap(), b"abc");
}

#[test]
fn a_struck_change_has_no_effect() {
    let env = machine(Journal::Ext4Like);
    let file = named(&env, "/f");
    file.write_at(0, b"abc").unwrap();
    for operation in
        [Operation::Remove, Operation::Rename, Operation::SetLen, Operation::WriteAt, Operation::Create]
    {
        env.fault(rule(matching(operation, "", 0), FaultError::Io));
    }
    env.remove(p("/f")).unwrap_err();
    env.rename(p("/f"), p("/g")).unwrap_err();
    file.set_len(0).unwrap_err();
    file.write_at(0, b"xyz").unwrap_err();
    env.create(p("/h")).unwrap_err();
    assert_eq!(paths(&env), [p("/f")]);
    assert_eq!(env.read_file(p("/f")).unwrap(), b"abc");
}
