//! The range of records that a command visits.

use std::ffi::OsString;
use std::ops::Bound;

use anyhow::Result;
use clap::Args;
use terrace::{Iter, Keyspace};

use crate::bytes::ByteFormat;

/// A range of keys.
#[derive(Args)]
pub struct BoundsArgs {
    /// First key, included
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,

    /// Last key, not included
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,

    /// Only keys that start with this
    #[arg(long)]
    prefix: Option<OsString>,
}

impl BoundsArgs {
    /// The bounds; both are open where nothing was given.
    pub fn parse(&self, format: ByteFormat) -> Result<Bounds> {
        let parse = |key: &Option<OsString>| key.as_deref().map(|key| format.parse(key)).transpose();
        Ok(bounds(parse(&self.from)?, parse(&self.to)?, parse(&self.prefix)?))
    }
}

/// A range of keys, how much of it and in which direction.
#[derive(Args)]
pub struct RangeArgs {
    #[command(flatten)]
    bounds: BoundsArgs,

    /// At most so many records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
}

impl RangeArgs {
    /// Opens the walk over the records of `keyspace`.
    pub fn walk(&self, format: ByteFormat, keyspace: &Keyspace) -> Result<Walk> {
        let bounds = self.bounds.parse(format)?;
        let iter = if is_empty(&bounds) { None } else { Some(keyspace.range(bounds)?) };
        Ok(Walk { iter, left: self.limit.unwrap_or(u64::MAX), reverse: self.reverse })
    }
}

/// The records of a range, one after the other.
pub struct Walk {
    iter: Option<Iter>,
    left: u64,
    reverse: bool,
}

impl Walk {
    /// The next record.
    pub fn advance(&mut self) -> terrace::Result<Option<(&[u8], &[u8])>> {
        let Some(iter) = self.iter.as_mut().filter(|_| self.left > 0) else { return Ok(None) };
        self.left -= 1;
        if self.reverse { iter.advance_back() } else { iter.advance() }
    }
}

/// First key and the key behind the last, where there are such.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Whether no key lies within `bounds`.
pub fn is_empty(bounds: &Bounds) -> bool {
    matches!(bounds, (Bound::Included(from), Bound::Excluded(to)) if from >= to)
}

/// The keys from `from` to below `to` that start with `prefix`.
fn bounds(from: Option<Vec<u8>>, to: Option<Vec<u8>>, prefix: Option<Vec<u8>>) -> Bounds {
    let after = prefix.as_deref().and_then(after_prefix);
    let first = from.max(prefix);
    let end = match (to, after) {
        (Some(to), Some(after)) => Some(to.min(after)),
        (to, after) => to.or(after),
    };
    (first.map_or(Bound::Unbounded, Bound::Included), end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// The least key beyond all keys that start with `prefix`; none when there is no such key.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Vec<u8>> {
        Some(text.into())
    }

    #[test]
    fn narrower_bound_wins() {
        let (from, to) = bounds(of("ab"), of("b"), of("a"));
        assert_eq!((from, to), (Bound::Included(b"ab".to_vec()), Bound::Excluded(b"b".to_vec())));
        let (from, to) = bounds(of("A"), of("z"), of("k"));
        assert_eq!((from, to), (Bound::Included(b"k".to_vec()), Bound::Excluded(b"l".to_vec())));
        assert_eq!(bounds(None, None, None), (Bound::Unbounded, Bound::Unbounded));
    }

    #[test]
    fn prefix_of_greatest_bytes_has_no_end() {
        assert_eq!(after_prefix(&[1, 255, 255]), Some(vec![2]));
        assert_eq!(after_prefix(&[255, 255]), None);
        assert_eq!(after_prefix(&[]), None);
    }
}
