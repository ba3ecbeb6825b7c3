//! `terrace devices`: the directories of a store on several disks.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand};
use terrace::{Db, DeviceStats};

use super::Answer;
use crate::place::{open, open_to_change, open_to_read};

/// List the devices of a store, add one, empty one or remove one
///
/// A store on several devices has its log and its manifest in its own directory, and tables in all of them. It needs every one
/// of them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace devices list /mnt/nvme/db
  terrace devices add /mnt/nvme/db /mnt/sata/db
  terrace devices drain /mnt/nvme/db /mnt/sata/db
  terrace devices remove /mnt/nvme/db /mnt/sata/db")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Print what each device holds
    List {
        /// Directory of the store
        db: PathBuf,

        /// Print an object per line
        #[arg(long)]
        json: bool,
    },
    /// Make a directory a device of the store, or tell the store where a device has moved to
    Add {
        /// Directory of the store
        db: PathBuf,

        /// The other directory; it is made if it is missing
        dir: PathBuf,
    },
    /// Move all tables away from a device
    Drain {
        /// Directory of the store
        db: PathBuf,

        /// Directory of the device
        dir: PathBuf,
    },
    /// Move all tables away from a device, and let it go
    Remove {
        /// Directory of the store
        db: PathBuf,

        /// Directory of the device
        dir: PathBuf,
    },
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    match &arguments.action {
        Action::List { db, json } => list(&open_to_read(db)?.stats().devices, *json)?,
        Action::Add { db, dir } => {
            let db = open(Db::builder(db).must_exist().device(dir), db)?;
            list(&db.stats().devices, false)?;
            db.close()?;
        }
        Action::Drain { db, dir } => change(db, |db| db.drain_device(dir))?,
        Action::Remove { db, dir } => change(db, |db| db.remove_device(dir))?,
    }
    Ok(Answer::Yes)
}

fn change(path: &Path, change: impl FnOnce(&Db) -> terrace::Result<()>) -> Result<()> {
    let db = open_to_change(path)?;
    change(&db)?;
    list(&db.stats().devices, false)?;
    Ok(db.close()?)
}

fn list(devices: &[DeviceStats], json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for DeviceStats { id, dir, table_bytes, free_bytes, rated_bandwidth, .. } in devices {
        if json {
            let line = serde_json::json!({
                "id": id, "dir": dir, "table_bytes": table_bytes, "free_bytes": free_bytes, "rated_bandwidth": rated_bandwidth,
            });
            writeln!(out, "{line}")?;
        } else {
            let role = if *id == 0 { "log, manifest and tables" } else { "tables" };
            let mebibytes = |bytes: &u64| bytes / (1 << 20);
            write!(
                out,
                "{id}  {}  {role}: {} MiB, {} MiB free",
                dir.display(),
                mebibytes(table_bytes),
                mebibytes(free_bytes)
            )?;
            if *rated_bandwidth > 0 {
                write!(out, ", wrote {} MB/s when it was measured", rated_bandwidth / 1_000_000)?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
