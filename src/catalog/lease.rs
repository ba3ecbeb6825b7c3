//! Leases: the notice that nobody holds a table's bytes.

use std::fmt;
use std::sync::Arc;

use crate::types::Extent;

/// Receives the extents whose last holder is gone.
///
/// It is called by the thread that drops the last hold, possibly a reader's. So an implementation only takes note.
pub trait ExtentSink: Send + Sync + fmt::Debug {
    /// The last version, iterator, snapshot or job that held the table at `extent` has let go of it.
    fn released(&self, extent: Extent);

    /// The same of several.
    fn released_all(&self, extents: Vec<Extent>) {
        extents.into_iter().for_each(|extent| self.released(extent));
    }
}

/// The hold of a table on its extent. It is shared by all [`TableMeta`](super::TableMeta) of the table at that place:
/// one that only changes its epoch is another object. When the last of them is gone, the sink is notified, once.
#[derive(Clone)]
pub struct Lease(Option<Arc<Held>>);

struct Held {
    sink: Arc<dyn ExtentSink>,
    extent: Extent,
}

impl Lease {
    /// A hold on `extent`. `sink` is notified when it ends.
    #[must_use]
    pub fn new(sink: Arc<dyn ExtentSink>, extent: Extent) -> Self {
        Self(Some(Arc::new(Held { sink, extent })))
    }

    /// A hold without a sink.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.sink.released(self.extent);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Lease" } else { "Lease(none)" })
    }
}
