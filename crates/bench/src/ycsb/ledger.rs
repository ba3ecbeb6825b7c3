//! The ledger: what the store must hold. For every record it has the versions that a read may see.
//!
//! A writer takes the next version of a record before it writes and acknowledges it afterwards; a reader asks for the
//! oldest version still possible before it reads and for the newest one begun after it has read. Whatever it saw must
//! lie between the two.
//!
//! Writes of one record that overlap in time form a group, and the store may apply them in any order: once one of the
//! group is acknowledged, every version before the group is gone for good, but any of the group may be the last.
//!
//! State of a record, one word that changes atomically:
//!
//! ```text
//! BITS    FIELD
//! 32..64  started: newest version begun; 0 when there is none
//! 20..32  floor_back: how far below `started` the oldest possible version lies
//!  8..20  group_back: how far below `started` the open group began
//!  0..8   in_flight: writes begun and not acknowledged
//! ```
//!
//! Distances stop at 4095, which then means "version 1": the check gets laxer, never wrong.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::generator::Sequential;

/// Longest distance that 12 bits hold.
const BACK_MAX: u64 = (1 << 12) - 1;

/// Most load threads, so that `in_flight` cannot overflow.
pub const THREADS_MAX: usize = 255;

const CHUNK_BITS: u32 = 16;
const CHUNK_RECORDS: usize = 1 << CHUNK_BITS;
const CHUNKS: usize = 1 << 16;

/// Most records a ledger can follow.
pub const RECORDS_MAX: u64 = (CHUNKS * CHUNK_RECORDS) as u64;

type Chunk = Box<[AtomicU64]>;

/// The records `first..` and their versions, shared by all load threads.
pub struct Ledger {
    first: u64,
    next: Sequential,
    /// End of the records that are inserted and acknowledged without a gap.
    end: AtomicU64,
    logical_bytes: AtomicU64,
    chunks: Box<[OnceLock<Chunk>]>,
}

impl Ledger {
    /// An empty store whose first record will be `first`.
    #[must_use]
    pub fn new(first: u64) -> Self {
        let chunks = (0..CHUNKS).map(|_| OnceLock::new()).collect();
        let (end, logical_bytes) = (AtomicU64::new(first), AtomicU64::new(0));
        Self { first, next: Sequential::new(first), end, logical_bytes, chunks }
    }

    /// Takes over a store that holds `versions` of the records from `first` on, `logical_bytes` in all.
    #[must_use]
    pub fn adopt(first: u64, versions: &[u32], logical_bytes: u64) -> Self {
        let mut ledger = Self::new(first);
        for (record, &version) in (first..).zip(versions) {
            ledger
                .slot(record)
                .store(State { started: version.into(), ..State::default() }.pack(), Ordering::Relaxed);
        }
        let end = first + versions.len() as u64;
        (ledger.end, ledger.next) = (AtomicU64::new(end), Sequential::new(end));
        ledger.logical_bytes = AtomicU64::new(logical_bytes);
        ledger
    }

    /// The records that a read must find.
    #[must_use]
    pub fn records(&self) -> std::ops::Range<u64> {
        self.first..self.end.load(Ordering::Acquire)
    }

    /// Bytes of keys and values of the records inserted.
    #[must_use]
    pub fn logical_bytes(&self) -> u64 {
        self.logical_bytes.load(Ordering::Relaxed)
    }

    /// Takes the next record to insert, below `limit`.
    pub fn next_insert(&self, limit: u64) -> Option<u64> {
        self.next.next_below(limit.min(self.first.saturating_add(RECORDS_MAX)))
    }

    /// Takes the next version of `record`; the write must follow, and [`Ledger::acknowledge`].
    pub fn begin(&self, record: u64) -> u32 {
        self.change(record, |state| {
            let back = |back: u64| (back + 1).min(BACK_MAX);
            State {
                started: state.started + 1,
                floor_back: back(state.floor_back),
                group_back: if state.in_flight == 0 { 0 } else { back(state.group_back) },
                in_flight: state.in_flight + 1,
            }
        })
        .started as u32
    }

    /// Notes that a write of `record` begun earlier has succeeded.
    pub fn acknowledge(&self, record: u64) {
        self.change(record, |state| State {
            floor_back: state.group_back,
            in_flight: state.in_flight.saturating_sub(1),
            ..state
        });
    }

    /// As [`Ledger::acknowledge`], for the insert of a record of `bytes` bytes, which readers may now expect.
    pub fn acknowledge_insert(&self, record: u64, bytes: u64) {
        self.acknowledge(record);
        self.logical_bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut end = self.end.load(Ordering::Acquire);
        while self.oldest(end) > 0 {
            match self.end.compare_exchange(end, end + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => end += 1,
                Err(now) => end = now,
            }
        }
    }

    /// The oldest version that a read which starts now may see; 0 when the record may be missing.
    #[must_use]
    pub fn oldest(&self, record: u64) -> u32 {
        let state = self.state(record);
        let oldest = if state.floor_back == BACK_MAX { 1 } else { state.started - state.floor_back };
        oldest as u32
    }

    /// The newest version that a read which ends now may have seen; 0 when the record must be missing.
    #[must_use]
    pub fn newest(&self, record: u64) -> u32 {
        self.state(record).started as u32
    }

    fn state(&self, record: u64) -> State {
        if record < self.first || record - self.first >= RECORDS_MAX {
            return State::default();
        }
        State::unpack(self.slot(record).load(Ordering::SeqCst))
    }

    fn change(&self, record: u64, next: impl Fn(State) -> State) -> State {
        let slot = self.slot(record);
        let mut word = slot.load(Ordering::SeqCst);
        loop {
            let state = next(State::unpack(word));
            match slot.compare_exchange_weak(word, state.pack(), Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return state,
                Err(now) => word = now,
            }
        }
    }

    fn slot(&self, record: u64) -> &AtomicU64 {
        let index = (record - self.first) as usize;
        let chunk = self.chunks[index >> CHUNK_BITS]
            .get_or_init(|| (0..CHUNK_RECORDS).map(|_| AtomicU64::new(0)).collect());
        &chunk[index % CHUNK_RECORDS]
    }
}

#[derive(Clone, Copy, Default)]
struct State {
    started: u64,
    floor_back: u64,
    group_back: u64,
    in_flight: u64,
}

impl State {
    fn pack(self) -> u64 {
        self.started << 32 | self.floor_back << 20 | self.group_back << 8 | self.in_flight
    }

    fn unpack(word: u64) -> Self {
        Self {
            started: word >> 32,
            floor_back: word >> 20 & BACK_MAX,
            group_back: word >> 8 & BACK_MAX,
            in_flight: word & 0xFF,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(ledger: &Ledger, record: u64) -> (u32, u32) {
        (ledger.oldest(record), ledger.newest(record))
    }

    #[test]
    fn insert_is_expected_once_it_is_acknowledged() {
        let ledger = Ledger::new(0);
        assert_eq!(ledger.next_insert(9), Some(0));
        assert_eq!(ledger.begin(0), 1);
        assert_eq!(bounds(&ledger, 0), (0, 1));
        assert_eq!(ledger.records(), 0..0);
        ledger.acknowledge_insert(0, 50);
        assert_eq!(bounds(&ledger, 0), (1, 1));
        assert_eq!(ledger.records(), 0..1);
        assert_eq!(ledger.logical_bytes(), 50);
    }

    #[test]
    fn records_end_at_the_first_gap() {
        let ledger = Ledger::new(10);
        for record in [10, 11, 12] {
            assert_eq!(ledger.next_insert(13), Some(record));
            ledger.begin(record);
        }
        assert_eq!(ledger.next_insert(13), None);
        ledger.acknowledge_insert(11, 1);
        ledger.acknowledge_insert(12, 1);
        assert_eq!(ledger.records(), 10..10);
        ledger.acknowledge_insert(10, 1);
        assert_eq!(ledger.records(), 10..13);
    }

    #[test]
    fn overlapping_writes_are_all_possible_and_earlier_ones_are_not() {
        let ledger = Ledger::adopt(0, &[7], 0);
        assert_eq!((ledger.begin(0), ledger.begin(0)), (8, 9));
        assert_eq!(bounds(&ledger, 0), (7, 9));
        ledger.acknowledge(0);
        assert_eq!(bounds(&ledger, 0), (8, 9));
        assert_eq!(ledger.begin(0), 10);
        ledger.acknowledge(0);
        ledger.acknowledge(0);
        assert_eq!(bounds(&ledger, 0), (8, 10));
        assert_eq!(ledger.begin(0), 11);
        ledger.acknowledge(0);
        assert_eq!(bounds(&ledger, 0), (11, 11));
    }

    #[test]
    fn endless_groups_only_make_the_check_laxer() {
        let ledger = Ledger::adopt(0, &[1], 0);
        ledger.begin(0);
        for _ in 0..5000 {
            ledger.begin(0);
            ledger.acknowledge(0);
        }
        assert_eq!(bounds(&ledger, 0), (1, 5002));
        ledger.acknowledge(0);
        ledger.begin(0);
        ledger.acknowledge(0);
        assert_eq!(bounds(&ledger, 0), (5003, 5003));
    }

    #[test]
    fn unknown_records_must_be_missing() {
        let ledger = Ledger::adopt(5, &[1, 1], 0);
        assert_eq!((bounds(&ledger, 4), bounds(&ledger, 7)), ((0, 0), (0, 0)));
        assert_eq!(bounds(&ledger, u64::MAX), (0, 0));
    }
}
