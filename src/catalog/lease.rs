//! Notice that nobody holds a table's bytes any more.

use std::fmt;
use std::sync::Arc;

use crate::types::Extent;

/// Where extents go whose last holder is gone.
///
/// Called from whichever thread lets go last, possibly a reader's: an implementation only takes note.
pub trait ExtentSink: Send + Sync + fmt::Debug {
    /// No version, iterator, snapshot or job holds the table at `extent` any more.
    fn released(&self, extent: Extent);
}

/// The hold of one [`TableMeta`](super::TableMeta) on its extent; dropping it tells the sink, once.
pub struct Lease(Option<(Arc<dyn ExtentSink>, Extent)>);

impl Lease {
    /// A hold on `extent`, to be reported to `sink` when it ends.
    #[must_use]
    pub fn new(sink: Arc<dyn ExtentSink>, extent: Extent) -> Self {
        Self(Some((sink, extent)))
    }

    /// A hold whose end nobody needs to know.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some((sink, extent)) = self.0.take() {
            sink.released(extent);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Lease" } else { "Lease(none)" })
    }
}
