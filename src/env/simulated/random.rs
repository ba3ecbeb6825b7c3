//! A small seeded generator (SplitMix64), so that every choice of a simulation follows from its seed.

/// A sequence of numbers that its seed determines.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero. The bias of the remainder is far below what a test can see.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True `percent` times in a hundred.
    pub(super) fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < usize::from(percent)
    }

    pub(super) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}
