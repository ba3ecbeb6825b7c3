//! A walk over keys that were deleted lately, so that the first reader finds their dead ranges noted.
//!
//! What lies between deleted keys is only known once somebody has looked. Readers do ([`dead_ranges`]); a background thread does
//! it before them, whenever many keys more are deleted. It steps over each deleted entry once, and over a few rows that are
//! alive, and reads no large value. It goes on for a moment at a time.
//!
//! [`dead_ranges`]: crate::engine::keyspace::dead_ranges

use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;

use super::path::ReadPath;
use super::scan::{Wanted, sources};
use super::sight::{Bounds, Sight};
use crate::engine::keyspace::tree::Tree;
use crate::error::Result;
use crate::merge::{Crossed, MergeForward, Outlook, VisibleForward};
use crate::types::{Key, KeyRange, UpperBound};

/// Rows that are alive which such a walk steps over, at most: where they are many, nobody crosses many dead ones in a row.
const ROWS_MAX: usize = 64;

/// Dead keys that it steps over at a time, at most: a millisecond or two.
const KEYS_MAX: usize = 8192;

/// Walks from `first` to `last`, keys that were deleted. Returns where to go on, if it has not come to the end.
pub(in crate::engine) fn cross(
    path: &Arc<ReadPath>,
    tree: &Tree,
    (first, last): (&[u8], &[u8]),
) -> Result<Option<Key>> {
    path.health.check_open()?;
    let generation = tree.view().dead.generation();
    let view = tree.view_arc();
    let seq = path.visible();
    if path.clock.expiry(tree).is_some() {
        // Which rows are alive, only their values say.
        return Ok(None);
    }
    let bounds = Bounds { from: Bound::Included(first.to_vec()), to: Bound::Included(last.to_vec()) };
    let sight = Sight { view, seq, expiry: None, generation, bounds };
    let brief = Brief { sight: &sight, left: Cell::new(KEYS_MAX) };
    let sources = sources(path, &sight.view, seq, Wanted { sought: None, is_lazy: true, follows: false })?;
    let mut walk = VisibleForward::new(MergeForward::new(sources), seq).keys_alone();
    walk.seek(first, &brief)?;
    for _ in 0..ROWS_MAX {
        if !walk.valid() || sight.bounds.is_behind(walk.key()) {
            return Ok(None);
        }
        if brief.left.get() == 0 {
            return Ok(Some(walk.key().into()));
        }
        walk.step(&brief)?;
    }
    Ok(None)
}

/// What a walk sees that ends after some dead keys.
struct Brief<'a> {
    sight: &'a Sight,
    left: Cell<usize>,
}

impl Outlook for Brief<'_> {
    fn expires(&self) -> bool {
        false
    }

    fn is_expired(&self, _: &[u8]) -> bool {
        false
    }

    fn is_behind(&self, key: &[u8]) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left == 0 || self.sight.is_behind(key)
    }

    fn is_before(&self, key: &[u8]) -> bool {
        self.sight.is_before(key)
    }

    fn dead_until(&self, key: &[u8]) -> Option<UpperBound> {
        self.sight.dead_until(key)
    }

    fn dead_from(&self, key: &[u8]) -> Option<Key> {
        self.sight.dead_from(key)
    }

    fn found_dead(&self, crossed: Crossed, range: impl FnOnce() -> KeyRange) {
        self.sight.found_dead(crossed, range);
    }
}
