//! Tests of the environment: those of the POSIX one, run over this one, and what is different here.
#![expect(clippy::disallowed_methods, reason = "tests of what the rest of the store uses instead")]

use super::*;
use std::io;
use terrace::env::posix::PosixEnv;
use terrace::env::sync::Mutex;
use terrace::{Db, Durability, Options};

use crate::scripted::{Outcome, Script, maker};

#[path = "../../../../src/env/posix/tests.rs"]
mod posix;

/// What the tests of the POSIX environment look at: every file is written past the page cache if it can be.
fn subject() -> Arc<dyn Env> {
    or_inner(direct(|_| true), PosixEnv::shared(), |refused| println!("tested without io_uring: {refused}"))
}

fn direct(chosen: fn(&Path) -> bool) -> io::Result<Arc<UringEnv>> {
    UringEnv::with(PosixEnv::shared(), Box::new(|| Ok(Box::new(Ring::new()?))), chosen)
}

#[test]
fn packs_alone_are_written_past_the_page_cache() {
    let Ok(env) = UringEnv::new(PosixEnv::shared()) else { return };
    let dir = tempfile::tempdir().unwrap();
    if open_direct_in(dir.path()).is_none() {
        return println!("not tested, for {} has no direct I/O", dir.path().display());
    }
    for name in ["000001.wal", "MANIFEST-000001", "000001.recycled", "pack"] {
        let file = env.create(&dir.path().join(name)).unwrap();
        file.write_at(0, &[1; 2 << 20]).unwrap();
        file.sync().unwrap();
    }
    assert_eq!(env.written(), Written { direct_bytes: 0, buffered_bytes: 0 });
    let path = dir.path().join("000001.pack");
    let file = env.create(&path).unwrap();
    file.write_at(0, &[2; (2 << 20) + 100]).unwrap();
    file.sync().unwrap();
    assert_eq!(env.written().direct_bytes, 2 << 20);
    assert_eq!(fs::read(&path).unwrap(), [2; (2 << 20) + 100]);
    // A recycled file is opened, and written over.
    let again = env.open(&path, Access::ReadWrite).unwrap();
    again.write_at(0, &[3; 1 << 20]).unwrap();
    again.set_len(1 << 20).unwrap();
    again.sync().unwrap();
    assert_eq!(env.written().direct_bytes, 3 << 20);
    assert_eq!(fs::read(&path).unwrap(), [3; 1 << 20]);
}

fn open_direct_in(dir: &Path) -> Option<Direct> {
    fs::write(dir.join("probe"), b"").unwrap();
    open_direct(&dir.join("probe"))
}

#[test]
fn a_copy_has_what_is_on_its_way() {
    let Ok(env) = direct(|_| true) else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = env.create(&dir.path().join("from")).unwrap();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 3) as u8).collect();
    file.write_at(0, &bytes).unwrap();
    env.copy(&*file, &dir.path().join("to"), std::slice::from_ref(&(0..bytes.len() as u64))).unwrap();
    assert!(fs::read(dir.path().join("to")).unwrap() == bytes);
}

#[test]
fn a_kernel_that_refuses_leaves_the_environment_below_and_says_so_once() {
    for code in [libc::ENOSYS, libc::EPERM, libc::ENOMEM] {
        let refuses: Maker = Box::new(move || Err(io::Error::from_raw_os_error(code)));
        let mut told = Vec::new();
        let made = UringEnv::with(PosixEnv::shared(), refuses, is_pack);
        let env = or_inner(made, PosixEnv::shared(), |refused| told.push(refused.raw_os_error()));
        assert_eq!(told, [Some(code)]);
        assert!(Arc::ptr_eq(&env, &PosixEnv::shared()));
    }
}

#[test]
fn when_there_are_no_more_rings_files_go_through_the_page_cache() {
    let script = Arc::new(Mutex::new(Script::default()));
    let (make, first) = (maker(&script), Mutex::new(true));
    let once: Maker = Box::new(move || {
        if std::mem::take(&mut *first.lock()) {
            make()
        } else {
            Err(io::Error::from_raw_os_error(libc::ENOMEM))
        }
    });
    let env = UringEnv::with(PosixEnv::shared(), once, |_| true).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let files = ["a", "b"].map(|name| env.create(&dir.path().join(name)).unwrap());
    for (file, byte) in files.iter().zip([1, 2]) {
        file.write_at(0, &[byte; 1 << 20]).unwrap();
    }
    files.iter().for_each(|file| file.sync().unwrap());
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), [1; 1 << 20]);
    assert_eq!(fs::read(dir.path().join("b")).unwrap(), [2; 1 << 20]);
}

fn value(n: u32) -> Vec<u8> {
    n.to_le_bytes().repeat(300)
}

/// Puts of a run, each 500th of them synced.
const PUTS: u32 = 8000;

/// Writes to the store until it refuses, and returns how many puts must be there from then on.
fn write_until_refused(dir: &Path, env: Arc<dyn Env>) -> u32 {
    let options = Options { memtable_bytes: 1 << 20, ..Options::default() };
    let db = Db::builder(dir).env(env).options(options).open().unwrap();
    let mut acknowledged = PUTS;
    for n in 0..PUTS {
        let durability = if n % 500 == 0 { Durability::Synced } else { Durability::Buffered };
        if db.put_with(format!("{n:05}"), value(n), durability).is_err() {
            acknowledged = n;
            break;
        }
    }
    // What can be done again, such as a compaction, is.
    if acknowledged == PUTS && db.flush().is_ok() {
        let _ = db.wait_idle();
        return PUTS;
    }
    acknowledged.checked_sub(1).map_or(0, |last| last / 500 * 500 + 1)
}

#[test]
fn a_store_whose_pack_cannot_be_written_loses_nothing_that_was_durable() {
    for at in [0, 1, 7, 15] {
        let writes = std::iter::repeat_n(Outcome::Whole, at).chain([Outcome::Fails(libc::EIO)]);
        let script = Arc::new(Mutex::new(Script { writes: writes.collect(), ..Script::default() }));
        let env = UringEnv::with(PosixEnv::shared(), maker(&script), is_pack).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let durable = write_until_refused(dir.path(), env);
        assert!(script.lock().writes.is_empty(), "the failure has come");
        let db = Db::open(dir.path()).unwrap();
        for n in 0..durable {
            assert!(
                db.get(format!("{n:05}")).unwrap().is_some_and(|found| *found == value(n)[..]),
                "{n} of {durable}"
            );
        }
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
    }
}
