//! Tests of opening a store: one writer or many readers, whatever the names; files of others stay; leftovers of the
//! store are removed.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]
#![expect(clippy::disallowed_methods, reason = "the tests prepare directories by hand")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common::{scheduled, tiny};
use terrace::env::Env;
use terrace::env::simulated::{
    FaultError, FaultRule, FaultTarget, Journal, Operation, SimConfig, SimEnv, Survival,
};
use terrace::{Db, Error, ErrorKind};

/// Set in a child: the directory to open, and how.
const CHILD_DIR: &str = "TERRACE_OPENING_CHILD_DIR";
const CHILD_READS: &str = "TERRACE_OPENING_CHILD_READS";

fn open(dir: impl AsRef<Path>) -> Result<Db, Error> {
    Db::builder(dir).options(tiny()).open()
}

fn read(dir: impl AsRef<Path>) -> Result<Db, Error> {
    Db::builder(dir).options(tiny()).read_only().open()
}

fn refusal(opened: Result<Db, Error>) -> ErrorKind {
    opened.map(|_| ()).unwrap_err().kind()
}

/// The body of a child process: one opening, reported on stdout. In an ordinary run of the tests it does nothing.
#[test]
fn child() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let opened = if std::env::var(CHILD_READS).is_ok() { read(dir) } else { open(dir) };
    println!("\nopened: {:?}", opened.map(|_| ()).map_err(|error| error.kind()));
}

fn open_in_child(dir: &Path, reads: bool) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["opening::child", "--exact", "--nocapture"]).env(CHILD_DIR, dir);
    if reads {
        command.env(CHILD_READS, "1");
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("opened: "));
    line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))).to_owned()
}

#[test]
fn a_store_has_one_writer_by_whatever_name() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let db = open(&store).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&store, &link).unwrap();
    // A relative name from wherever the test runs.
    let here = std::env::current_dir().unwrap();
    let up: PathBuf = here.ancestors().skip(1).map(|_| "..").collect();
    let relative = up.join(store.strip_prefix("/").unwrap());
    let dotted = store.join("../store/.");
    for name in [&store, &link, &relative, &dotted] {
        assert_eq!(refusal(open(name)), ErrorKind::Busy, "{}", name.display());
    }
    // A refused opening does not loosen the lock.
    assert_eq!(open_in_child(&store, false), "Err(Busy)");
    assert_eq!(open_in_child(&link, true), "Ok(())");
    db.put("still", "ours").unwrap();
    drop(db);
    assert_eq!(open_in_child(&store, false), "Ok(())");
    assert_eq!(open(&link).unwrap().get("still").unwrap().unwrap(), "ours");
}

#[test]
fn readers_keep_nobody_out_and_hold_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).unwrap().put("key", "value").unwrap();
    let one = read(dir.path()).unwrap();
    assert_eq!(open_in_child(dir.path(), true), "Ok(())");
    assert_eq!(open_in_child(dir.path(), false), "Ok(())");
    let writer = open(dir.path()).unwrap();
    let two = read(dir.path()).unwrap();
    drop((one, two));
    // Readers that go take nothing of the writer's lock along.
    assert_eq!(open_in_child(dir.path(), false), "Err(Busy)");
    writer.put("still", "ours").unwrap();
}

#[test]
fn iterators_and_snapshots_keep_the_store_open() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).unwrap();
    db.put("key", "value").unwrap();
    let (mut iter, snapshot) = (db.iter().unwrap(), db.snapshot());
    db.close().unwrap();
    assert_eq!(refusal(open(dir.path())), ErrorKind::Busy);
    assert_eq!(iter.next().unwrap().unwrap().1, "value");
    drop(snapshot);
    assert_eq!(refusal(open(dir.path())), ErrorKind::Busy);
    drop(iter);
    open(dir.path()).unwrap();
}

/// Everything in a directory that is no file of the store, with contents.
fn foreign(dir: &Path, names: &[&OsStr]) -> BTreeMap<PathBuf, Vec<u8>> {
    names
        .iter()
        .map(|name| {
            let path = dir.join(name);
            let file = if path.is_dir() { path.join("inside") } else { path.clone() };
            (path, fs::read(file).unwrap())
        })
        .collect()
}

#[test]
fn rubbish_is_left_alone() {
    let files = "notes.txt|12.pack|0000012.pack|000012.PACK|000012.pack.bak|000012.wal~|wal|.000003.wal|MANIFEST|\
                 MANIFEST-1|MANIFEST-000001.old|CURRENT.bak|current|IDENTITY.old|LOCK.new|000001.sst|000003.log|\
                 99999999999999999999.pack";
    let mut names: Vec<&OsStr> = files.split('|').map(OsStr::new).collect();
    let odd = OsStr::from_bytes(b"000004.pack\xff");
    names.extend([odd, OsStr::from_bytes(b"\xfe\xfd"), OsStr::new("directory"), OsStr::new("000009.packs")]);
    let dir = tempfile::tempdir().unwrap();
    for name in &names {
        let path = dir.path().join(name);
        if name.as_bytes().starts_with(b"directory") || name.as_bytes().ends_with(b"packs") {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("inside"), "deep").unwrap();
        } else {
            fs::write(&path, name.as_bytes()).unwrap();
        }
    }
    let before = foreign(dir.path(), &names);
    for round in 0..3 {
        let db = open(dir.path()).unwrap();
        for n in 0..400 {
            db.put(format!("{n}"), vec![round; 100]).unwrap();
        }
        db.compact().unwrap();
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
        assert_eq!(before, foreign(dir.path(), &names));
    }
    assert_eq!(read(dir.path()).unwrap().iter().unwrap().count(), 400);
}

#[test]
fn a_store_that_has_lost_its_head_is_not_created_anew() {
    for lost in ["IDENTITY", "CURRENT"] {
        for flushed in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let db = open(dir.path()).unwrap();
            db.put("key", "value").unwrap();
            if flushed {
                db.flush().unwrap();
            }
            db.close().unwrap();
            let path = dir.path().join(lost);
            let kept = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            let must_exist = || Db::builder(dir.path()).must_exist().open();
            for opened in [open(dir.path()), read(dir.path()), must_exist()] {
                let error = opened.map(|_| ()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption, "{lost} {flushed}: {error}");
                assert!(error.file().unwrap().ends_with(lost), "{error}");
            }
            fs::write(&path, kept).unwrap();
            assert_eq!(open(dir.path()).unwrap().get("key").unwrap().unwrap(), "value");
        }
    }
}

#[test]
fn a_path_that_is_no_directory_is_refused_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "text").unwrap();
    for path in [file.clone(), file.join("below")] {
        for opened in [open(&path), read(&path), Db::builder(&path).must_exist().open()] {
            let error = opened.map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            assert!(error.file().is_some_and(|named| path.starts_with(named)), "{error}");
        }
    }
    assert_eq!(fs::read(&file).unwrap(), b"text");
    let absent = dir.path().join("absent");
    assert_eq!(refusal(read(&absent)), ErrorKind::NotFound);
    assert_eq!(refusal(Db::builder(&absent).must_exist().open()), ErrorKind::NotFound);
    assert!(!absent.exists());
}

#[test]
fn a_file_of_ours_behind_a_symbolic_link_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).unwrap().put("key", "value").unwrap();
    for name in ["CURRENT", "IDENTITY", "LOCK"] {
        let (path, aside) = (dir.path().join(name), dir.path().join("aside"));
        fs::rename(&path, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &path).unwrap();
        assert_eq!(refusal(open(dir.path())), ErrorKind::Io, "{name}");
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
    open(dir.path()).unwrap();
}

fn machine(seed: u64) -> Arc<SimEnv> {
    SimEnv::new(SimConfig { seed, ..SimConfig::default() })
}

fn open_on(env: &Arc<SimEnv>) -> Result<Db, Error> {
    Db::builder("/db").env(env.clone()).options(tiny()).open()
}

fn fill(db: &Db) {
    for n in 0..600 {
        db.put(format!("{:03}", n % 300), vec![n as u8; 60]).unwrap();
    }
    db.flush().unwrap();
    db.put("last", "in the log").unwrap();
    db.wait_idle().unwrap();
}

/// A refusal of the operating system, once.
fn refuse(operation: Operation, suffix: &str, skipped: u64) -> FaultRule {
    let target = FaultTarget::Matching { operation, path_suffix: suffix.into(), skipped };
    FaultRule { target, error: FaultError::Io, sticky: false, partial: false }
}

#[test]
fn a_directory_that_refuses_files_is_an_error_and_can_be_opened_later() {
    for (operation, suffix, skipped) in [
        (Operation::CreateDir, "/db", 0),
        (Operation::Canonical, "/db", 0),
        (Operation::List, "/db", 0),
        (Operation::Create, "LOCK", 0),
        (Operation::Lock, "LOCK", 0),
        (Operation::Create, "IDENTITY.new", 0),
        (Operation::Rename, "IDENTITY", 0),
        (Operation::Create, "MANIFEST-000001", 0),
        (Operation::Create, "CURRENT.new", 0),
        (Operation::Rename, "CURRENT", 0),
        (Operation::Create, ".wal", 0),
        (Operation::SyncDir, "/db", 0),
        (Operation::SyncDir, "/db", 2),
        // Of the background threads.
        (Operation::Spawn, "", 0),
        (Operation::Spawn, "", 2),
    ] {
        let env = machine(1);
        env.fault(refuse(operation, suffix, skipped));
        assert_eq!(refusal(open_on(&env)), ErrorKind::Io, "{operation:?} {suffix} {skipped}");
        assert_eq!(env.faults_fired(), 1);
        // Neither the lock nor anything half made is in the way.
        let db = open_on(&env).unwrap_or_else(|error| panic!("{operation:?} {suffix}: {error}"));
        db.put("key", "value").unwrap();
        db.close().unwrap();
        assert_eq!(open_on(&env).unwrap().get("key").unwrap().unwrap(), "value");
    }
}

#[test]
fn a_creation_that_is_cut_off_goes_on() {
    let whole = machine(0);
    drop(open_on(&whole).unwrap());
    let steps = whole.mutations();
    assert!(steps > 15, "{steps}");
    for journal in [Journal::Ext4Like, Journal::None] {
        for step in 0..steps {
            let env = SimEnv::new(SimConfig { journal, ..SimConfig::default() });
            env.cut_after(step);
            // What is done after the last barrier may go unnoticed.
            if let Ok(db) = open_on(&env) {
                drop(db);
            }
            let survivals = (0..8).map(Survival::Random).chain([Survival::Nothing, Survival::Everything]);
            for survival in survivals {
                let env = env.crash(survival);
                let context = format!("{journal:?}, cut at step {step}, {survival:?}");
                if let Err(error) = Db::builder("/db").env(env.clone()).read_only().open() {
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{context}: {error}");
                }
                let db = open_on(&env).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(db.iter().unwrap().count(), 0, "{context}");
                db.put("key", "value").unwrap();
                db.sync().unwrap();
                db.close().unwrap();
                let db = open_on(&env.crash(Survival::Nothing)).unwrap();
                assert_eq!(db.get("key").unwrap().unwrap(), "value", "{context}");
            }
        }
    }
}

/// Copies files of a store, by name, from one directory into another, over those that are there.
fn copy_in(env: &SimEnv, from: &str, to: &str, names: &[&str]) {
    for name in names {
        let (bytes, to) = (env.read_file(&Path::new(from).join(name)).unwrap(), Path::new(to).join(name));
        let _ = env.remove(&to);
        env.create(&to).unwrap().write_at(0, &bytes).unwrap();
    }
}

/// The catalog of a copy is that of its store: only the store's id tells their manifests apart.
#[test]
fn a_manifest_of_another_store_is_refused_by_its_name() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open_on(&env).unwrap();
        fill(&db);
        db.checkpoint("/copy").unwrap();
        db.close().unwrap();
        let read = || Db::builder("/db").env(env.clone()).options(tiny()).read_only().open();
        let mut reader = read().unwrap();
        let is_told = |error: &Error, manifest: &str| {
            let both = [manifest, "/db/IDENTITY"].iter().all(|file| error.to_string().contains(file));
            assert!(error.kind() == ErrorKind::Corruption && both, "{error}");
            assert_eq!((error.file(), error.offset()), (Some(Path::new(manifest)), Some(0)));
        };
        let contents = || env.files().into_iter().map(|(path, _)| (env.read_file(&path).unwrap(), path));
        let in_force = || String::from_utf8(env.read_file(Path::new("/db/CURRENT")).unwrap()).unwrap();
        let own = format!("/db/{}", in_force().split(' ').next().unwrap());
        assert_ne!(own, "/db/MANIFEST-000001");
        for (names, manifest) in
            [(&["CURRENT", "MANIFEST-000001"][..], "/db/MANIFEST-000001"), (&["IDENTITY"][..], &*own)]
        {
            env.create_dir(Path::new("/aside")).unwrap();
            copy_in(&env, "/db", "/aside", &["CURRENT", "IDENTITY"]);
            copy_in(&env, "/copy", "/db", names);
            let before: Vec<_> = contents().collect();
            is_told(&open_on(&env).map(drop).unwrap_err(), manifest);
            is_told(&read().map(drop).unwrap_err(), manifest);
            is_told(&reader.refresh().unwrap_err(), manifest);
            let report = reader.verify().unwrap();
            assert_eq!(report.problems.len(), 1, "{report:?}");
            is_told(&report.problems[0], manifest);
            let after = contents().filter(|(_, path)| !path.ends_with("LOCK"));
            assert!(after.eq(before.into_iter().filter(|(_, path)| !path.ends_with("LOCK"))));
            copy_in(&env, "/aside", "/db", &["CURRENT", "IDENTITY"]);
        }
        reader.refresh().unwrap();
        assert_eq!(reader.get("last").unwrap().unwrap(), "in the log");
        drop(reader);
        let db = open_on(&env).unwrap();
        assert_eq!(db.iter().unwrap().count(), 301);
        db.close().unwrap();
        // And so is the copy's own.
        let copy = Db::builder("/copy").env(env.clone()).options(tiny()).open().unwrap();
        assert_eq!(copy.iter().unwrap().count(), 301);
    });
}

#[test]
fn leftovers_are_removed_by_writers_and_left_by_readers() {
    let env = machine(0);
    let db = open_on(&env).unwrap();
    fill(&db);
    db.close().unwrap();
    let names = |env: &SimEnv| -> Vec<String> {
        let files = env.files().into_iter();
        files.map(|(path, _)| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let own = names(&env);
    let leftovers =
        ["CURRENT.new", "IDENTITY.new", "900000.pack", "000000.wal", "MANIFEST-000001", "MANIFEST-000900"];
    for name in leftovers {
        assert!(!own.contains(&name.to_owned()), "{name}");
        env.create(&Path::new("/db").join(name)).unwrap().write_at(0, b"left over").unwrap();
    }
    let strange = ["900000.pack.old", "notes"];
    for name in strange {
        env.create(&Path::new("/db").join(name)).unwrap();
    }
    let all = names(&env);
    let reader = Db::builder("/db").env(env.clone()).read_only().open().unwrap();
    assert_eq!(reader.iter().unwrap().count(), 301);
    assert!(reader.verify().unwrap().problems.is_empty());
    drop(reader);
    assert_eq!(names(&env), all, "a reader changes nothing");

    let db = open_on(&env).unwrap();
    assert_eq!(db.iter().unwrap().count(), 301);
    let left = names(&env);
    assert!(leftovers.iter().all(|name| !left.contains(&(*name).to_owned())), "{left:?}");
    assert!(strange.iter().all(|name| left.contains(&(*name).to_owned())), "{left:?}");
    // Numbers that a leftover had are not used again.
    for n in 0..300 {
        db.put(format!("{n:03}"), vec![1; 60]).unwrap();
    }
    db.compact().unwrap();
    let packs: Vec<String> = names(&env).into_iter().filter(|name| name.ends_with(".pack")).collect();
    assert!(packs.iter().any(|name| name.as_str() > "900000.pack"), "{packs:?}");
    assert!(
        names(&env).iter().any(|name| name.starts_with("MANIFEST-") && name.as_str() > "MANIFEST-000900")
    );
}

#[test]
fn a_pack_without_a_table_in_use_is_gone_after_opening() {
    scheduled(|env| {
        let db = open_on(&env).unwrap();
        fill(&db);
        // Old packs that can be neither kept as recycled files nor removed now are removed later.
        env.fault(FaultRule { sticky: true, ..refuse(Operation::Rename, ".recycled", 0) });
        env.fault(FaultRule { sticky: true, ..refuse(Operation::Remove, ".pack", 0) });
        db.compact().unwrap();
        // Closing does not wait for what is being reclaimed.
        db.wait_idle().unwrap();
        db.close().unwrap();
        assert!(env.faults_fired() > 0);
        env.clear_faults();
        let packs = |env: &SimEnv| {
            env.files().iter().filter(|(path, _)| path.to_string_lossy().contains("pack")).count()
        };
        let before = packs(&env);
        let db = open_on(&env).unwrap();
        assert!(packs(&env) < before, "{before} packs before and after");
        // What is preallocated is there, too.
        db.wait_idle().unwrap();
        let space = db.stats().space;
        assert_eq!(packs(&env) as u64, space.pack_files + space.preallocated_files);
        assert_eq!(db.iter().unwrap().count(), 301);
    });
}
