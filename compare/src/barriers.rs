//! Barriers that a process asks of its file system, counted by the kernel.
//!
//! A tracepoint of the file system, counted for this process and all threads that it starts: it sees `fsync`, `fdatasync`,
//! `msync` and writes that sync by themselves, by whatever library or none they come, and costs nothing but where a
//! barrier happens. On file systems without one, the system calls are counted instead, which sees no writes that sync by
//! themselves and makes every system call a little dearer. `sync_file_range` makes nothing durable and is no barrier.

use std::path::Path;

use anyhow::{Context, Result, bail};
use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};

/// Where the kernel lists its tracepoints.
const EVENTS: &[&str] = &["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];

/// File systems by what `statfs` calls them, and the tracepoint of their barriers.
const FILE_SYSTEMS: &[(i64, &str)] = &[
    (0xEF53, "ext4/ext4_sync_file_enter"),
    (0x5846_5342, "xfs/xfs_file_fsync"),
    (0x9123_683E, "btrfs/btrfs_sync_file"),
    (0xF2F5_2010, "f2fs/f2fs_sync_file_enter"),
];

/// The system calls, for other file systems.
const CALLS: &[&str] =
    &["syscalls/sys_enter_fsync", "syscalls/sys_enter_fdatasync", "syscalls/sys_enter_msync"];

/// Counts the barriers of this process.
pub struct Barriers {
    counters: Vec<Counter>,
}

impl Barriers {
    /// Begins to count, for stores in `directory`; must be called before the threads that are to be counted start.
    ///
    /// # Errors
    /// The kernel has no such tracepoints, or this process may not use them, for which it must be root or have
    /// `CAP_PERFMON`.
    pub fn start(directory: &Path) -> Result<Self> {
        let magic = rustix::fs::statfs(directory)?.f_type;
        let known = FILE_SYSTEMS.iter().find(|&&(its_magic, _)| its_magic == magic);
        let names = known.map_or(CALLS, |(_, name)| std::slice::from_ref(name));
        let counters = names.iter().map(|name| counter(name)).collect::<Result<_>>()?;
        Ok(Self { counters })
    }

    /// Barriers since the start.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn count(&mut self) -> Result<u64> {
        let mut sum = 0;
        for counter in &mut self.counters {
            sum += counter.read()?;
        }
        Ok(sum)
    }
}

fn counter(name: &str) -> Result<Counter> {
    let Some(id) =
        EVENTS.iter().find_map(|events| std::fs::read_to_string(format!("{events}/{name}/id")).ok())
    else {
        bail!("the tracepoint {name} cannot be read below {}", EVENTS.join(" or "))
    };
    let mut builder = Builder::new(Tracepoint::with_id(id.trim().parse()?));
    builder.observe_self().any_cpu().include_kernel().inherit(true).enabled(true);
    builder.build().with_context(|| format!("cannot count {name}"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;
    use crate::store::{Durability, Opening};

    /// The counter, or a loud word that there is none.
    fn start(directory: &Path) -> Option<Barriers> {
        Barriers::start(directory).inspect_err(|error| eprintln!("SKIPPED: {error:#}")).ok()
    }

    #[test]
    fn barriers_of_threads_started_later_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let Some(mut barriers) = start(directory.path()) else { return };
        let mut file = File::create(directory.path().join("file")).unwrap();
        file.write_all(b"x").unwrap();
        file.sync_all().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| file.sync_data().unwrap());
        });
        File::open(directory.path()).unwrap().sync_all().unwrap();
        assert_eq!(barriers.count().unwrap(), 3);
    }

    /// Terrace goes past the C library, and counts what it does.
    #[test]
    fn the_kernel_counts_what_terrace_counts() {
        let directory = tempfile::tempdir().unwrap();
        let Some(mut barriers) = start(directory.path()) else { return };
        let opening =
            Opening { cache_bytes: 8 << 20, memtable_bytes: 1 << 20, durability: Durability::Power };
        let options = crate::store::terrace_options(&opening);
        let db = terrace::Db::builder(directory.path()).options(options).open().unwrap();
        let (counted, told) = (barriers.count().unwrap(), db.stats().syncs.total());
        for key in 0..200_u32 {
            db.put(key.to_be_bytes(), [7; 1000]).unwrap();
        }
        db.flush().unwrap();
        db.compact().unwrap();
        db.wait_idle().unwrap();
        let (counted, told) = (barriers.count().unwrap() - counted, db.stats().syncs.total() - told);
        assert!(told > 200);
        assert_eq!(counted, told);
        db.close().unwrap();
    }
}
