//! The sustained capacity of a mix: what a closed loop does once the store keeps up with itself.
//!
//! The first seconds promise too much: memtables and level 0 take what compactions have yet to merge. So the loop runs
//! in blocks until two halves of the last ones agree: in rate, in write amplification, and in what the store has put off.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::course::{Course, Recorded};
use super::window::WINDOW;
use super::{Settings, Stage};
use crate::Result;

/// Blocks of a half.
const HALF: usize = 3;

/// Longest block.
const BLOCK_MAX: Duration = Duration::from_secs(10);

/// Blocks that fit into the longest time, at least, so that a short one has two halves, too.
const BLOCKS_MIN: u32 = 8;

/// Rates of both halves differ by no more.
const RATE_TOLERANCE: f64 = 0.1;

/// Write amplification of both halves differs by no more.
const AMPLIFICATION_TOLERANCE: f64 = 0.15;

/// What is put off grows by no more than this share of itself, or of [`PUT_OFF_SLACK`].
const PUT_OFF_TOLERANCE: f64 = 0.1;

/// What is put off goes up and down by about a memtable, and by what a compaction holds.
const PUT_OFF_SLACK: f64 = (256_u64 << 20) as f64;

/// Some seconds of a closed loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Its length.
    pub seconds: f64,
    /// Operations that ended.
    pub operations: u64,
    /// Bytes of keys and values that were put.
    pub user_bytes: u64,
    /// Bytes that the process wrote.
    pub written_bytes: u64,
    /// At its end: bytes of level 0 and of the debt of compactions, or of disk space where the engine does not tell.
    pub put_off_bytes: u64,
}

/// The sustained capacity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Operations per second of the last blocks, or as given.
    pub ops_per_s: f64,
    /// Whether it was given.
    pub given: bool,
    /// Whether the loop became steady before its time was up.
    pub steady: bool,
    /// Bytes written per byte put in the last blocks; none where nothing was put.
    pub write_amplification: Option<f64>,
    /// The course.
    pub blocks: Vec<Block>,
}

impl Block {
    fn of(recorded: &Recorded) -> Self {
        let windows = &recorded.windows;
        let sum = |part: fn(&super::window::Window) -> u64| windows.iter().map(part).sum();
        let last = windows.last();
        let inside = last.and_then(|window| window.inside);
        let space = last.map_or(0, |window| window.space_bytes);
        Self {
            seconds: windows.iter().map(|window| window.seconds).sum(),
            operations: sum(|window| window.completed()),
            user_bytes: sum(|window| window.user_bytes),
            written_bytes: sum(|window| window.written_bytes),
            put_off_bytes: inside.map_or(space, |inside| inside.level0_bytes + inside.debt_bytes),
        }
    }
}

/// Runs the closed loop of `course` until it is steady or the time is up; what of its answers was wrong.
pub fn find(course: &Course, settings: &Settings, stage: &mut Stage) -> Result<(Capacity, u64)> {
    let longest = Duration::from_secs_f64(settings.capacity_max_s);
    let windows = (longest.min(BLOCK_MAX * BLOCKS_MIN) / BLOCKS_MIN).as_nanos() / WINDOW.as_nanos();
    let block_time = WINDOW * windows.max(1) as u32;
    let (mut blocks, mut wrong): (Vec<Block>, u64) = (Vec::new(), 0);
    let seconds = |blocks: &[Block]| blocks.iter().map(|block| block.seconds).sum::<f64>();
    let steady = loop {
        let phase = course.phase + blocks.len() as u64;
        let recorded = Course { time: block_time, phase, ..*course }.run()?;
        wrong += recorded.outcome.wrong;
        blocks.push(Block::of(&recorded));
        let done = seconds(&blocks);
        stage(&format!("capacity: {:.0} operations/s after {done:.0} s", rate(&blocks[blocks.len() - 1..])));
        if is_steady(&blocks) && done >= settings.capacity_min_s {
            break true;
        }
        if done + block_time.as_secs_f64() > settings.capacity_max_s && blocks.len() >= 2 {
            break false;
        }
    };
    let last = &blocks[blocks.len().saturating_sub(2 * HALF)..];
    let capacity = Capacity {
        ops_per_s: rate(last),
        given: false,
        steady,
        write_amplification: amplification(last),
        blocks: blocks.clone(),
    };
    Ok((capacity, wrong))
}

fn rate(blocks: &[Block]) -> f64 {
    let operations: u64 = blocks.iter().map(|block| block.operations).sum();
    operations as f64 / blocks.iter().map(|block| block.seconds).sum::<f64>().max(f64::MIN_POSITIVE)
}

fn amplification(blocks: &[Block]) -> Option<f64> {
    let put: u64 = blocks.iter().map(|block| block.user_bytes).sum();
    let written: u64 = blocks.iter().map(|block| block.written_bytes).sum();
    (put > 0).then(|| written as f64 / put as f64)
}

/// Whether the two halves of the last blocks agree.
pub fn is_steady(blocks: &[Block]) -> bool {
    let Some(first) = blocks.len().checked_sub(2 * HALF) else { return false };
    let (earlier, later) = blocks[first..].split_at(HALF);
    let close = |a: f64, b: f64, tolerance: f64| (b - a).abs() <= tolerance * a.max(b);
    let put_off =
        |half: &[Block]| half.iter().map(|block| block.put_off_bytes as f64).sum::<f64>() / half.len() as f64;
    let growth = put_off(later) - put_off(earlier);
    let amplified = match (amplification(earlier), amplification(later)) {
        (Some(a), Some(b)) => close(a, b, AMPLIFICATION_TOLERANCE),
        _ => true,
    };
    close(rate(earlier), rate(later), RATE_TOLERANCE)
        && amplified
        && growth <= PUT_OFF_TOLERANCE * put_off(earlier).max(PUT_OFF_SLACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(operations: u64, amplification: u64, put_off_mb: u64) -> Block {
        Block {
            seconds: 10.0,
            operations,
            user_bytes: 1 << 30,
            written_bytes: amplification << 30,
            put_off_bytes: put_off_mb << 20,
        }
    }

    #[test]
    fn a_store_that_keeps_up_is_steady() {
        assert!(is_steady(&[block(1000, 5, 300); 6]));
        let sawtooth: Vec<Block> = (0..6).map(|at| block(1000 + at % 2 * 90, 5, 300 + at % 3 * 20)).collect();
        assert!(is_steady(&sawtooth));
    }

    #[test]
    fn what_falls_or_grows_is_not() {
        assert!(!is_steady(&[block(1000, 5, 300); 5]), "too short to tell");
        let falling: Vec<Block> = (0..6).map(|at| block(2000 - at * 100, 5, 300)).collect();
        assert!(!is_steady(&falling));
        let amplified: Vec<Block> = (0..6).map(|at| block(1000, 3 + at, 300)).collect();
        assert!(!is_steady(&amplified));
        let indebted: Vec<Block> = (0..6).map(|at| block(1000, 5, 300 + at * 200)).collect();
        assert!(!is_steady(&indebted));
        let repaid: Vec<Block> = (0..6).map(|at| block(1000, 5, 2000 - at * 300)).collect();
        assert!(is_steady(&repaid), "a debt that is repaid is no promise that is broken");
    }

    #[test]
    fn only_the_last_blocks_count() {
        let mut blocks: Vec<Block> = (0..4).map(|at| block(9000 - at * 2000, 1, at * 500)).collect();
        blocks.extend(vec![block(1000, 5, 1500); 6]);
        assert!(is_steady(&blocks));
        assert_eq!(rate(&blocks[4..]), 100.0);
        assert_eq!(amplification(&blocks[4..]), Some(5.0));
    }
}
