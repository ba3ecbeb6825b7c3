//! Tests of the recorder. They set epochs by hand, so that nothing depends on time.

use terrace::Db;
use terrace::env::Env;
use terrace::env::simulated::{SimConfig, SimEnv};
use terrace::env::sync::Mutex;

use super::*;
use crate::Result;
use crate::recording::Sample;
use crate::replay::{Course, replay};
use crate::store::{Records, TerraceStore, options};

/// A store that has counted as often as it was asked, and has these samples of its load.
#[derive(Default)]
struct Counting(AtomicU32, Mutex<Vec<(Instant, String)>>);

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

    fn load_samples(&self) -> Vec<(Instant, String)> {
        std::mem::take(&mut *self.1.lock())
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
    assert_eq!(Recorder::start(&store, []).next_tick(), Duration::from_millis(100));
    let mut recorder = Recorder::start(&store, []).by_the_second();
    for epoch in [10, 20] {
        assert_eq!(recorder.next_tick(), Duration::from_secs(u64::from(epoch) / 10));
        turn(&mut recorder, epoch);
    }
    let (recording, _) = recorder.finish();
    assert_eq!(recording.interval_s, 1.0);
    let spaces: Vec<u64> = recording.intervals.iter().map(|interval| interval.space_bytes).collect();
    // Looks at the ends of two whole intervals and of the last one; a look at each of two beginnings came before.
    assert_eq!(spaces, [2, 3, 4]);
}

#[test]
fn samples_of_the_load_have_the_time_since_the_phase_began_and_none_is_older() {
    let store = Counting::default();
    let sampled = |at: Instant, load: &str| store.1.lock().push((at, load.to_owned()));
    sampled(Instant::now(), "period=1");
    let recorder = Recorder::start(&store, KINDS);
    let after = |ms| recorder.started() + Duration::from_millis(ms);
    // Of before, though it comes only now.
    sampled(recorder.started() - Duration::from_millis(1), "period=2");
    sampled(after(20), "period=3");
    sampled(after(1500), "period=4");
    let (recording, _) = recorder.finish();
    let expected = [(0.02, "period=3"), (1.5, "period=4")];
    assert_eq!(recording.samples, expected.map(|(at_s, load)| Sample { at_s, load: load.to_owned() }));
    let back: Recording = serde_json::from_str(&serde_json::to_string(&recording).unwrap()).unwrap();
    assert_eq!(back.samples, recording.samples);
    assert_eq!(Recorder::start(&store, KINDS).finish().0.samples, []);
}

/// From the store's sampler by its listener to the recording, on a machine whose threads take turns.
#[test]
fn what_a_store_says_of_its_load_is_recorded_and_can_be_replayed() {
    const PROFILE: &str = "dlc-full:interval_ms=20";
    SimEnv::run(SimConfig::default(), |env| {
        let shared: Arc<dyn Env> = env.clone();
        let store = TerraceStore::build(Db::builder("/db").env(shared), options(PROFILE).unwrap()).unwrap();
        let recorder = Recorder::start(&store, KINDS);
        for n in 0..20_u8 {
            store.put(&[n], &[7; 100]).unwrap();
            // Who flushes wakes the sampler.
            store.db().flush().unwrap();
            env.sleep(Duration::from_millis(25));
        }
        let samples = recorder.finish().0.samples;
        Box::new(store).close().unwrap();
        // No more are kept than come in the time that passes outside.
        assert!(!samples.is_empty());
        let course = Course { name: "a".to_owned(), profile: PROFILE.to_owned(), samples };
        let replayed = replay(&course, None).unwrap();
        assert!(replayed.verdicts.len() == course.samples.len());
        assert!(replayed.verdicts.iter().all(|(_, verdict)| !verdict.jobs.is_empty()), "{replayed:?}");
    });
}
