//! Converts ranges of keys in Rust's notations to the bounds of an iterator.

use std::ops::Bound;

use crate::bounds::KeyBounds;
use crate::engine::read::sight::Bounds;

/// All keys.
pub(super) const EVERYTHING: Bounds = Bounds { from: Bound::Unbounded, to: Bound::Unbounded };

/// The engine's form of a range.
pub(crate) fn bounds(range: &impl KeyBounds) -> Bounds {
    let (from, to) = range.key_bounds();
    Bounds { from: from.map(<[u8]>::to_vec), to: to.map(<[u8]>::to_vec) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slice::Slice;
    use std::ops::Bound::{Excluded, Included, Unbounded};

    #[test]
    fn every_notation_over_every_kind_of_key_needs_no_annotation() {
        fn told(range: impl KeyBounds) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
            let Bounds { from, to } = bounds(&range);
            (from, to)
        }
        let (a, z) = (b"a".to_vec(), b"z".to_vec());
        let slices = (Slice::from(&a[..]), Slice::from(&z[..]));
        let half_open = (Included(a.clone()), Excluded(z.clone()));
        assert_eq!(told(..), (Unbounded, Unbounded));
        assert_eq!(told("a".."z"), half_open);
        assert_eq!(told("a".to_owned().."z".to_owned()), half_open);
        assert_eq!(told(&a..&z), half_open);
        assert_eq!(told(&a[..]..&z[..]), half_open);
        assert_eq!(told(*b"a"..*b"z"), half_open);
        assert_eq!(told(slices.0.clone()..slices.1.clone()), half_open);
        assert_eq!(told(&("a".."z")), half_open);
        assert_eq!(told("a"..="z"), (Included(a.clone()), Included(z.clone())));
        assert_eq!(told(&a..), (Included(a.clone()), Unbounded));
        assert_eq!(told(..z.clone()), (Unbounded, Excluded(z.clone())));
        assert_eq!(told(..=&z), (Unbounded, Included(z.clone())));
        assert_eq!(told((Excluded(&a), Included(&z))), (Excluded(a.clone()), Included(z.clone())));
        assert_eq!(told((Excluded(&a), Unbounded)), (Excluded(a), Unbounded));
    }
}
