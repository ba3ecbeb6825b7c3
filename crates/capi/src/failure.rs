//! Failures, in the form in which they cross the border: a kind and a message, and where.

use std::any::Any;
use std::path::PathBuf;

/// What the caller can do about an error.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum terrace_error_kind {
    /// A kind that this header does not know. The message tells.
    Other = 0,
    /// Fix the argument or the option; nothing was changed.
    InvalidInput = 1,
    /// Another handle or process has the store; wait for it or open it read-only.
    Busy = 2,
    /// There is no store here, or no keyspace of that name.
    NotFound = 3,
    /// Stored bytes are damaged; restore a backup, or repair.
    Corruption = 4,
    /// Free space on the device; then go on.
    DiskFull = 5,
    /// The store's files would exceed its budget of space; nothing was changed.
    OverBudget = 6,
    /// The operating system refused an operation; nothing was changed.
    Io = 7,
    /// An earlier failure has left an unknown outcome: reads go on; to write, reopen the store.
    Poisoned = 8,
    /// A job's result contradicts what the store holds, and was refused. This is a bug in Terrace.
    Inconsistent = 9,
    /// Data that a transaction depends on has changed since it began. Nothing was written; run it again.
    Conflict = 10,
    /// The store has been closed.
    Closed = 11,
    /// The store was opened read-only, or its directory cannot be written.
    ReadOnly = 12,
    /// A panic was caught at the border to C. This is a bug in Terrace. Close the store.
    Panic = 13,
}

/// A failure on its way to C.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: terrace_error_kind,
    pub(crate) message: String,
    pub(crate) file: Option<PathBuf>,
    pub(crate) offset: Option<u64>,
}

impl Failure {
    /// One without a file.
    pub(crate) fn new(kind: terrace_error_kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), file: None, offset: None }
    }

    /// An argument that cannot be taken.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(terrace_error_kind::InvalidInput, message)
    }

    /// A panic with this payload.
    pub(crate) fn panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::new(terrace_error_kind::Panic, format!("a bug in Terrace: {}", text.unwrap_or("a panic")))
    }

    /// The same with `text` behind the message.
    pub(crate) fn and(mut self, text: &str) -> Self {
        self.message.push_str(text);
        self
    }
}

impl From<engine::Error> for Failure {
    fn from(error: engine::Error) -> Self {
        let kind = match error.kind() {
            engine::ErrorKind::InvalidInput => terrace_error_kind::InvalidInput,
            engine::ErrorKind::Busy => terrace_error_kind::Busy,
            engine::ErrorKind::NotFound => terrace_error_kind::NotFound,
            engine::ErrorKind::Corruption => terrace_error_kind::Corruption,
            engine::ErrorKind::DiskFull => terrace_error_kind::DiskFull,
            engine::ErrorKind::OverBudget => terrace_error_kind::OverBudget,
            engine::ErrorKind::Io => terrace_error_kind::Io,
            engine::ErrorKind::Poisoned => terrace_error_kind::Poisoned,
            engine::ErrorKind::Inconsistent => terrace_error_kind::Inconsistent,
            engine::ErrorKind::Conflict => terrace_error_kind::Conflict,
            engine::ErrorKind::Closed => terrace_error_kind::Closed,
            engine::ErrorKind::ReadOnly => terrace_error_kind::ReadOnly,
            _ => terrace_error_kind::Other,
        };
        let (file, offset) = (error.file().map(Into::into), error.offset());
        Self { kind, message: error.to_string(), file, offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_the_error_says() {
        let dir = tempfile::tempdir().unwrap();
        let db = engine::Db::open(dir.path()).unwrap();
        for (error, kind) in [
            (db.put(vec![0; 70_000], "").unwrap_err(), terrace_error_kind::InvalidInput),
            (engine::Db::open(dir.path()).unwrap_err(), terrace_error_kind::Busy),
            (engine::Db::open_read_only(dir.path().join("none")).unwrap_err(), terrace_error_kind::NotFound),
        ] {
            let (text, file) = (error.to_string(), error.file().map(PathBuf::from));
            let failure = Failure::from(error);
            assert_eq!((failure.kind, failure.message, failure.file), (kind, text, file));
        }
    }

    #[test]
    fn a_panic_keeps_its_text() {
        for panic in [Box::new("why") as Box<dyn Any + Send>, Box::new("why".to_owned())] {
            let failure = Failure::panic(&*panic);
            assert_eq!(
                (failure.kind, &*failure.message),
                (terrace_error_kind::Panic, "a bug in Terrace: why")
            );
        }
    }
}
