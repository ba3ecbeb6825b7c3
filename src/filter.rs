//! A say of the owner in what compactions keep.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What becomes of a value in a compaction.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Decision {
    /// It stays.
    Keep,
    /// It goes, as if the key had been deleted.
    Remove,
    /// It becomes another one.
    Change(Vec<u8>),
}

/// Looks at values while they are compacted, and removes or changes some. Set for a keyspace with
/// [`crate::Builder::compaction_filter`].
///
/// * A compaction shows the filter the newest value of each key among its inputs; when, how often, and whether at all, depends
///   on the compactions; [`crate::Db::compact`] shows it all that no snapshot sees. So decisions must follow from key and value alone, and the store must make sense with and without
///   them: a filter tidies up what nobody asks for any more.
/// * A value that a snapshot, or a transaction, can see when the compaction starts is not shown. One that is taken while the
///   compaction runs may see a value first, and the filter's decision later. Iterators go on with what they have.
/// * A decision is not a write: it conflicts with no transaction, and no later write is undone by it.
/// * It is called from several threads, holding no lock, in the middle of compactions: [`crate::Db::close`] waits for it to return, and
///   writers may wait for the compaction, so it must come to an end by itself and not write to the store. While it panics, or makes a value longer than the limit, compactions of
///   the keyspace fail with `InvalidInput` and are tried again.
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
    /// What becomes of `value`, the value of `key`.
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
