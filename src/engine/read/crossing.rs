//! A walk over keys that were deleted lately, so that the first reader finds their dead ranges noted.
//!
//! What lies between deleted keys is only known once somebody has looked. Readers do ([`dead_ranges`]); a background thread does
//! it before them, whenever some thousand keys more are deleted. It steps over each deleted entry once, and over a few rows that
//! are alive.
//!
//! [`dead_ranges`]: crate::engine::keyspace::dead_ranges

use std::ops::Bound;
use std::sync::Arc;

use super::path::ReadPath;
use super::scan::{Wanted, sources};
use super::sight::{Bounds, Sight};
use crate::engine::keyspace::tree::Tree;
use crate::error::Result;
use crate::merge::{MergeForward, VisibleForward};

/// Rows that are alive which such a walk steps over, at most: where they are many, nobody crosses many dead ones in a row.
const ROWS_MAX: usize = 64;

/// Walks from the first key of `range`, which were deleted, to the last.
pub(in crate::engine) fn cross(
    path: &Arc<ReadPath>,
    tree: &Tree,
    (first, last): (&[u8], &[u8]),
) -> Result<()> {
    let generation = tree.view().dead.generation();
    let view = tree.view_arc();
    let seq = path.visible();
    let expiry = path.clock.expiry(tree);
    let bounds = Bounds { from: Bound::Included(first.to_vec()), to: Bound::Included(last.to_vec()) };
    let sight = Sight { view, seq, expiry, generation, bounds };
    let wanted = Wanted { sought: None, is_lazy: expiry.is_none() };
    let mut walk = VisibleForward::new(MergeForward::new(sources(path, &sight.view, seq, wanted)?), seq);
    walk.seek(first, &sight)?;
    for _ in 0..ROWS_MAX {
        if !walk.valid() || sight.bounds.is_behind(walk.key()) {
            break;
        }
        walk.step(&sight)?;
    }
    Ok(())
}
