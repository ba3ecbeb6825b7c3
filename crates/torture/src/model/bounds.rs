//! Bounds of ranges of keys.

use std::ops::Bound;

use crate::oracle::show;

/// The keys that start with `prefix`.
pub(super) fn starting_with(prefix: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let end = prefix.iter().rposition(|&byte| byte < u8::MAX).map(|last| {
        let mut end = prefix[..=last].to_vec();
        end[last] += 1;
        end
    });
    (Bound::Included(prefix.to_vec()), end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// Whether nothing can lie between the two, which the standard library's map refuses to look for.
pub(super) fn is_inverted(from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from >= to
        }
        _ => false,
    }
}

pub(super) fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

pub(super) fn shown(bound: &Bound<Vec<u8>>) -> String {
    match bound {
        Bound::Included(key) => format!("={}", show(key)),
        Bound::Excluded(key) => format!("<>{}", show(key)),
        Bound::Unbounded => "open".into(),
    }
}
