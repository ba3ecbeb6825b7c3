//! Tests of the POSIX environment, as far as a test can observe it. `terrace-uring` runs them over its own, too.

use super::*;
use std::os::unix::fs::PermissionsExt;

fn setup() -> (tempfile::TempDir, Arc<dyn Env>) {
    (tempfile::tempdir().unwrap(), subject())
}

#[test]
fn written_bytes_are_read_back() {
    let (dir, env) = setup();
    let file = env.create(&dir.path().join("f")).unwrap();
    file.write_at(5, b"hello").unwrap();
    assert_eq!(file.len().unwrap(), 10);
    let mut found = [1; 10];
    file.read_at(0, &mut found).unwrap();
    assert_eq!(&found, b"\0\0\0\0\0hello");
    file.sync().unwrap();
    env.sync_dir(dir.path()).unwrap();
    file.set_len(7).unwrap();
    let reopened = env.open(&dir.path().join("f"), Access::Read).unwrap();
    assert_eq!(reopened.len().unwrap(), 7);
    assert!(reopened.write_at(0, b"x").is_err());
}

#[test]
fn reading_beyond_the_end_is_an_unexpected_eof() {
    let (dir, env) = setup();
    let file = env.create(&dir.path().join("f")).unwrap();
    file.write_at(0, b"abc").unwrap();
    assert_eq!(file.read_at(1, &mut [0; 3]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_new_file_is_exclusive_and_private() {
    let (dir, env) = setup();
    let path = dir.path().join("f");
    let _file = env.create(&path).unwrap();
    assert_eq!(env.create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn symbolic_links_are_not_followed() {
    let (dir, env) = setup();
    let target = dir.path().join("target");
    drop(env.create(&target).unwrap());
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert!(env.open(&link, Access::Read).is_err());
    assert!(env.lock(&link, LockKind::Shared).is_err());
    let other = dir.path().join("missing");
    std::os::unix::fs::symlink(&other, dir.path().join("dangling")).unwrap();
    assert!(env.create(&dir.path().join("dangling")).is_err());
    assert!(!other.exists());
}

#[test]
fn a_punched_range_reads_as_zeros_and_frees_storage() {
    let (dir, env) = setup();
    let file = env.create(&dir.path().join("f")).unwrap();
    file.write_at(0, &[7; 64 << 10]).unwrap();
    file.sync().unwrap();
    let before = file.allocated().unwrap();
    match file.punch(4096, 32 << 10) {
        Err(error) => return assert_eq!(error.kind(), io::ErrorKind::Unsupported),
        Ok(()) => assert!(file.allocated().unwrap() < before),
    }
    assert_eq!(file.len().unwrap(), 64 << 10);
    let mut found = vec![1; 40 << 10];
    file.read_at(0, &mut found).unwrap();
    assert!(found[..4096].iter().all(|byte| *byte == 7));
    assert!(found[4096..36 << 10].iter().all(|byte| *byte == 0));
    assert!(found[36 << 10..].iter().all(|byte| *byte == 7));
    file.punch(0, 0).unwrap();
    match file.next_data(4096) {
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported),
        // A file system that knows no holes calls all of it data.
        Ok(data) => assert!([Some(4096..64 << 10), Some(36 << 10..64 << 10)].contains(&data), "{data:?}"),
    }
    assert_eq!(file.next_data(64 << 10).ok().flatten(), None);
}

#[test]
fn names_of_a_file_are_counted() {
    let (dir, env) = setup();
    let file = env.create(&dir.path().join("f")).unwrap();
    assert_eq!(file.links().unwrap(), 1);
    fs::hard_link(dir.path().join("f"), dir.path().join("g")).unwrap();
    assert_eq!(file.links().unwrap(), 2);
    env.remove(&dir.path().join("f")).unwrap();
    assert_eq!(file.links().unwrap(), 1);
}

#[test]
fn missing_parents_are_created() {
    let (dir, env) = setup();
    let deep = dir.path().join("a/b/c");
    env.create_dir(&deep).unwrap();
    env.create_dir(&deep).unwrap();
    assert_eq!(env.list(dir.path()).unwrap(), ["a"]);
    drop(env.create(&dir.path().join("f")).unwrap());
    assert!(env.create_dir(&dir.path().join("f")).is_err());
}

#[test]
fn two_names_of_one_directory_are_one() {
    let (dir, env) = setup();
    let real = dir.path().join("real");
    env.create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, dir.path().join("alias")).unwrap();
    assert_eq!(
        env.canonical(&dir.path().join("alias")).unwrap(),
        env.canonical(&real.join("../real")).unwrap()
    );
    assert!(env.canonical(&dir.path().join("missing")).is_err());
}

#[test]
fn files_are_renamed_and_removed() {
    let (dir, env) = setup();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let file = env.create(&a).unwrap();
    file.write_at(0, b"kept").unwrap();
    drop(env.create(&b).unwrap());
    env.rename(&a, &b).unwrap();
    assert_eq!(env.list(dir.path()).unwrap(), ["b"]);
    env.remove(&b).unwrap();
    let mut found = [0; 4];
    file.read_at(0, &mut found).unwrap();
    assert_eq!(&found, b"kept");
    assert_eq!(env.remove(&b).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn an_exclusive_lock_excludes_this_process_too() {
    let (dir, env) = setup();
    let path = dir.path().join("LOCK");
    drop(env.create(&path).unwrap());
    let held = env.lock(&path, LockKind::Exclusive).unwrap();
    for kind in [LockKind::Exclusive, LockKind::Shared] {
        assert_eq!(env.lock(&path, kind).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let alias = dir.path().join("../").join(dir.path().file_name().unwrap()).join("LOCK");
        assert_eq!(env.lock(&alias, kind).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
    drop(held);
    drop(env.lock(&path, LockKind::Exclusive).unwrap());
}

#[test]
fn a_refused_lock_leaves_the_held_one_in_force() {
    let (dir, env) = setup();
    let path = dir.path().join("LOCK");
    drop(env.create(&path).unwrap());
    let _held = env.lock(&path, LockKind::Exclusive).unwrap();
    env.lock(&path, LockKind::Exclusive).unwrap_err();
    // Another process is another open file description.
    let other = fs::File::open(&path).unwrap();
    let refused = rustix::fs::flock(&other, rustix::fs::FlockOperation::NonBlockingLockShared);
    assert_eq!(refused, Err(rustix::io::Errno::WOULDBLOCK));
}

#[test]
fn another_process_excludes_this_one() {
    let (dir, env) = setup();
    let path = dir.path().join("LOCK");
    drop(env.create(&path).unwrap());
    let other = fs::File::open(&path).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(env.lock(&path, LockKind::Exclusive).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(other);
    drop(env.lock(&path, LockKind::Exclusive).unwrap());
}

#[test]
fn shared_locks_go_together_and_need_no_write_permission() {
    let (dir, env) = setup();
    let path = dir.path().join("LOCK");
    drop(env.create(&path).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let first = env.lock(&path, LockKind::Shared).unwrap();
    let second = env.lock(&path, LockKind::Shared).unwrap();
    drop(first);
    assert!(env.lock(&path, LockKind::Exclusive).is_err());
    drop(second);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    drop(env.lock(&path, LockKind::Exclusive).unwrap());
    assert_eq!(
        env.lock(&dir.path().join("no"), LockKind::Shared).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
}

#[test]
fn advice_of_any_range_is_taken_and_changes_no_byte() {
    let (dir, env) = setup();
    let file = env.create(&dir.path().join("f")).unwrap();
    let bytes: Vec<u8> = (0..300_000).map(|n| n as u8).collect();
    file.write_at(0, &bytes).unwrap();
    #[expect(clippy::reversed_empty_ranges, reason = "a caller may have one")]
    for range in [0..300_000, 10..11, 5..5, 0..u64::MAX, 400_000..500_000, 9..3] {
        file.read_ahead(range);
    }
    let mut found = vec![0; bytes.len()];
    file.read_at(0, &mut found).unwrap();
    assert_eq!(found, bytes);
}

#[test]
fn a_panicking_thread_can_be_joined() {
    let (_dir, env) = setup();
    for priority in [Priority::Normal, Priority::Background] {
        let thread = env.spawn("falls", priority, Box::new(|| panic!("on purpose"))).unwrap();
        thread.join();
    }
}

#[test]
fn the_machine_is_described() {
    let (dir, env) = setup();
    let space = env.space(dir.path()).unwrap();
    assert!(space.total > 0 && space.free <= space.total);
    assert!(env.cores() >= 1);
    assert_ne!(env.random(), env.random());
    assert!(env.unix_millis() > 1_700_000_000_000);
    let before = env.now();
    env.sleep(Duration::from_millis(2));
    assert!(env.now() - before >= Duration::from_millis(2));
}
