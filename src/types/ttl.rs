//! Time to live: when values that expire were written, and how long they live.

use std::num::NonZeroU32;

/// The times at which the oldest and the newest of some values were written, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Timestamps {
    /// No value was written earlier.
    pub oldest: u32,
    /// No value was written later.
    pub newest: u32,
}

impl Timestamps {
    /// The timestamps of one value.
    #[must_use]
    pub fn at(second: u32) -> Self {
        Self { oldest: second, newest: second }
    }

    /// `timestamps`, if there are any, extended by one more value.
    #[must_use]
    pub fn with(timestamps: Option<Self>, second: u32) -> Self {
        timestamps.map_or(Self::at(second), |timestamps| timestamps.hull(Self::at(second)))
    }

    /// The timestamps of the values of both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { oldest: self.oldest.min(other.oldest), newest: self.newest.max(other.newest) }
    }
}

/// The time to live of a keyspace's values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ttl {
    /// Seconds from a value's write to its expiry.
    pub seconds: NonZeroU32,
    /// In seconds since 1970: values written before it have expired, whatever `seconds` says. They had expired when
    /// the time to live was last changed, and some of them may be dropped already.
    pub alive_from: u32,
}

impl Ttl {
    /// A time to live of this many seconds; `None` for 0, which means for ever.
    #[must_use]
    pub fn new(seconds: u32) -> Option<Self> {
        NonZeroU32::new(seconds).map(|seconds| Self { seconds, alive_from: 0 })
    }

    /// Values that were written in this second or before have expired at `now`, in seconds since 1970; `None` if no value has.
    #[must_use]
    pub fn expired_upto(self, now: u64) -> Option<u64> {
        let before = u64::from(self.alive_from).checked_sub(1);
        now.checked_sub(self.seconds.get().into()).max(before)
    }

    /// Changes the time to live to `seconds` at `now`: values that have expired by then stay expired.
    #[must_use]
    pub fn altered(self, seconds: NonZeroU32, now: u64) -> Self {
        let alive_from = self.expired_upto(now).map_or(0, |upto| upto + 1);
        Self { seconds, alive_from: u32::try_from(alive_from).unwrap_or(u32::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_expired_stays_so_however_the_time_is_altered() {
        let seconds = |seconds| NonZeroU32::new(seconds).unwrap_or(NonZeroU32::MIN);
        let ttl = Ttl::new(100).unwrap();
        assert_eq!([99, 100, 150].map(|now| ttl.expired_upto(now)), [None, Some(0), Some(50)]);
        let longer = ttl.altered(seconds(500), 150);
        assert_eq!([150, 550, 551].map(|now| longer.expired_upto(now)), [Some(50), Some(50), Some(51)]);
        let shorter = longer.altered(seconds(10), 551);
        assert_eq!([551, 560, 570].map(|now| shorter.expired_upto(now)), [Some(541), Some(550), Some(560)]);
        assert_eq!(shorter.altered(seconds(10), 570).expired_upto(0), Some(560), "a clock that goes back");
        assert_eq!(ttl.altered(seconds(9), 7).alive_from, 0);
        assert_eq!(
            ttl.altered(seconds(1), u64::from(u32::MAX)).expired_upto(0),
            Some(u64::from(u32::MAX) - 100)
        );
    }
}
