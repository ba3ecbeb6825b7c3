//! The stored form of a table's holds: what of it is kept only for readers at past sequence numbers.
//!
//! It is a list of at most eight groups, in ascending order of their first two numbers. Numbers are varints.
//!
//! ```text
//! first  the smallest sequence number at which one of the readers reads
//! more   the largest one, minus the smallest
//! count  entries and range tombstones
//! bytes  about how many of the table's bytes these take
//! ```

use super::Malformed;
use super::coding::{Decoder, put_varint};
use crate::types::{Hold, Holders, Holds, Seq};

/// Appends the stored form.
pub fn encode(holds: &Holds, out: &mut Vec<u8>) {
    for Hold { by: Holders { first, last }, records, bytes } in holds.groups() {
        for number in [first.0, last.0 - first.0, *records, *bytes] {
            put_varint(out, number);
        }
    }
}

/// Reads the stored form, which is all that is left in `decoder`.
///
/// # Errors
/// When it is cut off, or contradicts itself.
pub fn read(decoder: &mut Decoder<'_>) -> Result<Holds, Malformed> {
    let start = decoder.clone();
    let mut groups = Vec::new();
    while !decoder.is_empty() {
        let first = Seq(decoder.varint()?);
        let last = first.0.checked_add(decoder.varint()?).map(Seq).filter(|last| *last <= Seq::MAX);
        let last = last.ok_or_else(|| start.malformed("sequence number out of range"))?;
        groups.push(Hold {
            by: Holders { first, last },
            records: decoder.varint()?,
            bytes: decoder.varint()?,
        });
    }
    Holds::from_groups(groups).ok_or_else(|| start.malformed("what a table holds back contradicts itself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds() -> Holds {
        let mut holds = Holds::default();
        for (first, last) in [(300, 300), (300, 500)] {
            holds.note(Holders { first: Seq(first), last: Seq(last) }, 2, 1000);
        }
        holds
    }

    #[test]
    fn groups_come_back_as_they_were() {
        let mut bytes = Vec::new();
        encode(&holds(), &mut bytes);
        assert_eq!(bytes, [0xac, 2, 0, 2, 0xe8, 7, 0xac, 2, 0xc8, 1, 2, 0xe8, 7]);
        assert_eq!(read(&mut Decoder::new(&bytes)), Ok(holds()));
        assert_eq!(read(&mut Decoder::new(&[])), Ok(Holds::default()));
        let whole = [5, 11];
        for cut in 1..bytes.len() {
            let read = read(&mut Decoder::new(&bytes[..cut]));
            assert!(read.is_err() || cut == whole[0] + 1 && read.is_ok(), "{cut}: {read:?}");
        }
    }

    #[test]
    fn no_other_bytes_are_read() {
        let group = |first: u64, more: u64, records: u64| {
            let mut bytes = Vec::new();
            [first, more, records, 1].into_iter().for_each(|number| put_varint(&mut bytes, number));
            bytes
        };
        let refused = |bytes: &[u8]| read(&mut Decoder::new(bytes)).is_err();
        assert!(!refused(&group(1, 1, 1)));
        assert!(refused(&group(1, 1, 0)), "an empty group");
        assert!(refused(&group(Seq::MAX.0, 1, 1)) && refused(&group(1, u64::MAX, 1)), "no such numbers");
        assert!(refused(&[group(1, 1, 1), group(1, 1, 1)].concat()), "one twice");
        assert!(refused(&[group(2, 1, 1), group(1, 1, 1)].concat()), "out of order");
        assert!(refused(&(1..10).flat_map(|first| group(first, 0, 1)).collect::<Vec<_>>()), "too many");
    }
}
