//! The kinds of jobs.

/// Kinds of jobs. Failures of the first two concern different waiters, those of rewrites nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Job {
    Flush,
    Compaction,
    Rewrite,
}
