//! Mechanism, put together: commit, read, flush, merge, recover, reclaim.
