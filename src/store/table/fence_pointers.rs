//! Fence pointers: a sorted array of numbers that is searched with few cache misses.
//!
//! It is a tree of nodes of eight numbers, a cache line each. The lowest level is the array itself. Each level above
//! holds the last number of every node below, up to a single root. So a search touches one cache line a level: three
//! for 512 numbers, where binary search touches six.

/// Numbers in a node: 64 bytes.
const FAN: usize = 8;

/// Most levels; enough for 2^33 numbers.
const LEVELS_MAX: usize = 11;

/// Numbers in ascending order.
#[derive(Debug)]
pub(crate) struct FencePointers {
    /// Nodes level by level, the root first. Unused places hold the largest number.
    nodes: Box<[Node]>,
    /// Index of each level's first node, the lowest level first.
    starts: [u32; LEVELS_MAX],
    levels: usize,
    len: usize,
}

/// The prefix that all index keys of a table share, in the memory of whoever has it: a search needs no look at the index for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexPrefix {
    /// Of the prefix; more than there are bytes if it is longer than that.
    length: u8,
    bytes: [u8; Self::BYTES],
}

impl IndexPrefix {
    const BYTES: usize = 23;

    pub(crate) fn of(prefix: &[u8]) -> Self {
        let mut bytes = [0; Self::BYTES];
        match bytes.get_mut(..prefix.len()) {
            Some(front) => front.copy_from_slice(prefix),
            None => return Self { length: u8::MAX, bytes },
        }
        Self { length: prefix.len() as u8, bytes }
    }

    /// The prefix, unless it is too long.
    #[inline]
    pub(crate) fn get(&self) -> Option<&[u8]> {
        self.bytes.get(..self.length.into())
    }
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node([u64; FAN]);

impl FencePointers {
    /// Builds the tree. The numbers must fit into fewer than 2^32 nodes.
    pub(crate) fn new(sorted: &[u64]) -> Self {
        let mut levels = vec![nodes_of(sorted)];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let last: Vec<u64> = below.iter().map(|Node(numbers)| numbers[FAN - 1]).collect();
            levels.push(nodes_of(&last));
        }
        let mut starts = [0; LEVELS_MAX];
        let mut start = 0;
        for (level, slot) in levels.iter().zip(&mut starts).rev() {
            *slot = start;
            start += level.len() as u32;
        }
        let count = levels.len();
        let nodes = levels.into_iter().rev().flatten().collect();
        Self { nodes, starts, levels: count, len: sorted.len() }
    }

    /// Index of the first number at or above `number`, and whether the two are equal. The length, if there is none.
    #[inline]
    pub(crate) fn lower_bound(&self, number: u64) -> (usize, bool) {
        let (mut at, mut found) = (0, u64::MAX);
        for &start in self.starts[..self.levels].iter().rev() {
            let Some(Node(numbers)) = self.nodes.get(start as usize + at) else { return (self.len, false) };
            let below = numbers.iter().map(|&other| usize::from(other < number)).sum::<usize>();
            let Some(&next) = numbers.get(below) else { return (self.len, false) };
            (at, found) = (FAN * at + below, next);
        }
        (at.min(self.len), found == number && at < self.len)
    }

    /// Bytes of memory that the nodes take.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.nodes)
    }
}

fn nodes_of(numbers: &[u64]) -> Vec<Node> {
    let node = |chunk: &[u64]| {
        let mut node = Node([u64::MAX; FAN]);
        node.0[..chunk.len()].copy_from_slice(chunk);
        node
    };
    numbers.chunks(FAN).map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_what_it_was_or_too_long() {
        for length in 0..300 {
            let prefix: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let kept = IndexPrefix::of(&prefix);
            assert_eq!(kept.get(), (length <= IndexPrefix::BYTES).then_some(&prefix[..]));
        }
    }

    #[test]
    fn finds_what_halving_finds() {
        let lengths = (0..70).chain([511, 512, 513, 4095, 4097]);
        for len in lengths {
            for (gap, last) in [(3, 0), (1, 0), (5, u64::MAX)] {
                // Each number twice; the last may be the one that fills nodes up.
                let mut sorted: Vec<u64> = (0..len).map(|n| n / 2 * gap + 1).collect();
                if let Some(end) = sorted.last_mut() {
                    *end = last.max(*end);
                }
                let fence_pointers = FencePointers::new(&sorted);
                for number in (0..len * gap / 2 + 4).chain([u64::MAX - 1, u64::MAX]) {
                    let at = sorted.partition_point(|&other| other < number);
                    let expected = (at, sorted.get(at) == Some(&number));
                    assert_eq!(fence_pointers.lower_bound(number), expected, "{number} of {len}");
                }
            }
        }
    }
}
