//! What users of a table keep with it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A place in a [`TableMeta`](super::TableMeta) for something that a layer above wants to find without a search, and
/// that ends with it. The catalog never looks at it.
#[derive(Default)]
pub struct Attachment(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Attachment {
    /// What is attached, if it is a `T`.
    #[must_use]
    #[inline]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }

    /// What is attached, if it is a `T`, to keep.
    #[must_use]
    pub fn get_arc<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.get()?.clone().downcast().ok()
    }

    /// Attaches `thing`, unless there is something already.
    pub fn set(&self, thing: Arc<dyn Any + Send + Sync>) {
        // Whoever comes second has made the same thing.
        let _ = self.0.set(thing);
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Attachment" } else { "Attachment(none)" })
    }
}
