//! The properties of a table: enough to rebuild its manifest record without the manifest.

use std::sync::Arc;

use crate::format::coding::{Decoder, put_prefixed, put_varint};
use crate::format::edit::{NAME_BYTES_MAX, TableRecord};
use crate::format::{Malformed, holds};
use crate::types::{
    BOUND_BYTES_MAX, Epoch, Holds, KeyRange, KeyspaceId, LEVELS, Seq, Timestamps, Ttl, UpperBound,
};

/// Payload of a table's properties block.
///
/// A list of (tag varint, length varint, value), tags ascending. Numbers are varints, keys are bytes. Unknown tags are
/// skipped, the known ones are all required but 14 to 16, which tables have whose values expire, and 17 to 19.
///
/// ```text
/// TAG FIELD            TAG FIELD             TAG FIELD             TAG FIELD
///  1  keyspace          4  entries            8  raw key bytes     11  range tombstones
///  2  level             5  tombstones         9  raw value bytes   12  first key
///  3  epoch             6  min seq           10  data blocks       13  bound behind the last key; empty: none
///                       7  max seq
/// 14  second in which the oldest of the values was written, since 1970
/// 15  the same of the newest
/// 16  seconds for which values live
/// 17  name of the keyspace
/// 18  second before which values had expired already when they were last given another time to live; left out if they never were
/// 19  what it holds for readers at numbers of the past alone ([`holds`]); left out if nothing
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Properties {
    /// Keyspace that the table belongs to.
    pub keyspace: KeyspaceId,
    /// Level for which it was written.
    pub level: u8,
    /// Recency of the run for which it was written.
    pub epoch: Epoch,
    /// Number of entries, tombstones included.
    pub entries: u64,
    /// Number of tombstones among them.
    pub tombstones: u64,
    /// Smallest sequence number of an entry or range tombstone.
    pub min_seq: Seq,
    /// Largest sequence number of an entry or range tombstone.
    pub max_seq: Seq,
    /// Lengths of all keys together, in bytes.
    pub raw_key_bytes: u64,
    /// Lengths of all values together, in bytes.
    pub raw_value_bytes: u64,
    /// Number of data blocks.
    pub data_blocks: u64,
    /// Number of range tombstones.
    pub range_tombstones: u64,
    /// The range of the keys of entries and range tombstones.
    pub range: KeyRange,
    /// When its values that expire were written.
    pub timestamps: Option<Timestamps>,
    /// Time to live of its values when the table was written. If set, each stored value ends with the second of its
    /// write.
    pub ttl: Option<Ttl>,
    /// Name of the keyspace, for a repair without the manifest; 1 to 255 bytes.
    pub name: Option<Arc<str>>,
    /// What of it was kept only for readers at past sequence numbers when it was written.
    pub holds: Holds,
}

const NUMBERS: usize = 11;
const START: u64 = 12;
const END: u64 = 13;
const OLDEST: u64 = 14;
const TTL: u64 = 16;
const NAME: u64 = 17;
const ALIVE_FROM: u64 = 18;
const HOLDS: u64 = 19;

/// The timestamps, if both seconds are there; an error if only one is.
fn timestamps(oldest: Option<u32>, newest: Option<u32>) -> Result<Option<Timestamps>, Malformed> {
    match (oldest, newest) {
        (Some(oldest), Some(newest)) => Ok(Some(Timestamps { oldest, newest })),
        (None, None) => Ok(None),
        _ => Err(Malformed::new(0, "property missing")),
    }
}

impl Properties {
    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut number = Vec::new();
        for (tag, value) in (1..).zip(self.numbers()) {
            number.clear();
            put_varint(&mut number, value);
            put_varint(out, tag);
            put_prefixed(out, &number);
        }
        for (tag, key) in [(START, &self.range.start[..]), (END, self.range.end.as_bytes())] {
            put_varint(out, tag);
            put_prefixed(out, key);
        }
        let timestamps = [
            self.timestamps.map(|timestamps| timestamps.oldest),
            self.timestamps.map(|timestamps| timestamps.newest),
        ];
        let seconds = timestamps.into_iter().chain([self.ttl.map(|ttl| ttl.seconds.get())]);
        let mut put_second = |out: &mut Vec<u8>, tag, value: u32| {
            number.clear();
            put_varint(&mut number, value.into());
            put_varint(out, tag);
            put_prefixed(out, &number);
        };
        for (tag, value) in (OLDEST..).zip(seconds) {
            if let Some(value) = value {
                put_second(out, tag, value);
            }
        }
        if let Some(name) = &self.name {
            put_varint(out, NAME);
            put_prefixed(out, name.as_bytes());
        }
        if let Some(ttl) = self.ttl.filter(|ttl| ttl.alive_from > 0) {
            put_second(out, ALIVE_FROM, ttl.alive_from);
        }
        if self.holds != Holds::default() {
            let mut groups = Vec::new();
            holds::encode(&self.holds, &mut groups);
            put_varint(out, HOLDS);
            put_prefixed(out, &groups);
        }
    }

    /// The numbers in the order of their tags, which begin at 1.
    fn numbers(&self) -> [u64; NUMBERS] {
        [
            self.keyspace.0.into(),
            self.level.into(),
            self.epoch.0,
            self.entries,
            self.tombstones,
            self.min_seq.0,
            self.max_seq.0,
            self.raw_key_bytes,
            self.raw_value_bytes,
            self.data_blocks,
            self.range_tombstones,
        ]
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When a property is missing, doubled, out of range, or contradicts another.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new(bytes);
        let mut numbers = [None; NUMBERS];
        let mut keys = [None; 2];
        let mut seconds = [None; 4];
        let mut name = None;
        let mut held = Holds::default();
        let mut previous = 0;
        while !decoder.is_empty() {
            let start = decoder.offset();
            let tag = decoder.varint()?;
            if tag <= previous {
                return Err(Malformed::new(start, "property tags do not ascend"));
            }
            previous = tag;
            let mut value = decoder.section()?;
            match tag {
                1..START => {
                    numbers[tag as usize - 1] = Some(value.varint()?);
                    value.finish()?;
                }
                START | END => keys[(tag - START) as usize] = Some(value.bytes(value.remaining())?),
                OLDEST..=TTL => {
                    seconds[(tag - OLDEST) as usize] = Some(value.varint()?);
                    value.finish()?;
                }
                ALIVE_FROM => {
                    seconds[3] = Some(value.varint()?);
                    value.finish()?;
                }
                NAME => name = Some(value.bytes(value.remaining())?),
                HOLDS => held = holds::read(&mut value)?,
                _ => {}
            }
        }
        let contradiction = |what| Malformed::new(0, what);
        let missing = || contradiction("property missing");
        let number = |tag: usize| numbers[tag - 1].ok_or_else(missing);
        let out_of_range = |_| contradiction("property out of range");
        let key = |index: usize| keys[index].ok_or_else(missing);
        let second = |at: usize| seconds[at].map(u32::try_from).transpose().map_err(out_of_range);
        let timestamps = timestamps(second(0)?, second(1)?)?;
        let (ttl, alive_from) = (second(2)?.and_then(Ttl::new), second(3)?);
        let name =
            name.map(|name| std::str::from_utf8(name).map_err(|_| contradiction("property out of range")));
        let properties = Self {
            keyspace: KeyspaceId(number(1)?.try_into().map_err(out_of_range)?),
            level: number(2)?.try_into().map_err(out_of_range)?,
            epoch: Epoch(number(3)?),
            entries: number(4)?,
            tombstones: number(5)?,
            min_seq: Seq(number(6)?),
            max_seq: Seq(number(7)?),
            raw_key_bytes: number(8)?,
            raw_value_bytes: number(9)?,
            data_blocks: number(10)?,
            range_tombstones: number(11)?,
            range: KeyRange { start: key(0)?.into(), end: UpperBound::from_bytes(key(1)?) },
            timestamps,
            ttl: ttl.map(|ttl| Ttl { alive_from: alive_from.unwrap_or(0), ..ttl }),
            name: name.transpose()?.map(Arc::from),
            holds: held,
        };
        if properties.consistent() {
            Ok(properties)
        } else {
            Err(contradiction("properties contradict each other"))
        }
    }

    /// Whether they agree with `record`. An ingested table had no sequence numbers when it was written.
    #[must_use]
    pub fn tell(&self, record: &TableRecord) -> bool {
        let numbered = |seq: Seq| if seq == Seq::ZERO { record.max_seq } else { seq };
        let counts = (record.entries, record.tombstones, record.range_tombstones);
        (self.entries, self.tombstones, self.range_tombstones) == counts
            && (numbered(self.min_seq), numbered(self.max_seq)) == (record.min_seq, record.max_seq)
            && self.range == record.range
            && self.timestamps == record.timestamps
            && self.holds == record.holds
    }

    fn consistent(&self) -> bool {
        usize::from(self.level) < LEVELS
            && self.tombstones <= self.entries
            && self.holds.held().records <= self.entries.saturating_add(self.range_tombstones)
            && self.min_seq <= self.max_seq
            && self.max_seq <= Seq::MAX
            && !self.range.is_inverted()
            && self.name.as_ref().is_none_or(|name| (1..=NAME_BYTES_MAX).contains(&name.len()))
            && self
                .timestamps
                .is_none_or(|timestamps| timestamps.oldest <= timestamps.newest && self.ttl.is_some())
            && self.range.start.len().max(self.range.end.as_bytes().len()) <= BOUND_BYTES_MAX
    }
}
