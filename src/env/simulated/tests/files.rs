//! Tests of the simulated disk while nothing goes wrong.

use std::io::ErrorKind;
use std::time::Duration;

use super::*;
use crate::env::simulated::DeviceModel;
use crate::env::{Access, LockKind, Priority};

#[test]
fn written_bytes_are_read_back() {
    let env = machine(Journal::Ext4Like);
    env.create_dir(p("/a/b")).unwrap();
    let file = env.create(p("a/b/f")).unwrap();
    file.write_at(5000, b"hello").unwrap();
    assert_eq!(file.len().unwrap(), 5005);
    assert_eq!(file.allocated().unwrap(), 4096);
    let mut found = [9; 6];
    env.open(p("/a/./b/../b/f"), Access::Read).unwrap().read_at(4999, &mut found).unwrap();
    assert_eq!(&found, b"\0hello");
    assert_eq!(file.read_at(5000, &mut found).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    file.punch(4096, 904).unwrap();
    file.set_len(5002).unwrap();
    assert_eq!(env.read_file(p("/a/b/f")).unwrap()[5000..], *b"he");
    assert_eq!(env.list(p("/a")).unwrap(), ["b"]);
    assert_eq!(env.list(p("/a/b")).unwrap(), ["f"]);
}

#[test]
fn names_are_checked_as_the_system_does() {
    let env = machine(Journal::Ext4Like);
    env.create_dir(p("/d")).unwrap();
    drop(env.create(p("/d/f")).unwrap());
    assert_eq!(env.create(p("/d/f")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(env.create(p("/no/f")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(env.open(p("/d"), Access::Read).unwrap_err().kind(), ErrorKind::IsADirectory);
    assert_eq!(env.open(p("/d/g"), Access::Read).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(env.create_dir(p("/d/f/e")).unwrap_err().kind(), ErrorKind::NotADirectory);
    assert_eq!(env.list(p("/e")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(env.canonical(p("/d/../d/")).unwrap(), p("/d"));
    assert_eq!(env.canonical(p("/e")).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(env.open(p("/d/f"), Access::Read).unwrap().write_at(0, b"x").is_err());
}

#[test]
fn a_removed_file_stays_readable_while_it_is_open() {
    let env = machine(Journal::Ext4Like);
    let file = env.create(p("/f")).unwrap();
    file.write_at(0, b"still here").unwrap();
    env.remove(p("/f")).unwrap();
    env.sync_dir(p("/")).unwrap();
    let mut found = [0; 10];
    file.read_at(0, &mut found).unwrap();
    assert_eq!(&found, b"still here");
    assert_eq!(env.used_bytes(p("/")), 4096);
    drop(file);
    assert_eq!(env.used_bytes(p("/")), 0);
}

#[test]
fn a_rename_replaces() {
    let env = machine(Journal::Ext4Like);
    env.create(p("/a")).unwrap().write_at(0, b"a").unwrap();
    env.create(p("/b")).unwrap().write_at(0, b"b").unwrap();
    env.rename(p("/a"), p("/b")).unwrap();
    assert_eq!(paths(&env), [p("/b")]);
    assert_eq!(env.read_file(p("/b")).unwrap(), b"a");
}

#[test]
fn a_file_of_two_names_is_one() {
    let env = machine(Journal::Ext4Like);
    env.create_dir(p("/backup")).unwrap();
    let file = env.create(p("/f")).unwrap();
    file.write_at(0, &[1; 8192]).unwrap();
    assert_eq!(file.links().unwrap(), 1);
    env.link(p("/f"), p("/backup/f")).unwrap();
    assert_eq!(env.link(p("/f"), p("/backup/f")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(file.links().unwrap(), 2);
    file.punch(0, 4096).unwrap();
    assert_eq!(env.read_file(p("/backup/f")).unwrap()[..4096], [0; 4096]);
    assert_eq!(file.next_data(0).unwrap(), Some(4096..8192));
    assert_eq!(env.used_bytes(p("/")), 4096);
    env.remove(p("/f")).unwrap();
    assert_eq!(file.links().unwrap(), 1);
}

#[test]
fn a_lock_excludes() {
    let env = machine(Journal::Ext4Like);
    assert_eq!(env.lock(p("/LOCK"), LockKind::Shared).unwrap_err().kind(), ErrorKind::NotFound);
    drop(env.create(p("/LOCK")).unwrap());
    let held = env.lock(p("/LOCK"), LockKind::Exclusive).unwrap();
    assert_eq!(env.lock(p("/LOCK"), LockKind::Shared).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(held);
    let first = env.lock(p("/LOCK"), LockKind::Shared).unwrap();
    let second = env.lock(p("/LOCK"), LockKind::Shared).unwrap();
    drop(first);
    assert_eq!(env.lock(p("/LOCK"), LockKind::Exclusive).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(second);
    drop(env.lock(p("/LOCK"), LockKind::Exclusive).unwrap());
}

#[test]
fn a_full_device_stores_what_fits() {
    let env = machine(Journal::Ext4Like);
    env.create_dir(p("/small")).unwrap();
    env.add_device(p("/small"), DeviceModel::instant(), 8192);
    let file = env.create(p("/small/f")).unwrap();
    file.write_at(0, &[1; 4096]).unwrap();
    assert_eq!(file.write_at(4096, &[2; 8192]).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 8192);
    assert_eq!(env.space(p("/small")).unwrap().free, 0);
    env.create(p("/elsewhere")).unwrap().write_at(0, &[3; 8192]).unwrap();
    file.punch(0, 4096).unwrap();
    file.write_at(8192, &[4; 100]).unwrap();
    assert_eq!(file.write_at(0, &[5; 1]).unwrap_err().kind(), ErrorKind::StorageFull);
    env.set_space(p("/small"), 12 << 10);
    file.write_at(0, &[5; 1]).unwrap();
}

#[test]
fn stored_bytes_can_be_damaged() {
    let env = machine(Journal::None);
    let file = named(&env, "/f");
    file.write_at(0, b"intact").unwrap();
    file.sync().unwrap();
    env.overwrite(p("/f"), 1, b"X").unwrap();
    env.truncate(p("/f"), 4).unwrap();
    assert_eq!(env.read_file(p("/f")).unwrap(), b"iXta");
    assert_eq!(env.crash(super::super::Survival::Nothing).read_file(p("/f")).unwrap(), b"iXta");
}

#[test]
fn without_a_schedule_threads_are_real_and_time_is_virtual() {
    let env = machine(Journal::Ext4Like);
    let other = Arc::clone(&env);
    let body = Box::new(move || drop(other.create(p("/from-thread")).unwrap()));
    env.spawn("writer", Priority::Normal, body).unwrap().join();
    assert_eq!(paths(&env), [p("/from-thread")]);
    let before = (env.now(), env.unix_millis());
    env.sleep(Duration::from_secs(3600));
    assert_eq!(env.now() - before.0, Duration::from_secs(3600));
    env.jump_clock(-7_200_000);
    assert_eq!(env.unix_millis(), before.1 - 3_600_000);
}

#[test]
fn work_takes_the_time_of_its_device() {
    let env = SimEnv::new(SimConfig { device: DeviceModel::hdd(), ..SimConfig::default() });
    let file = env.create(p("/f")).unwrap();
    file.write_at(0, &vec![1; 15_000_000]).unwrap();
    let timed = |work: &dyn Fn()| {
        let before = env.now();
        work();
        env.now() - before
    };
    // Each of the 29 requests ends at a whole nanosecond.
    let grown = timed(&|| file.sync().unwrap());
    assert!(grown.abs_diff(Duration::from_millis(8 + 8 + 100)) < Duration::from_nanos(30));
    assert_eq!(timed(&|| file.sync().unwrap()), Duration::ZERO, "nothing waits");
    file.write_at(0, &[2]).unwrap();
    let written_over = timed(&|| file.sync().unwrap());
    assert!(written_over.abs_diff(Duration::from_millis(8)) < Duration::from_nanos(30));
    env.rename(p("/f"), p("/g")).unwrap();
    assert_eq!(timed(&|| env.sync_dir(p("/")).unwrap()), Duration::from_millis(8 + 8));
    assert_eq!(timed(&|| env.sync_dir(p("/")).unwrap()), Duration::ZERO);
}

#[test]
fn a_removed_file_is_never_written_back() {
    let device =
        DeviceModel { dirty_bytes_max: 10_000, write_bandwidth: 1_000_000, ..DeviceModel::instant() };
    let env = SimEnv::new(SimConfig { device, ..SimConfig::default() });
    for _ in 0..3 {
        env.create(p("/f")).unwrap().write_at(0, &[1; 9000]).unwrap();
        env.remove(p("/f")).unwrap();
    }
    assert_eq!(env.now(), Duration::ZERO);
    let file = env.create(p("/f")).unwrap();
    file.write_at(0, &[1; 13_000]).unwrap();
    assert_eq!(env.now(), Duration::from_millis(3));
}
