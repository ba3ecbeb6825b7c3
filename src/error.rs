//! The one public error type.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result of every fallible public operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and what the caller can do about it.
///
/// [`Error::kind`] says what to do. The message says the rest in a sentence. [`std::error::Error::source`] is the
/// operating system's own error, if there is one. An error is cheap to clone: a store that refuses writes after a
/// failure returns the same reason each time.
///
/// ```
/// # fn main() -> terrace::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// let error = db.put(vec![0; 70_000], "too long a key").unwrap_err();
/// assert_eq!(error.kind(), terrace::ErrorKind::InvalidInput);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

/// What the caller can do about an [`Error`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Fix the argument or the option; nothing was changed.
    InvalidInput,
    /// Another handle or process has the store; wait for it or open read-only.
    Busy,
    /// There is no store here, or no keyspace of that name.
    NotFound,
    /// Stored bytes are damaged; restore a backup, or see `terrace verify`.
    Corruption,
    /// Free space on the device; then go on.
    DiskFull,
    /// The store's files would exceed [`Options::space_bytes`](crate::Options::space_bytes); nothing was changed. Delete
    /// something and compact, or raise the budget.
    OverBudget,
    /// The operating system refused an operation; nothing was changed.
    Io,
    /// An earlier failure has left an unknown outcome: reads go on; to write, reopen the store.
    Poisoned,
    /// A job's result contradicts what the store holds, and was refused before anything was installed. This is a bug
    /// in Terrace: please report it. Reads go on, and writes as long as there is room; see `terrace verify`.
    Inconsistent,
    /// Data that a transaction depends on has changed since it began. Nothing was written; run the transaction again.
    Conflict,
    /// The store has been closed.
    Closed,
    /// The store was opened read-only: open it for writing. Or its directory cannot be written: open it read-only.
    ReadOnly,
}

struct Inner {
    kind: ErrorKind,
    message: String,
    file: Option<PathBuf>,
    offset: Option<u64>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// What the caller can do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file that the error is about.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// Offset in the file, in bytes.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// An error without a file.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner { kind, message: message.into(), file: None, offset: None, source: None }))
    }

    /// The operating system's refusal to do `action` with `file`.
    pub(crate) fn io(action: &str, file: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::DiskFull,
            io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
            _ => ErrorKind::Io,
        };
        Self::os(kind, action, file, source)
    }

    /// As [`Error::io`], but never [`ErrorKind::DiskFull`]: for calls that free space, and for syncs, after which the
    /// fate of the bytes is unknown whatever the operating system's error is.
    pub(crate) fn hard_io(action: &str, file: &Path, source: io::Error) -> Self {
        Self::os(ErrorKind::Io, action, file, source)
    }

    /// As [`Error::io`], for calls that fail only if the directory must not be written.
    pub(crate) fn write_refused(action: &str, file: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::os(ErrorKind::ReadOnly, action, file, source),
            _ => Self::io(action, file, source),
        }
    }

    fn os(kind: ErrorKind, action: &str, file: &Path, source: io::Error) -> Self {
        let file = Some(file.to_path_buf());
        Self(Arc::new(Inner {
            kind,
            message: format!("cannot {action}"),
            file,
            offset: None,
            source: Some(Arc::new(source)),
        }))
    }

    /// Damaged bytes at `offset` of `file`.
    pub(crate) fn corruption(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        let file = Some(file.to_path_buf());
        Self(Arc::new(Inner {
            kind: ErrorKind::Corruption,
            message: what.into(),
            file,
            offset: Some(offset),
            source: None,
        }))
    }

    /// Refusal of a write because of the earlier error `cause`.
    pub(crate) fn poisoned(cause: &Self) -> Self {
        Self(Arc::new(Inner {
            kind: ErrorKind::Poisoned,
            message: "the store refuses writes until it is reopened, because of an earlier failure".into(),
            file: cause.0.file.clone(),
            offset: cause.0.offset,
            source: Some(Arc::new(cause.clone())),
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(file) = &self.0.file {
            write!(f, " ({}", file.display())?;
            if let Some(offset) = self.0.offset {
                write!(f, " at byte {offset}")?;
            }
            f.write_str(")")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

/// For code that must return an [`io::Error`], as traits of other crates demand. The kind is the nearest one of the
/// standard library; the whole error is inside.
///
/// ```
/// use std::io;
/// # let dir = tempfile::tempdir().unwrap();
/// fn names(dir: &std::path::Path) -> io::Result<Vec<String>> {
///     Ok(terrace::Db::open_read_only(dir)?.keyspaces())
/// }
/// let error = names(&dir.path().join("none")).unwrap_err();
/// assert_eq!(error.kind(), io::ErrorKind::NotFound);
/// let inside = error.get_ref().unwrap().downcast_ref::<terrace::Error>().unwrap();
/// assert_eq!(inside.kind(), terrace::ErrorKind::NotFound);
/// ```
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.io_kind(), error)
    }
}

impl Error {
    /// The standard library's kind for this error: the operating system's own, if it gave one.
    fn io_kind(&self) -> io::ErrorKind {
        let os = || {
            let source = self.0.source.as_ref()?;
            Some(source.downcast_ref::<io::Error>()?.kind())
        };
        match self.kind() {
            ErrorKind::InvalidInput => io::ErrorKind::InvalidInput,
            ErrorKind::Busy => io::ErrorKind::ResourceBusy,
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::Corruption | ErrorKind::Inconsistent => io::ErrorKind::InvalidData,
            ErrorKind::DiskFull => io::ErrorKind::StorageFull,
            ErrorKind::OverBudget => io::ErrorKind::QuotaExceeded,
            // Never `Interrupted` or `WouldBlock`: callers would repeat the call, which helps with none of these.
            ErrorKind::Io | ErrorKind::Poisoned | ErrorKind::Conflict | ErrorKind::Closed => {
                os().unwrap_or(io::ErrorKind::Other)
            }
            ErrorKind::ReadOnly => os().unwrap_or(io::ErrorKind::ReadOnlyFilesystem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_error_has_the_nearest_kind_and_keeps_the_error() {
        let file = Path::new("/db/1.pack");
        let os = |kind| Error::io("write", file, io::Error::from(kind));
        let plain = |kind| Error::new(kind, "why");
        let poisoned = Error::poisoned(&os(io::ErrorKind::TimedOut));
        for (error, kind) in [
            (plain(ErrorKind::InvalidInput), io::ErrorKind::InvalidInput),
            (plain(ErrorKind::Busy), io::ErrorKind::ResourceBusy),
            (plain(ErrorKind::NotFound), io::ErrorKind::NotFound),
            (Error::corruption(file, 7, "bad"), io::ErrorKind::InvalidData),
            (os(io::ErrorKind::StorageFull), io::ErrorKind::StorageFull),
            (plain(ErrorKind::OverBudget), io::ErrorKind::QuotaExceeded),
            (os(io::ErrorKind::TimedOut), io::ErrorKind::TimedOut),
            (plain(ErrorKind::ReadOnly), io::ErrorKind::ReadOnlyFilesystem),
            (poisoned, io::ErrorKind::Other),
            (plain(ErrorKind::Conflict), io::ErrorKind::Other),
            (plain(ErrorKind::Closed), io::ErrorKind::Other),
        ] {
            let (told, its_kind) = (error.to_string(), error.kind());
            let io = io::Error::from(error);
            assert_eq!((io.kind(), io.to_string()), (kind, told));
            let kept = io.get_ref().and_then(|inside| inside.downcast_ref::<Error>());
            assert_eq!(kept.map(Error::kind), Some(its_kind));
        }
    }
}
