//! Terrace as a subject: rows in the default keyspace, those that move in a second one.

use std::path::Path;

use ::terrace::{Db, Iter, Keyspace, Options};

use super::{Engine, Map, Subject};
use crate::{Result, store};

/// Terrace with some options.
pub struct Terrace {
    name: String,
    options: Options,
}

impl Terrace {
    /// With options as [`store::options`] takes them.
    ///
    /// # Errors
    /// Options that do not exist.
    pub fn new(options: &str) -> Result<Self> {
        let name = if options == "default" { "terrace".to_owned() } else { format!("terrace@{options}") };
        Ok(Self { name, options: store::options(options)? })
    }
}

impl Engine for Terrace {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn is_terrace(&self) -> bool {
        true
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Subject>> {
        let db = Db::builder(path).options(self.options.clone()).open()?;
        let cold = db.keyspace("cold")?;
        Ok(Box::new(Open { db, cold }))
    }
}

struct Open {
    db: Db,
    cold: Keyspace,
}

/// Copies the key that `iter` begins with, or ends with.
fn copied(mut iter: Iter, is_first: bool, key: &mut Vec<u8>) -> Result<bool> {
    key.clear();
    let row = if is_first { iter.advance()? } else { iter.advance_back()? };
    if let Some((found, _)) = row {
        key.extend_from_slice(found);
    }
    Ok(row.is_some())
}

impl Subject for Open {
    fn put(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        match map {
            Map::Main => self.db.put(key, value)?,
            Map::Cold => self.cold.put(key, value)?,
        }
        Ok(())
    }

    fn delete(&self, map: Map, key: &[u8]) -> Result<()> {
        match map {
            Map::Main => self.db.delete(key)?,
            Map::Cold => self.cold.delete(key)?,
        }
        Ok(())
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<bool> {
        self.db.delete_range(from..to)?;
        Ok(true)
    }

    fn first(&self, from: &[u8], key: &mut Vec<u8>) -> Result<bool> {
        // A queue has no first key to begin from.
        let iter = if from.is_empty() { self.db.iter()? } else { self.db.range(from..)? };
        copied(iter, true, key)
    }

    fn last(&self, to: &[u8], key: &mut Vec<u8>) -> Result<bool> {
        copied(self.db.range(..=to)?, false, key)
    }

    fn first_of_prefix(&self, prefix: &[u8], key: &mut Vec<u8>) -> Result<bool> {
        copied(self.db.prefix(prefix)?, true, key)
    }

    fn walk(&self) -> Result<u64> {
        let mut iter = self.db.iter()?;
        let mut rows = 0;
        while iter.advance()?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }

    fn flush(&self) -> Result<bool> {
        self.db.flush()?;
        Ok(true)
    }

    fn wait_idle(&self) -> Result<bool> {
        self.db.wait_idle()?;
        Ok(true)
    }

    fn compact(&self) -> Result<bool> {
        self.db.compact()?;
        Ok(true)
    }

    fn terrace(&self) -> Option<&Db> {
        Some(&self.db)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { db, cold } = *self;
        drop(cold);
        Ok(db.close()?)
    }
}
