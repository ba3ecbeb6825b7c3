//! The length of prefixes where a keyspace has no rule for them.
//!
//! Tables that are cut between prefixes should hold several. If prefixes are too long, each key is one, and tables are cut
//! just by size; if they are too short, one prefix fills many tables. So the shortest length is taken with which half
//! of the data lies in prefixes of at most a quarter of a table.
//!
//! A place between two prefixes is also one between two longer prefixes. So as the data grow and prefixes become longer,
//! tables that were cut before still hold whole ones.

/// Divisor: half of the data lies in prefixes of at most this part of a table.
const PREFIX_PARTS: u64 = 4;

/// The longest prefix that is tried, in bytes.
const LENGTH_MAX: u16 = 64;

/// A piece of a table: a key, and the bytes of the block that it stands for.
pub type Sample = (Vec<u8>, u64);

/// The length of prefixes for tables of `table_bytes`, over samples of several tables, each in key order. At least 1.
#[must_use]
pub fn prefix_length(tables: &[Vec<Sample>], table_bytes: u64) -> u16 {
    let longest = tables.iter().flatten().map(|(key, _)| key.len()).max().unwrap_or(1);
    let longest = u16::try_from(longest).unwrap_or(LENGTH_MAX).clamp(1, LENGTH_MAX);
    (1..longest)
        .find(|length| typical_bytes(tables, *length) <= table_bytes / PREFIX_PARTS)
        .unwrap_or(longest)
}

/// Half of the bytes lie in prefixes of this length with at most so many bytes.
fn typical_bytes(tables: &[Vec<Sample>], length: u16) -> u64 {
    let prefix = |key: &[u8]| key[..key.len().min(length.into())].to_vec();
    let groups = tables.iter().flat_map(|samples| {
        let groups = samples.chunk_by(|(one, _), (other, _)| prefix(one) == prefix(other));
        groups.map(|group| group.iter().map(|(_, bytes)| bytes).sum::<u64>())
    });
    let mut groups: Vec<u64> = groups.collect();
    groups.sort_unstable();
    let half = groups.iter().sum::<u64>() / 2;
    let mut passed = 0;
    let typical = groups.into_iter().find(|bytes| {
        passed += bytes;
        passed >= half
    });
    typical.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of 16 KiB, a sample for each KiB, over `records` numbers of eight digits in as many places.
    fn numbers(places: usize, records: u64, bytes: u64) -> Vec<Vec<Sample>> {
        let samples = bytes >> 10;
        let sample = |n: u64| (format!("user{:0places$}", n * records / samples).into_bytes(), 1 << 10);
        let samples: Vec<_> = (0..samples).map(sample).collect();
        samples.chunks(16).map(<[Sample]>::to_vec).collect()
    }

    #[test]
    fn prefixes_are_as_long_as_a_quarter_of_a_table_needs() {
        // Of a number of eight digits below 10^8: one digit more for ten times the data.
        for (bytes, digits) in [(64 << 10, 1), (640 << 10, 2), (6400 << 10, 3)] {
            let tables = numbers(8, 100_000_000, bytes);
            assert_eq!(prefix_length(&tables, 32 << 10), 4 + digits, "{bytes}");
        }
        // Zeros in front say nothing.
        assert_eq!(prefix_length(&numbers(12, 100_000_000, 640 << 10), 32 << 10), 4 + 4 + 2);
    }

    #[test]
    fn any_keys_have_a_length() {
        assert_eq!(prefix_length(&[], 1 << 20), 1);
        assert_eq!(prefix_length(&[vec![(Vec::new(), 1 << 30)]], 1 << 20), 1);
        let alike = vec![(vec![7; 300], 1 << 30), (vec![7; 300], 1 << 30)];
        assert_eq!(prefix_length(&[alike], 1 << 20), LENGTH_MAX);
        let short = vec![(vec![7], 1 << 30), (vec![7, 8], 1 << 30)];
        assert_eq!(prefix_length(&[short], 1 << 20), 2);
    }
}
