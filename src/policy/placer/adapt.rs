//! The moving level: how many levels the fast device takes, by how busy and how full it is.
//!
//! So SpanDB does it (Chen et al., FAST 2021, section 4.3), with limits in MB/s and GB for its own disk: 1300 and 800, 50 and 30. Here
//! they are parts of what the disk can do and of its size.

/// Above so many percent of its bandwidth the fast device gets a level less, below [`IDLE_PERCENT`] one more.
const BUSY_PERCENT: u64 = 65;
const IDLE_PERCENT: u64 = 40;

/// With less than one part in so many free, the fast device takes new tables of the first two levels alone.
const LOW_PART: u64 = 8;

/// With less than one part in so many free, it takes none.
const FULL_PART: u64 = 12;

/// The last level that a device which is not full gets, at most.
const UPTO_MAX: i8 = 4;

/// No level, because the device is busy; because it is full.
const NONE: i8 = -1;
const FULL: i8 = -2;

/// The fast device in the last second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastView {
    /// Bytes per second that were written to it.
    pub bandwidth: u64,
    /// Bytes per second that it can take.
    pub rated_bandwidth: u64,
    /// Bytes of its file system that are free.
    pub free_bytes: u64,
    /// Bytes of its file system.
    pub total_bytes: u64,
}

/// The last level whose new tables go to the fast device for the next second, if it was `upto` for the last one; below 0, none.
#[must_use]
pub fn moved_level(upto: i8, fast: FastView) -> i8 {
    let percent = u128::from(fast.bandwidth) * 100;
    let is_above = |limit: u64| percent > u128::from(fast.rated_bandwidth) * u128::from(limit);
    let moved = if is_above(BUSY_PERCENT) {
        upto.min((upto - 1).max(NONE))
    } else if is_above(IDLE_PERCENT) {
        upto
    } else {
        upto.max((upto + 1).min(UPTO_MAX))
    };
    if fast.free_bytes < fast.total_bytes / FULL_PART {
        FULL
    } else if fast.free_bytes < fast.total_bytes / LOW_PART {
        moved.min(1)
    } else {
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels after seconds in which the device was used and free by these parts of a hundred.
    fn moved(start: i8, seconds: &[(u64, u64)]) -> Vec<i8> {
        let mut upto = start;
        let second = |&(used, free): &(u64, u64)| {
            let fast = FastView {
                bandwidth: used * 4_500_000,
                rated_bandwidth: 450_000_000,
                free_bytes: free << 30,
                total_bytes: 100 << 30,
            };
            upto = moved_level(upto, fast);
            upto
        };
        seconds.iter().map(second).collect()
    }

    #[test]
    fn a_busy_device_loses_levels_one_by_one_and_an_idle_one_gets_them_back() {
        assert_eq!(moved(1, &[(66, 90); 4]), [0, -1, -1, -1]);
        assert_eq!(moved(1, &[(65, 90), (50, 90), (41, 90)]), [1, 1, 1]);
        assert_eq!(moved(-1, &[(39, 90); 7]), [0, 1, 2, 3, 4, 4, 4]);
        assert_eq!(moved(0, &[(90, 90), (30, 90), (90, 90), (90, 90), (0, 90)]), [-1, 0, -1, -1, 0]);
        assert_eq!(moved(6, &[(30, 90), (90, 90)]), [6, 5], "it may begin further down");
    }

    #[test]
    fn a_device_that_fills_up_keeps_the_first_levels_and_then_none() {
        assert_eq!(moved(4, &[(30, 13), (30, 12), (30, 12), (90, 12), (30, 12)]), [4, 1, 1, 0, 1]);
        assert_eq!(moved(1, &[(30, 8), (90, 7), (50, 20), (30, 20), (30, 20)]), [-2, -2, -2, -1, 0]);
        assert_eq!(moved(-1, &[(90, 12), (30, 7), (90, 20)]), [-1, -2, -2]);
    }
}
