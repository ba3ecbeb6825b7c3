//! What is done with the files of a store that is not open: removal, and repair in place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::Builder;
use engine::env::posix::PosixEnv;
use engine::env::{FileLock, LockKind};
use engine::format::devices::DeviceList;
use engine::format::identity::Identity;
use engine::format::names::FileName;
use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with};

use crate::failure::{Failure, terrace_error_kind as Kind};

/// Whether `dir` holds a store.
pub(super) fn is_store(dir: &Path) -> bool {
    [FileName::Current, FileName::Identity].iter().any(|name| dir.join(name.to_string()).exists())
}

/// Why the existing directory `dir` cannot be written; `None` if it can, or is not there.
pub(super) fn refuses_writes(dir: &Path) -> Option<io::Error> {
    let refused = dir.is_dir().then(|| access(dir, Access::WRITE_OK | Access::EXEC_OK).err()).flatten();
    refused.map(io::Error::from)
}

/// Fails if `dir` holds a database that LevelDB has written, so that it is neither taken for a damaged store nor removed.
pub(super) fn refuse_leveldb(dir: &Path) -> Result<(), Failure> {
    // LevelDB's CURRENT is the name of a manifest and the end of the line. Terrace's has a checksum between them.
    let current = fs::read_to_string(dir.join(FileName::Current.to_string())).unwrap_or_default();
    let name = current.strip_suffix('\n').and_then(FileName::parse);
    if matches!(name, Some(FileName::Manifest(_))) {
        let message = format!(
            "{} holds a database that LevelDB has written. Terrace has another format: copy the records into a new store",
            dir.display()
        );
        return Err(Failure::argument(message));
    }
    Ok(())
}

/// Removes the store in `dir`, with what it has on other devices, and the directory if nothing else is in it. Files that are
/// not of a store stay. Fine if there is none.
pub(super) fn destroy(dir: &Path) -> Result<(), Failure> {
    let names = match names(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(|error| failed("list the directory", dir, &error))?,
    };
    refuse_leveldb(dir)?;
    let lock = locked(dir, LockKind::Exclusive)?;
    for device in devices(dir) {
        if let Ok(names) = self::names(&device) {
            remove(&device, &names)?;
        }
    }
    remove(dir, &names)?;
    drop(lock);
    Ok(())
}

/// Repairs the store in `dir` in place: afterwards it opens, with everything whose checksums are right, on one device. If
/// anything is lost, the old files stay beside it, in a directory whose name ends with ".lost".
pub(super) fn repair(dir: &Path, builder: impl Fn(&Path) -> Builder) -> Result<(), Failure> {
    refuse_leveldb(dir)?;
    // A symbolic link stays what it is.
    let dir = &fs::canonicalize(dir).map_err(|error| failed("find the directory", dir, &error))?;
    let lock = locked(dir, LockKind::Shared)?;
    let (target, lost) = (beside(dir, "repair"), beside(dir, "lost"));
    // An earlier repair may have been cut off.
    destroy(&target)?;
    let report = match builder(dir).repair(&target) {
        Ok(report) => report,
        Err(error) => {
            // Nothing to add to why it failed.
            let _ = destroy(&target);
            return Err(error.into());
        }
    };
    let exchange = |error: rustix::io::Errno| failed("exchange the repaired store with", dir, &error.into());
    renameat_with(CWD, dir, CWD, &target, RenameFlags::EXCHANGE).map_err(exchange)?;
    drop(lock);
    // The old files are in `target` now.
    for name in names(&target).map_err(|error| failed("list the directory", &target, &error))? {
        if parse(&name).is_none() {
            let (from, to) = (target.join(&name), dir.join(&name));
            fs::rename(&from, to).map_err(|error| failed("move", &from, &error))?;
        }
    }
    if report.lost.is_empty() && report.whole_catalog {
        destroy(&target)
    } else {
        fs::rename(&target, &lost).map_err(|error| failed("rename", &target, &error))
    }
}

/// A directory that is not there, or one of an earlier repair, beside `dir`.
fn beside(dir: &Path, what: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(".terrace-");
    name.push(what);
    let first = PathBuf::from(&name);
    if what == "repair" || !first.exists() {
        return first;
    }
    let mut numbered = (2_u64..).map(|number| {
        let mut name = name.clone();
        name.push(format!("-{number}"));
        PathBuf::from(name)
    });
    numbered.find(|path| !path.exists()).unwrap_or(first)
}

/// The lock of the store in `dir`; `None` if it has never had one.
fn locked(dir: &Path, kind: LockKind) -> Result<Option<FileLock>, Failure> {
    let path = dir.join(FileName::Lock.to_string());
    match PosixEnv::shared().lock(&path, kind) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let message = format!("the store in {} is open in another handle or process", dir.display());
            Err(Failure::new(Kind::Busy, message))
        }
        Err(error) => Err(failed("lock", &path, &error)),
    }
}

/// The other directories of the store in `dir`, as far as they are its own.
fn devices(dir: &Path) -> Vec<PathBuf> {
    let identity = |dir: &Path| {
        let bytes = fs::read(dir.join(FileName::Identity.to_string())).ok()?;
        Identity::decode(&bytes).ok()
    };
    let listed = fs::read(dir.join(FileName::Devices.to_string())).ok();
    let listed = listed.and_then(|bytes| DeviceList::decode(&bytes).ok()).map(|list| list.devices);
    let Some(own) = identity(dir) else { return Vec::new() };
    let dirs = listed.unwrap_or_default().into_iter().map(|device| PathBuf::from(device.dir));
    dirs.filter(|dir| identity(dir).is_some_and(|identity| identity.store == own.store)).collect()
}

/// Removes the files of a store among `names`, those last that say whose the directory is, then the directory.
fn remove(dir: &Path, names: &[std::ffi::OsString]) -> Result<(), Failure> {
    let ours = || names.iter().filter_map(|name| Some((dir.join(name), parse(name)?)));
    let is_last = |name: FileName| matches!(name, FileName::Identity | FileName::Lock);
    for (path, _) in ours().filter(|file| !is_last(file.1)).chain(ours().filter(|file| is_last(file.1))) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &path, &error));
            }
            _ => {}
        }
    }
    match fs::remove_dir(dir) {
        // It has other files, or is a mount.
        Err(_) => Ok(()),
        Ok(()) => Ok(()),
    }
}

fn parse(name: &std::ffi::OsStr) -> Option<FileName> {
    FileName::parse(name.to_str()?)
}

fn names(dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
}

fn failed(action: &str, path: &Path, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => Kind::NotFound,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Kind::DiskFull,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Kind::ReadOnly,
        _ => Kind::Io,
    };
    Failure {
        file: Some(path.into()),
        ..Failure::new(kind, format!("cannot {action} ({}): {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Db;

    fn builder(dir: &Path) -> Builder {
        Db::builder(dir)
    }

    #[test]
    fn destroying_leaves_only_what_is_not_of_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let (home, second) = (dir.path().join("home"), dir.path().join("second"));
        let db = Db::builder(&home).device(&second).open().unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        assert_eq!(destroy(&home).unwrap_err().kind, Kind::Busy);
        assert_eq!(db.get("key").unwrap().unwrap(), "value");
        db.close().unwrap();
        fs::write(home.join("notes.txt"), "mine").unwrap();
        destroy(&home).unwrap();
        assert_eq!(names(&home).unwrap(), ["notes.txt"]);
        assert!(!second.exists());
        fs::remove_file(home.join("notes.txt")).unwrap();
        destroy(&home).unwrap();
        assert!(!home.exists());
        destroy(&home).unwrap();
    }

    #[test]
    fn a_database_of_leveldb_is_neither_opened_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("CURRENT"), "MANIFEST-000004\n").unwrap();
        assert!(refuse_leveldb(dir.path()).unwrap_err().message.contains("LevelDB"));
        assert_eq!(destroy(dir.path()).unwrap_err().kind, Kind::InvalidInput);
        assert_eq!(repair(dir.path(), builder).unwrap_err().kind, Kind::InvalidInput);
        assert_eq!(names(dir.path()).unwrap(), ["CURRENT"]);
    }

    #[test]
    fn a_repair_is_in_place_and_keeps_other_files() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("store");
        let db = Db::open(&dir).unwrap();
        db.put("key", "value").unwrap();
        assert_eq!(repair(&dir, builder).unwrap_err().kind, Kind::Busy);
        db.close().unwrap();
        fs::write(dir.join("notes.txt"), "mine").unwrap();
        repair(&dir, builder).unwrap();
        assert_eq!(names(parent.path()).unwrap(), ["store"], "nothing was lost");
        assert_eq!(fs::read(dir.join("notes.txt")).unwrap(), b"mine");
        assert_eq!(Db::open(&dir).unwrap().get("key").unwrap().unwrap(), "value");

        fs::remove_file(dir.join("CURRENT")).unwrap();
        repair(&dir, builder).unwrap();
        assert_eq!(Db::open(&dir).unwrap().get("key").unwrap().unwrap(), "value");
        assert!(parent.path().join("store.terrace-lost").join("IDENTITY").exists(), "the old files are kept");
        assert!(repair(&parent.path().join("none"), builder).is_err());
    }
}
