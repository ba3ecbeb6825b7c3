//! Prefix rules: which part of a key is its prefix, and which ranges lie within one prefix.

use std::fmt;

use super::{KeyRange, UpperBound};

/// A rule for the prefix of a key. A key that is too short for the rule has no prefix.
///
/// No rule looks beyond the prefix that it finds. So the keys with the prefix `p` are exactly those that begin with
/// `p`, and they are adjacent in key order.
///
/// ```
/// use terrace::Prefix;
/// let fixed = Prefix::Fixed(4);
/// assert_eq!((fixed.of(b"user1"), fixed.of(b"use")), (Some(&b"user"[..]), None));
/// let delimited = Prefix::Delimited { delimiter: b'/', count: 2 };
/// assert_eq!((delimited.of(b"a/bc/d"), delimited.of(b"a/bc")), (Some(&b"a/bc/"[..]), None));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Prefix {
    /// The first bytes of the key, this many; at least 1.
    Fixed(u16),
    /// All bytes up to and including the `count`th `delimiter`.
    Delimited {
        /// The byte that ends a part of a key.
        delimiter: u8,
        /// How many such parts make a prefix; at least 1.
        count: u8,
    },
}

impl Prefix {
    /// The prefix of `key`, if it has one.
    #[must_use]
    pub fn of(self, key: &[u8]) -> Option<&[u8]> {
        let length = match self {
            Self::Fixed(bytes) => usize::from(bytes),
            Self::Delimited { delimiter, count } => {
                let mut ends = (1..).zip(key).filter_map(|(end, &byte)| (byte == delimiter).then_some(end));
                ends.nth(usize::from(count).checked_sub(1)?)?
            }
        };
        key.get(..length)
    }

    /// The prefix that all keys of `range` share, if they share one.
    #[must_use]
    pub fn of_all(self, range: &KeyRange) -> Option<&[u8]> {
        // The start is such a key; the others begin with its prefix if the range ends no later than those that do.
        self.of(&range.start).filter(|prefix| range.end <= UpperBound::after_prefix(prefix))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "fixed({bytes})"),
            Self::Delimited { delimiter, count } => {
                write!(f, "delimited('{}', {count})", delimiter.escape_ascii())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All keys of up to three of these bytes: with a key that begins with `p`, the first one behind all such keys, too.
    fn keys() -> Vec<Vec<u8>> {
        let mut keys = vec![Vec::new()];
        for at in 0.. {
            if keys[at].len() == 3 {
                break;
            }
            for byte in [253, 254, 255] {
                keys.push([&keys[at][..], &[byte]].concat());
            }
        }
        keys.sort();
        assert_eq!(keys.len(), 1 + 3 + 9 + 27);
        keys
    }

    fn rules() -> impl Iterator<Item = Prefix> {
        let delimited = |count| [253, 254, 255].map(|delimiter| Prefix::Delimited { delimiter, count });
        (1..=4).map(Prefix::Fixed).chain((1..=3).flat_map(delimited))
    }

    #[test]
    fn a_key_has_the_prefix_that_it_begins_with() {
        for rule in rules() {
            for key in keys() {
                let Some(prefix) = rule.of(&key) else { continue };
                assert!(!prefix.is_empty() && key.starts_with(prefix), "{rule} of {key:?}");
                let begin_so = keys().into_iter().filter(|other| other.starts_with(prefix));
                assert!(
                    begin_so.into_iter().all(|other| rule.of(&other) == Some(prefix)),
                    "{rule} of {key:?}"
                );
            }
        }
    }

    #[test]
    fn a_range_has_a_prefix_if_all_its_keys_have_the_same() {
        let keys = keys();
        let ends = keys.iter().flat_map(|key| [UpperBound::Excluded(key[..].into()), UpperBound::after(key)]);
        let ends: Vec<_> = ends.chain([UpperBound::Unbounded]).collect();
        let mut within_one = 0;
        for (rule, start) in rules().flat_map(|rule| keys.iter().map(move |start| (rule, start))) {
            for end in &ends {
                let range = KeyRange { start: start[..].into(), end: end.clone() };
                if range.is_inverted() {
                    continue;
                }
                let mut prefixes = keys.iter().filter(|key| range.contains(key)).map(|key| rule.of(key));
                let first = prefixes.next().expect("the start lies in its range");
                let all = first.filter(|_| prefixes.all(|prefix| prefix == first));
                assert_eq!(rule.of_all(&range), all, "{rule} of {range}");
                within_one += u32::from(all.is_some());
            }
        }
        assert!(within_one > 500, "{within_one}");
    }

    #[test]
    fn degenerate_rules_find_nothing_or_the_empty_prefix() {
        assert_eq!(Prefix::Fixed(0).of(b"a"), Some(&b""[..]));
        assert_eq!(Prefix::Delimited { delimiter: b'a', count: 0 }.of(b"a"), None);
        assert_eq!(Prefix::Fixed(9).to_string(), "fixed(9)");
        assert_eq!(Prefix::Delimited { delimiter: b'\n', count: 2 }.to_string(), r"delimited('\n', 2)");
    }
}
