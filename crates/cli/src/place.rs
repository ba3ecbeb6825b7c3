//! The store and the keyspace on which a command works, and how they are opened.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use terrace::{Builder, Db, Durability, Keyspace};

use crate::table_io::IoArg;

/// The store and the keyspace.
#[derive(Args)]
pub struct Place {
    /// Directory of the store
    pub db: PathBuf,

    /// Keyspace within the store
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub keyspace: String,
}

impl Place {
    /// Opens the store so that nothing in its directory changes; it must exist, and so must the keyspace.
    pub fn open_to_read(&self) -> Result<(Db, Keyspace)> {
        let db = open_to_read(&self.db)?;
        let keyspace = existing_keyspace(&db, &self.db, &self.keyspace)?;
        Ok((db, keyspace))
    }

    /// Opens the store to change what is there; it must exist, and so must the keyspace.
    pub fn open_to_change(&self) -> Result<(Db, Keyspace)> {
        let db = open_to_change(&self.db)?;
        let keyspace = existing_keyspace(&db, &self.db, &self.keyspace)?;
        Ok((db, keyspace))
    }

    /// Opens the store and the keyspace to add to them, creating what is missing.
    pub fn open_to_add(&self) -> Result<(Db, Keyspace)> {
        self.add_with(Db::builder(&self.db))
    }

    /// As [`Place::open_to_add`], with tables written in another way.
    pub fn open_to_load(&self, io: &IoArg) -> Result<(Db, Keyspace)> {
        self.add_with(Db::builder(&self.db).env(io.env()))
    }

    fn add_with(&self, builder: Builder) -> Result<(Db, Keyspace)> {
        let db = open(builder, &self.db)?;
        let keyspace = db.keyspace(&self.keyspace)?;
        Ok((db, keyspace))
    }
}

/// The keyspace `name` of `db`, the store in `path`; it must exist.
pub fn existing_keyspace(db: &Db, path: &Path, name: &str) -> Result<Keyspace> {
    db.existing_keyspace(name)?.ok_or_else(|| {
        let names = db.keyspaces().join(", ");
        anyhow!("{} has no keyspace {name:?}: there are {names}", path.display())
    })
}

/// Opens the store in `path`, which must exist, so that nothing there changes.
pub fn open_to_read(path: &Path) -> Result<Db> {
    open(reader(path), path)
}

/// A builder that opens the store in `path` read-only.
pub fn reader(path: &Path) -> Builder {
    Db::builder(path).read_only().must_exist()
}

/// Opens the store in `path`, which must exist, to change what is there.
pub fn open_to_change(path: &Path) -> Result<Db> {
    open(Db::builder(path).must_exist(), path)
}

/// Opens the store in `path` as `builder` has it.
pub fn open(builder: Builder, path: &Path) -> Result<Db> {
    builder.open().map_err(|error| not_opened(path, &error))
}

/// The error for a store that could not be opened.
pub fn not_opened(path: &Path, error: &terrace::Error) -> anyhow::Error {
    anyhow!("cannot open {}: {error}", path.display())
}

/// Durability of a command's writes.
#[derive(Args)]
pub struct SyncArg {
    /// Return only when the write survives power loss
    #[arg(long)]
    sync: bool,
}

impl SyncArg {
    pub fn durability(&self) -> Durability {
        if self.sync { Durability::Synced } else { Durability::Buffered }
    }
}
