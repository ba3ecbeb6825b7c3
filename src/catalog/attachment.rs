//! Attachments: what the layers above keep with a table.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A place in a [`TableMeta`](super::TableMeta) for a value that a layer above wants to find without a search. It is
/// dropped with the metadata. The catalog never looks at it. A clone has what is attached at the moment.
#[derive(Clone, Default)]
pub struct Attachment(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Attachment {
    /// The attached value, if it is a `T`.
    #[must_use]
    #[inline]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }

    /// As [`Attachment::get`], a shared value to keep.
    #[must_use]
    pub fn get_arc<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.get()?.clone().downcast().ok()
    }

    /// Attaches `thing`, unless something is attached.
    pub fn set(&self, thing: Arc<dyn Any + Send + Sync>) {
        // If two threads do this, the second one has made an equal thing.
        let _ = self.0.set(thing);
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Attachment" } else { "Attachment(none)" })
    }
}
