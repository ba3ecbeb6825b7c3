//! No engine: all records in a sorted array in memory, which is filled once. What a processor and its memory can do.
//!
//! A lookup touches the heads of a few records in a small array, those of their neighbours in a larger one, and its record.

use std::ops::ControlFlow;
use std::sync::{Mutex, OnceLock};

use anyhow::{Result, bail, ensure};

use super::{Direction, See, SeeValue, Store};

/// A record is sampled for each so many.
const SAMPLED: usize = 16;

/// Records as they were put, until the first one is read.
#[derive(Default)]
pub struct Sorted {
    put: Mutex<Vec<Box<[u8]>>>,
    array: OnceLock<Result<Array, String>>,
}

/// Keys and values of equal lengths, one after the other, in the order of the keys.
struct Array {
    records: Vec<u8>,
    key_bytes: usize,
    record_bytes: usize,
    /// The beginning of each key, as a number of the same order.
    heads: Vec<u64>,
    /// The same of every [`SAMPLED`]th record.
    samples: Vec<u64>,
}

/// The eight bytes of `key` behind its first four, which all keys of the load generator share.
fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let behind = key.get(4..).unwrap_or_default();
    let length = behind.len().min(8);
    head[..length].copy_from_slice(&behind[..length]);
    u64::from_be_bytes(head)
}

impl Array {
    /// The array of `records`, each of which begins with a key of `key_bytes`.
    fn new(mut records: Vec<Box<[u8]>>, key_bytes: usize) -> Result<Self, String> {
        records.sort_unstable();
        let record_bytes = records.first().map_or(0, |record| record.len());
        let are_alike = records.iter().all(|record| {
            record.len() == record_bytes && record.get(..4) == records.first().and_then(|first| first.get(..4))
        });
        let are_ascending = records.windows(2).all(|pair| pair[0][..key_bytes] < pair[1][..key_bytes]);
        if !are_alike || !are_ascending {
            return Err("records of a sorted array are of one length, begin alike and are put once".to_owned());
        }
        let heads: Vec<u64> = records.iter().map(|record| head(&record[..key_bytes])).collect();
        let samples = heads.iter().copied().step_by(SAMPLED).collect();
        Ok(Self { records: records.concat(), key_bytes, record_bytes, heads, samples })
    }

    fn record(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let start = at.checked_mul(self.record_bytes)?;
        Some(self.records.get(start..start + self.record_bytes)?.split_at(self.key_bytes))
    }

    /// The first record at or behind `key`.
    fn lower_bound(&self, key: &[u8]) -> usize {
        let head = head(key);
        let sample = self.samples.partition_point(|&other| other < head).saturating_sub(1);
        let near = &self.heads[(sample * SAMPLED).min(self.heads.len())..];
        // Of equal heads the first may lie in front of the sample that is equal, never in front of the one before.
        let first = sample * SAMPLED + near.iter().take_while(|&&other| other < head).count();
        let before = |at: &usize| self.record(*at).is_some_and(|(other, _)| other < key);
        (first..).find(|at| !before(at)).unwrap_or(first)
    }
}

impl Sorted {
    fn array(&self) -> Result<&Array> {
        let array = self.array.get_or_init(|| {
            let put = std::mem::take(&mut *self.put.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
            Array::new(put, crate::records::KEY_BYTES)
        });
        array.as_ref().map_err(|error| anyhow::anyhow!("{error}"))
    }
}

impl Store for Sorted {
    fn get(&self, key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        let array = self.array()?;
        let found = array.record(array.lower_bound(key)).filter(|(other, _)| *other == key);
        Ok(found.map(|(_, value)| see(value)).is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_batch(&[(key, value)])
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        ensure!(self.array.get().is_none(), "a sorted array is filled before it is read");
        let mut put = self.put.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        put.extend(records.iter().map(|(key, value)| [*key, *value].concat().into_boxed_slice()));
        Ok(())
    }

    fn delete(&self, _key: &[u8]) -> Result<()> {
        bail!("a sorted array does not change")
    }

    fn scan(&self, from: &[u8], direction: Direction, see: See<'_>) -> Result<()> {
        let array = self.array()?;
        let first = array.lower_bound(from);
        let mut show = |at: usize| match array.record(at) {
            Some((key, value)) => see(key, value),
            None => ControlFlow::Break(()),
        };
        let _ = match direction {
            Direction::Forward => (first..array.heads.len()).try_for_each(&mut show),
            Direction::Backward => {
                let is_there = array.record(first).is_some_and(|(key, _)| key == from);
                (0..first + usize::from(is_there)).rev().try_for_each(&mut show)
            }
        };
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
