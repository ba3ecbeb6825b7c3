//! Write batches: groups of writes that take effect together.

use crate::bounds::KeyBounds;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::{Action, Large, Op, Ops, pieces, put_op, put_op_before_value};
use crate::types::pages::LARGE_BYTES;
use crate::types::{BOUND_BYTES_MAX, KEY_BYTES_MAX, KeyRange, KeyspaceId, VALUE_BYTES_MAX};

/// Longest batch, in encoded bytes: a log record must hold it whole.
const BATCH_BYTES_MAX: usize = (1 << 31) - 1;

/// Most bytes that an operation takes besides keys and values: kind, keyspace, two lengths.
const OP_HEADERS_MAX: usize = 16;

/// Puts and deletes, of keys and of ranges of keys, that [`crate::Db::write`] applies atomically, across keyspaces.
///
/// Later operations on a key win over earlier ones. A reader sees all of a batch or nothing of it, and so does
/// recovery after a crash.
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
    /// Large values, which lie beside `ops`, in order.
    large: Vec<Large>,
    large_bytes: usize,
    count: u32,
    range_deletes: u32,
    user_bytes: u64,
    keyspaces: Vec<KeyspaceId>,
    /// The error of the first operation that broke a limit. It is returned when the batch is written.
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
        self.add(DEFAULT_KEYSPACE, Action::Put { key: key.as_ref(), value: value.as_ref() })
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
        self.add(DEFAULT_KEYSPACE, Action::Delete { key: key.as_ref() })
    }

    /// Removes all keys that lie in `range` from the default keyspace: those of the store, and those that the batch
    /// has put before this operation. See [`crate::Db::delete_range`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.put("a1", "old").delete_range("a".."b").put("a2", "new");
    /// db.write(batch)?;
    /// assert!(!db.contains("a1")? && db.contains("a2")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn delete_range(&mut self, range: impl KeyBounds) -> &mut Self {
        self.add_range(DEFAULT_KEYSPACE, key_range(&range))
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
        keyspace: impl Into<KeyspaceId>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.add(keyspace.into(), Action::Put { key: key.as_ref(), value: value.as_ref() })
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
    pub fn delete_in(&mut self, keyspace: impl Into<KeyspaceId>, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(keyspace.into(), Action::Delete { key: key.as_ref() })
    }

    /// Removes all keys that lie in `range` from `keyspace`. See [`WriteBatch::delete_range`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.delete_range_in(&users, ..).put_in(&users, "1", "Ada");
    /// db.write(batch)?;
    /// assert_eq!(users.iter()?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn delete_range_in(&mut self, keyspace: impl Into<KeyspaceId>, range: impl KeyBounds) -> &mut Self {
        self.add_range(keyspace.into(), key_range(&range))
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

    /// Bytes of memory that the operations take. They take about as much in the log.
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
        self.ops.len() + self.large_bytes
    }

    /// Removes all operations. Keeps the memory for reuse, but not that of very large values.
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
        self.large.clear();
        self.large_bytes = 0;
        self.keyspaces.clear();
        (self.count, self.range_deletes, self.user_bytes, self.refused) = (0, 0, 0, None);
    }

    /// Most bytes that an operation with such a key and value takes in `ops`.
    pub(crate) fn bytes_of(key_bytes: usize, value_bytes: usize) -> usize {
        let beside = value_bytes >= LARGE_BYTES;
        OP_HEADERS_MAX + key_bytes + if beside { 0 } else { value_bytes }
    }

    /// Reserves memory for this many more bytes of operations.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.ops.reserve_exact(bytes.min(BATCH_BYTES_MAX));
    }

    /// Gives `key` the value `value` in `keyspace`; `None` removes the key.
    pub(crate) fn write(&mut self, keyspace: KeyspaceId, key: &[u8], value: Option<&[u8]>) {
        match value {
            Some(value) => self.add(keyspace, Action::Put { key, value }),
            None => self.add(keyspace, Action::Delete { key }),
        };
    }

    pub(crate) fn add_range(&mut self, keyspace: KeyspaceId, range: Option<KeyRange>) -> &mut Self {
        match range {
            Some(KeyRange { start, end }) => {
                self.add(keyspace, Action::DeleteRange { start: &start, end: end.as_bytes() })
            }
            None => self,
        }
    }

    pub(crate) fn add(&mut self, keyspace: KeyspaceId, action: Action<'_>) -> &mut Self {
        if self.refused.is_none() {
            self.refused = self.check(&action).err();
        }
        if self.refused.is_none() {
            match action {
                Action::Put { key, value } if value.len() >= LARGE_BYTES => {
                    put_op_before_value(&mut self.ops, keyspace, key, value.len());
                    self.large.push(Large { at: self.ops.len(), value: value.into() });
                    self.large_bytes += value.len();
                }
                _ => put_op(&mut self.ops, &Op { keyspace, action }),
            }
            self.count += 1;
            self.range_deletes += u32::from(matches!(action, Action::DeleteRange { .. }));
            self.user_bytes += action.bytes() as u64;
            if !self.keyspaces.contains(&keyspace) {
                self.keyspaces.push(keyspace);
            }
        }
        self
    }

    fn check(&self, action: &Action<'_>) -> Result<()> {
        let refuse = |message| Err(Error::new(ErrorKind::InvalidInput, message));
        let (key_bytes, key_bytes_max, value_bytes) = match action {
            Action::Delete { key } => (key.len(), KEY_BYTES_MAX, 0),
            Action::Put { key, value } => (key.len(), KEY_BYTES_MAX, value.len()),
            Action::DeleteRange { start, end } => (start.len().max(end.len()), BOUND_BYTES_MAX, 0),
        };
        if key_bytes > key_bytes_max {
            return refuse(format!("a key of {key_bytes} bytes is longer than {KEY_BYTES_MAX}"));
        }
        if value_bytes > VALUE_BYTES_MAX {
            return refuse(format!("a value of {value_bytes} bytes is longer than {VALUE_BYTES_MAX}"));
        }
        if self.bytes() + action.bytes() + OP_HEADERS_MAX > BATCH_BYTES_MAX || self.count == u32::MAX {
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

    /// Number of operations that delete ranges.
    pub(crate) fn range_deletes(&self) -> u32 {
        self.range_deletes
    }

    /// The operations in their stored form, in pieces.
    pub(crate) fn encoded(&self) -> impl Iterator<Item = &[u8]> + Clone {
        pieces(&self.ops, &self.large)
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
        Ops::raw_beside(&self.ops, self.count, &self.large).filter_map(std::result::Result::ok)
    }
}

/// The keyspace that always exists.
pub(crate) const DEFAULT_KEYSPACE: KeyspaceId = KeyspaceId(1);

/// The keys inside, if there can be any.
fn key_range(range: &impl KeyBounds) -> Option<KeyRange> {
    let (from, to) = range.key_bounds();
    KeyRange::between(from, to)
}
