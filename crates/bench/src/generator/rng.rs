//! The pseudo-random source of every generator: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
//!
//! It is counter based, so a stream follows from its seed, and fast enough to run inside the measured loop.

/// The increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finalizer of SplitMix64: a bijection of the 64-bit integers in which every input bit reaches every output bit.
#[must_use]
pub const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A deterministic stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The stream that `seed` names.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Stream number `stream` of `seed`, unrelated to the other streams: one per thread and phase.
    #[must_use]
    pub const fn stream(seed: u64, stream: u64) -> Self {
        Self::new(mix(mix(seed) ^ stream))
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        let out = mix(self.state);
        self.state = self.state.wrapping_add(GAMMA);
        out
    }

    /// The next number in [0, 1), in steps of 2^-53.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// The next number in [0, bound), by Lemire's multiplication; `bound` of 0 gives 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_of_seed_zero_is_the_published_one() {
        let mut rng = Rng::new(0);
        assert_eq!(rng.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(rng.next_u64(), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(rng.next_u64(), 0x06C4_5D18_8009_454F);
    }

    #[test]
    fn streams_of_one_seed_differ() {
        assert_ne!(Rng::stream(7, 0).next_u64(), Rng::stream(7, 1).next_u64());
        assert_eq!(Rng::stream(7, 1).next_u64(), Rng::stream(7, 1).next_u64());
    }
}
