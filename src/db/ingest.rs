//! Ingests: sorted data that goes straight into tables.

use std::fmt;

use super::{Db, Keyspace};
use crate::engine::Ingestion;
use crate::error::Result;

/// An ingest: sorted entries that go straight into the tables of a keyspace, past log and memtable. It is the
/// cheapest way to load much sorted data.
///
/// Push entries, and delete keys, in strictly ascending order of the keys. They take effect together when
/// [`Ingest::finish`] returns: newer than everything that was written by then, for all readers at once.
/// [`Ingest::finish_together`] does this for several keyspaces. An ingest that is dropped earlier leaves nothing. Its
/// memory does not grow with the number of entries.
///
/// The same keys once more take the place of the older ones by themselves: their tables go without being read or merged,
/// once no snapshot sees them.
///
/// An ingest cannot delete ranges: everything that it writes has one sequence number, and a range tombstone also
/// hides entries with its own number. A [`Db::delete_range`] before it costs one write, but readers see that before
/// they see the ingest.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrace::Db::open(dir.path())?;
/// let words = db.keyspace("words")?;
/// let mut ingest = words.ingest()?;
/// for n in 0..1000 {
///     ingest.push(format!("{n:04}"), "word")?;
/// }
/// assert!(words.get("0007")?.is_none());
/// ingest.finish()?;
/// assert_eq!(words.get("0007")?.unwrap(), "word");
/// # Ok::<(), terrace::Error>(())
/// ```
#[must_use = "nothing is visible before `finish`"]
pub struct Ingest {
    ingestion: Ingestion,
    /// Keeps the store open.
    keyspace: Keyspace,
}

impl Ingest {
    /// Appends an entry.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut ingest = db.ingest()?;
    /// ingest.push("b", "1")?;
    /// assert_eq!(ingest.push("a", "2").unwrap_err().kind(), terrace::ErrorKind::InvalidInput);
    /// ingest.push("c", "3")?;
    /// ingest.finish()?;
    /// assert_eq!(db.iter()?.count(), 2);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when the key is not behind the last one, or a length limit is broken: the entry is left out.
    /// `OverBudget`, `DiskFull`, `Io`, `Poisoned`, `Closed`: the ingest has failed, and `finish` will fail too; what
    /// it has written is removed when it is dropped.
    pub fn push(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.ingestion.push(key.as_ref(), value.as_ref())
    }

    /// Removes a key; fine if it has no value. Deletions and entries come in one ascending order of keys.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("b", "old")?;
    /// let mut ingest = db.ingest()?;
    /// ingest.push("a", "new")?;
    /// ingest.delete("b")?;
    /// ingest.push("c", "new")?;
    /// ingest.finish()?;
    /// assert!(!db.contains("b")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Ingest::push`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.ingestion.delete(key.as_ref())
    }

    /// Makes all entries durable, and visible at one moment. Waits for running compactions of the keyspace and for a
    /// flush of its memtables; writers wait for the flush too ([`StallStats`](crate::StallStats) count this). Where
    /// writers have to stop, for example because level 0 is full, it waits as they do.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// let mut ingest = db.ingest()?;
    /// ingest.push("key", "new")?;
    /// ingest.finish()?;
    /// assert_eq!(db.get("key")?.unwrap(), "new");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of the first failed `push`; `NotFound` when the keyspace was dropped; `OverBudget` when the last
    /// table does not fit; the error of a job that failed recently and is needed to make room; otherwise as
    /// [`Db::flush`]. Nothing is changed then, unless the store is poisoned.
    pub fn finish(self) -> Result<()> {
        self.ingestion.finish()
    }

    /// Finishes several ingests, each of another keyspace of one store, at one moment: no reader sees, and no crash
    /// or failure leaves, the entries of some without those of the others. It waits as [`Ingest::finish`] does, for
    /// all of the keyspaces.
    ///
    /// ```
    /// use terrace::Ingest;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let (users, names) = (db.keyspace("users")?, db.keyspace("names")?);
    /// let (mut rows, mut index) = (users.ingest()?, names.ingest()?);
    /// rows.push("1", "Ada")?;
    /// index.push("Ada", "1")?;
    /// Ingest::finish_together([rows, index])?;
    /// assert!(users.contains("1")? && names.contains("Ada")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when two are of the same keyspace, or of different stores; otherwise as [`Ingest::finish`] for
    /// each of them. Nothing is changed then, unless the store is poisoned.
    pub fn finish_together(ingests: impl IntoIterator<Item = Self>) -> Result<()> {
        // The keyspace handles keep the store open meanwhile.
        let parts = ingests.into_iter().map(|ingest| (ingest.ingestion, ingest.keyspace));
        let (ingestions, _keyspaces): (Vec<_>, Vec<_>) = parts.unzip();
        Ingestion::finish_all(ingestions)
    }
}

impl fmt::Debug for Ingest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingest").field("keyspace", &self.keyspace.name()).finish_non_exhaustive()
    }
}

impl Keyspace {
    /// Starts an ingest of sorted entries. See [`Ingest`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut ingest = db.keyspace("users")?.ingest()?;
    /// ingest.push("1", "Ada")?;
    /// ingest.finish()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ReadOnly`, `Closed`, `Poisoned`; `NotFound` when the keyspace was dropped.
    pub fn ingest(&self) -> Result<Ingest> {
        let ingestion = Ingestion::new(&self.engine().write, self.tree())?;
        Ok(Ingest { ingestion, keyspace: self.clone() })
    }
}

impl Db {
    /// As [`Keyspace::ingest`], for the keyspace "default".
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut ingest = db.ingest()?;
    /// ingest.push("key", "value")?;
    /// ingest.finish()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::ingest`].
    pub fn ingest(&self) -> Result<Ingest> {
        self.default_keyspace().ingest()
    }
}
