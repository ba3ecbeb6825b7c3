//! A group of writes that take effect together.

use crate::db::Keyspace;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::{Op, Ops, put_op};
use crate::types::{KEY_BYTES_MAX, KeyspaceId, Kind, VALUE_BYTES_MAX};

/// Longest batch, in encoded bytes: a log record must hold it whole.
const BATCH_BYTES_MAX: usize = (1 << 31) - 1;

/// Puts and deletes that [`crate::Db::write`] applies atomically, across keyspaces.
///
/// Later operations on a key win over earlier ones. A readers' view, or a crash, has all of a batch or nothing.
///
/// ```
/// use terrace::{Db, WriteBatch};
/// # let dir = tempfile::tempdir().unwrap();
/// let db = Db::open(dir.path())?;
/// let index = db.keyspace("index")?;
/// let mut batch = WriteBatch::new();
/// batch.put("user:1", "Ada").put_in(&index, "name:Ada", "user:1").delete("user:0");
/// db.write(batch)?;
/// assert_eq!(index.get("name:Ada")?.unwrap(), "user:1");
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    ops: Vec<u8>,
    count: u32,
    user_bytes: u64,
    keyspaces: Vec<KeyspaceId>,
    /// The first operation that broke a limit; reported when the batch is written.
    refused: Option<Error>,
}

impl WriteBatch {
    /// An empty batch.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// assert!(terrace::WriteBatch::new().is_empty());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives `key` the value `value` in the default keyspace.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.put("key", "value");
    /// db.write(batch)?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.add(DEFAULT_KEYSPACE, Kind::Put, key.as_ref(), value.as_ref())
    }

    /// Removes `key` from the default keyspace.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.put("key", "value").delete("key");
    /// db.write(batch)?;
    /// assert!(!db.contains("key")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(DEFAULT_KEYSPACE, Kind::Delete, key.as_ref(), &[])
    }

    /// Gives `key` the value `value` in `keyspace`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.put_in(&users, "1", "Ada");
    /// db.write(batch)?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn put_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.add(keyspace.keyspace_id(), Kind::Put, key.as_ref(), value.as_ref())
    }

    /// Removes `key` from `keyspace`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.delete_in(&users, "1");
    /// db.write(batch)?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn delete_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(keyspace.keyspace_id(), Kind::Delete, key.as_ref(), &[])
    }

    /// Number of operations.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.put("a", "1").delete("b");
    /// assert_eq!(batch.len(), 2);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the batch has no operation.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// assert!(terrace::WriteBatch::new().is_empty());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory that the operations take, which is about what they take in the log.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.put("key", "value");
    /// assert!(batch.bytes() >= 8);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.ops.len()
    }

    /// Forgets the operations, keeps the memory.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.put("key", "value");
    /// batch.clear();
    /// assert!(batch.is_empty());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.ops.clear();
        self.keyspaces.clear();
        (self.count, self.user_bytes, self.refused) = (0, 0, None);
    }

    pub(crate) fn add(&mut self, keyspace: KeyspaceId, kind: Kind, key: &[u8], value: &[u8]) -> &mut Self {
        if self.refused.is_none() {
            self.refused = self.check(key, value).err();
        }
        if self.refused.is_none() {
            put_op(&mut self.ops, keyspace, kind, key, value);
            self.count += 1;
            self.user_bytes += (key.len() + value.len()) as u64;
            if !self.keyspaces.contains(&keyspace) {
                self.keyspaces.push(keyspace);
            }
        }
        self
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let refuse = |message| Err(Error::new(ErrorKind::InvalidInput, message));
        if key.len() > KEY_BYTES_MAX {
            return refuse(format!("a key of {} bytes is longer than {KEY_BYTES_MAX}", key.len()));
        }
        if value.len() > VALUE_BYTES_MAX {
            return refuse(format!("a value of {} bytes is longer than {VALUE_BYTES_MAX}", value.len()));
        }
        // Headers of an operation take at most 16 bytes.
        if self.ops.len() + key.len() + value.len() + 16 > BATCH_BYTES_MAX || self.count == u32::MAX {
            return refuse(format!("a batch of more than {BATCH_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    /// The first refused operation's error.
    pub(crate) fn validate(&self) -> Result<()> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn encoded(&self) -> &[u8] {
        &self.ops
    }

    /// Bytes of keys and values.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// Keyspaces that the operations touch, each once.
    pub(crate) fn keyspaces(&self) -> &[KeyspaceId] {
        &self.keyspaces
    }

    /// The operations. They were encoded here, so they decode.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Op<'_>> {
        Ops::raw(&self.ops, self.count).filter_map(std::result::Result::ok)
    }
}

/// The keyspace that always exists.
pub(crate) const DEFAULT_KEYSPACE: KeyspaceId = KeyspaceId(1);
