//! Compaction filters: the owner's decisions about values during compactions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A compaction filter's decision about a value.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Decision {
    /// The value stays.
    Keep,
    /// The value is removed, as if the key had been deleted.
    Remove,
    /// The value is replaced by this one.
    Change(Vec<u8>),
}

/// Looks at values during compactions, and removes or changes some. Set it for a keyspace with
/// [`crate::Builder::compaction_filter`].
///
/// * A compaction shows the filter the newest value of each key among its inputs. When, how often, and whether at all
///   a value is shown depends on the compactions; [`crate::Db::compact`] shows all values that no snapshot sees. So a
///   decision must follow from key and value alone, and the store must make sense with and without it: a filter
///   removes data that nobody will ask for.
/// * A value that a snapshot or a transaction sees when the compaction starts is not shown. A snapshot that is taken
///   while the compaction runs may see the value first, and the filter's decision later. Open iterators keep what
///   they see.
/// * A decision is not a write: it conflicts with no transaction, and it never undoes a later write.
/// * It is called from several threads, under no lock, in the middle of compactions. [`crate::Db::close`] waits for
///   it to return, and writers may wait for the compaction. So it must return by itself, and must not write to the
///   store. While it panics, or makes a value longer than the limit, compactions of the keyspace fail with
///   `InvalidInput` and are tried again.
///
/// ```
/// use std::sync::Arc;
/// use terrace::{CompactionFilter, Db, Decision};
///
/// struct NoDrafts;
///
/// impl CompactionFilter for NoDrafts {
///     fn decide(&self, _key: &[u8], value: &[u8]) -> Decision {
///         if value.starts_with(b"draft") { Decision::Remove } else { Decision::Keep }
///     }
/// }
/// # let dir = tempfile::tempdir().unwrap();
/// let db = Db::builder(dir.path()).compaction_filter("default", Arc::new(NoDrafts)).open()?;
/// # Ok::<(), terrace::Error>(())
/// ```
pub trait CompactionFilter: Send + Sync + 'static {
    /// Decides about `value`, the value of `key`.
    fn decide(&self, key: &[u8], value: &[u8]) -> Decision;
}

/// Filters by name of their keyspace.
#[derive(Clone, Default)]
pub(crate) struct Filters(pub(crate) BTreeMap<String, Arc<dyn CompactionFilter>>);

impl fmt::Debug for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
