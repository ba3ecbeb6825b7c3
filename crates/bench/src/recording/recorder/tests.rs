//! Tests of the recorder. They set epochs by hand, so that nothing depends on time.

use super::*;
use crate::Result;
use crate::store::Records;

/// A store that has counted as often as it was asked.
#[derive(Default)]
struct Counting(AtomicU32);

impl Store for Counting {
    fn engine(&self) -> &str {
        "counting"
    }

    fn profile(&self) -> &str {
        "default"
    }

    fn get(&self, _: &[u8], _: &mut Vec<u8>) -> Result<bool> {
        Ok(false)
    }

    fn put(&self, _: &[u8], _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn scan(&self, _: &[u8], _: usize, _: &mut Records) -> Result<()> {
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> Counters {
        let asked = u64::from(self.0.fetch_add(1, Ordering::Relaxed));
        Counters { syncs: ByCause::from([("wal", asked)]), space_bytes: asked, ..Counters::default() }
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

const KINDS: [&str; 2] = ["read", "update"];

/// Begins epoch `epoch` as a tick does.
fn turn(recorder: &mut Recorder, epoch: u32) {
    recorder.epoch.store(epoch, Ordering::Relaxed);
    recorder.look(epoch);
    recorder.collect();
}

fn operations(recording: &Recording) -> Vec<u64> {
    recording.intervals.iter().map(|interval| interval.operations).collect()
}

#[test]
fn operations_count_where_they_ended_and_sum_up() {
    let store = Counting::default();
    let mut recorder = Recorder::start(&store, KINDS);
    let (mut fast, mut slow) = (recorder.probe(), recorder.probe());
    let micros = Duration::from_micros;
    fast.record(0, micros(10));
    slow.record(1, micros(50));
    turn(&mut recorder, 1);
    fast.record(0, micros(20));
    fast.record(0, micros(30));
    turn(&mut recorder, 2);
    // Ended in the third interval, after two in which its thread was silent.
    slow.record(1, micros(250));
    drop((fast, slow));
    let (recording, summaries) = recorder.finish();
    assert_eq!(operations(&recording), [2, 2, 1]);
    assert_eq!(recording.interval_s, 0.1);
    assert_eq!(recording.intervals[1].latency_us["read"].count, 2);
    assert!((recording.intervals[2].latency_us["update"].max / 250.0 - 1.0).abs() < 0.002);
    assert_eq!((summaries["read"].count, summaries["update"].count), (3, 2));
    let curve = &recording.latency_curves_us["read"].0;
    assert!(curve.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1), "{curve:?}");
    assert_eq!(curve.last().map(|point| point.0), Some(1.0));
}

#[test]
fn counters_are_differences_and_sizes_stand_at_the_end() {
    let store = Counting::default();
    let mut recorder = Recorder::start(&store, KINDS);
    turn(&mut recorder, 1);
    let (recording, _) = recorder.finish();
    let syncs: Vec<u64> = recording.intervals.iter().map(|interval| interval.syncs["wal"]).collect();
    let space: Vec<u64> = recording.intervals.iter().map(|interval| interval.space_bytes).collect();
    assert_eq!((syncs, space), (vec![1, 1], vec![1, 2]));
}

#[test]
fn long_phases_are_told_in_seconds() {
    let store = Counting::default();
    let mut recorder = Recorder::start(&store, KINDS);
    let mut probe = recorder.probe();
    for epoch in (1..=FINE_END).chain([FINE_END + 10, FINE_END + 20]) {
        probe.record(0, Duration::from_micros(1));
        turn(&mut recorder, epoch);
    }
    probe.record(0, Duration::from_micros(1));
    drop(probe);
    let (recording, _) = recorder.finish();
    assert_eq!(recording.interval_s, 1.0);
    let coarse = (FINE_END / FINE_PER_COARSE) as usize;
    let expected: Vec<u64> = std::iter::repeat_n(10, coarse).chain([1, 1, 1]).collect();
    assert_eq!(operations(&recording), expected);
}

#[test]
fn work_is_sampled_until_it_is_done() {
    let store = Counting::default();
    let mut recorder = Recorder::start(&store, KINDS);
    assert_eq!(recorder.sampling(|| 7), 7);
    let (recording, _) = recorder.finish();
    assert!(!recording.intervals.is_empty() && operations(&recording).iter().all(|&n| n == 0));
}

#[test]
fn recordings_come_back_from_json_a_line_an_interval() {
    let store = Counting::default();
    let mut recorder = Recorder::start(&store, KINDS);
    let mut probe = recorder.probe();
    probe.record(1, Duration::from_micros(3));
    turn(&mut recorder, 1);
    drop(probe);
    let (recording, _) = recorder.finish();
    let json = serde_json::to_string_pretty(&recording).unwrap();
    let lines = json.lines().filter(|line| line.contains("\"start_s\"")).count();
    assert_eq!(lines, recording.intervals.len());
    let back: Recording = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string_pretty(&back).unwrap(), json);
    assert!(serde_json::to_value(&recording).unwrap()["intervals"].is_array());
}

#[test]
fn by_the_second_the_store_is_looked_at_no_more_often() {
    let store = Counting::default();
    let mut recorder = Recorder::start(&store, []).by_the_second();
    assert!(recorder.until_tick() > FINE * (FINE_PER_COARSE - 1));
    for epoch in [10, 20] {
        turn(&mut recorder, epoch);
    }
    let (recording, _) = recorder.finish();
    assert_eq!(recording.interval_s, 1.0);
    let spaces: Vec<u64> = recording.intervals.iter().map(|interval| interval.space_bytes).collect();
    // Looks at the ends of two whole intervals and of the last one; the first look of all was at the beginning.
    assert_eq!(spaces, [1, 2, 3]);
}
