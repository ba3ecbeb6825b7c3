//! Tests of the pacers in virtual time: what they put off is done in the end, whatever the load; and each keeps what it
//! promises.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{DeviceModel, ProcessorModel, SimConfig, SimEnv, Survival};
use terrace::env::sync::Mutex;
use terrace::tree::{
    Bandwidth, Burst, Dlc, Gear, Governor, LoadEstimator, Pacer, PackLayout, Peak, Silk, SoftSleep, Steady,
};
use terrace::{
    Db, EventListener, JobBegin, JobEnd, LoadSample, LoadStats, Options, Stats, TreeOptions, replay,
};
use terrace_torture::{TreeParts as _, is_long};

const MS: Duration = Duration::from_millis(1);
const KEYS: u64 = 4000;

/// Runs of level 0 at which writers are slowed, and at which they wait.
const SLOW: usize = 12;
const STOP: usize = 20;

/// What the device can do, in bytes per second.
const BANDWIDTH: u64 = 20_000_000;

const LIMITS: Governor =
    Governor { l0_slow: SLOW, l0_stop: STOP, debt_slow_bytes: 4 << 20, debt_stop_bytes: 64 << 20 };

/// Clients that read and write more than this are at a peak: an eighth of the bandwidth.
fn dlc() -> Dlc {
    Dlc {
        limits: LIMITS,
        bandwidth: Bandwidth { device: Some(BANDWIDTH), floor_percent: 5 },
        estimator: LoadEstimator::Operations,
        interval: 100 * MS,
        high_percent: 12,
        low_percent: 6,
        ..Dlc::default()
    }
}

fn silk() -> Silk {
    let bandwidth = Bandwidth { device: Some(BANDWIDTH), floor_percent: 5 };
    Silk { limits: LIMITS, bandwidth, pause_percent: 12, ..Silk::default() }
}

fn pacers() -> [(&'static str, Pacer); 9] {
    [
        ("governor", Pacer::Governor(LIMITS)),
        ("steady", Pacer::Steady(Steady { limits: LIMITS, ..Steady::default() })),
        ("gear", Pacer::Gear(Gear { limits: LIMITS, ..Gear::default() })),
        ("soft sleep", Pacer::SoftSleep(SoftSleep { l0_free: SLOW, nanos_per_run: 100_000 })),
        ("silk", Pacer::Silk(silk())),
        ("dlc", Pacer::Dlc(dlc())),
        ("dlc, composite", Pacer::Dlc(Dlc { estimator: LoadEstimator::Composite, ..dlc() })),
        ("dlc, resume full", Pacer::Dlc(Dlc { burst: Burst::Full { runs: 6 }, ..dlc() })),
        (
            "dlc, parts",
            Pacer::Dlc(Dlc { peak: Peak::DelayPart, burst: Burst::Part { runs: 4, parts: 2 }, ..dlc() }),
        ),
    ]
}

fn options(pacer: Pacer) -> Options {
    let tree = TreeOptions::default().with(|tree| {
        tree.set_ratio(Some(4));
        tree.tables().table_bytes = 16 << 10;
        tree.group().bytes = 32 << 10;
        *tree.level1_bytes() = 128 << 10;
        *tree.l0_trigger() = 2;
        tree.files.packs = PackLayout::Many { bytes_max: 1 << 20 };
        tree.pacer = pacer;
    });
    Options {
        memory_bytes: Some(1 << 20),
        memtable_bytes: 32 << 10,
        background_threads: Some(1),
        tree,
        ..Options::default()
    }
}

/// A machine with a slow disk and a slow processor.
fn machine() -> SimConfig {
    let device = DeviceModel {
        write_bandwidth: BANDWIDTH,
        read_bandwidth: BANDWIDTH,
        flush_latency: MS / 2,
        ..DeviceModel::laptop_sata_ssd()
    };
    let processor = ProcessorModel { record_nanos: 500, kibibyte_nanos: 2000 };
    SimConfig { device, processor, ..SimConfig::default() }
}

fn simulate<R: Send + 'static>(body: impl FnOnce(Arc<SimEnv>) -> R + Send + 'static) -> R {
    SimEnv::run(machine(), body)
}

fn open(env: &Arc<SimEnv>, options: Options) -> Db {
    let shared: Arc<dyn Env> = env.clone();
    let db = Db::builder(Path::new("/db")).env(shared).options(options).open().unwrap();
    for key in 0..KEYS {
        db.put(key_of(key), [7; 100]).unwrap();
    }
    db.compact().unwrap();
    db.wait_idle().unwrap();
    db
}

fn key_of(n: u64) -> String {
    format!("{:06}", n.wrapping_mul(2_654_435_761) % KEYS)
}

/// What clients do in one millisecond.
#[derive(Clone, Copy, Debug)]
enum Step {
    Both(u64),
    Writes(u64),
    Reads(u64),
    Deletes(u64),
    Rest,
}

fn perform(db: &Db, step: Step, at: &mut u64) {
    let mut next = || {
        *at += 1;
        key_of(*at)
    };
    match step {
        Step::Both(count) => (0..count).for_each(|_| {
            db.put(next(), [7; 100]).unwrap();
            db.get(next()).unwrap();
        }),
        Step::Writes(count) => (0..count).for_each(|_| db.put(next(), [7; 100]).unwrap()),
        Step::Reads(count) => (0..count).for_each(|_| _ = db.get(next()).unwrap()),
        Step::Deletes(count) => (0..count).for_each(|_| db.delete(next()).unwrap()),
        Step::Rest => {}
    }
}

fn level0(stats: &Stats) -> usize {
    stats.keyspaces[0].shape.levels[0].runs
}

/// What clients do in each millisecond.
type Load = (&'static str, fn(u64) -> Step);

const LOADS: [Load; 5] = [
    ("square wave", |ms| if ms % 500 < 350 { Step::Both(20) } else { Step::Rest }),
    ("sustained", |_| Step::Both(20)),
    ("writes alone", |_| Step::Writes(25)),
    ("reads alone", |ms| if ms < 200 { Step::Writes(20) } else { Step::Reads(30) }),
    ("deletes alone", |_| Step::Deletes(40)),
];

/// All loads for pacer `at`, or each third one in a brief run, others for the next pacer.
fn loads_of(at: usize) -> impl Iterator<Item = Load> {
    let (skip, step) = if is_long() { (0, 1) } else { (at % 3, 3) };
    LOADS.into_iter().skip(skip).step_by(step)
}

#[test]
fn i11_whatever_a_pacer_puts_off_is_done_in_the_end() {
    for (at, (pacer_name, pacer)) in pacers().into_iter().enumerate() {
        for (load_name, load) in loads_of(at) {
            simulate(move |env| {
                let what = format!("{pacer_name}, {load_name}");
                let db = open(&env, options(pacer));
                let (start, mut at, mut runs_max) = (env.now(), 0, 0);
                for ms in 0..1000 {
                    perform(&db, load(ms), &mut at);
                    // Behind the clock after a stall: the next steps come at once.
                    env.sleep((start + MS * (ms as u32 + 1)).saturating_sub(env.now()));
                    if ms % 50 == 0 {
                        runs_max = runs_max.max(level0(&db.stats()));
                    }
                }
                let time = env.now() - start;
                let stalls = db.stats().stalls;
                assert!(time < Duration::from_secs(20), "{what}: {time:?}, somebody was starved: {stalls:?}");
                if !matches!(pacer, Pacer::SoftSleep(_)) {
                    assert!(runs_max <= STOP + 1, "{what}: {runs_max} runs");
                }
                // Nobody asks for it.
                env.sleep(Duration::from_secs(60));
                let stats = db.stats();
                assert_eq!(stats.keyspaces[0].debt_bytes, 0, "{what}: {:?}", stats.load);
                assert!(level0(&stats) <= 2, "{what}: {} runs are left", level0(&stats));
                db.close().unwrap();
            });
        }
    }
}

/// Level 0 after a peak of 300 ms, and after a rest.
fn runs_after_peak_and_rest(pacer: Pacer) -> (Stats, Stats) {
    simulate(move |env| {
        let db = open(&env, options(pacer));
        let (start, mut at) = (env.now(), 0);
        for ms in 0..300 {
            perform(&db, Step::Both(15), &mut at);
            env.sleep((start + MS * (ms + 1)).saturating_sub(env.now()));
        }
        let peak = db.stats();
        env.sleep(Duration::from_secs(5));
        let rest = db.stats();
        db.close().unwrap();
        (peak, rest)
    })
}

#[test]
fn dlc_leaves_level_0_alone_at_a_peak_and_repays_when_it_is_over() {
    let (peak, rest) = runs_after_peak_and_rest(Pacer::Dlc(dlc()));
    let done = |stats: &Stats| stats.compaction.jobs;
    assert!(peak.load.is_high && level0(&peak) > 6, "{} runs, {:?}", level0(&peak), peak.load);
    assert!(!rest.load.is_high && level0(&rest) < 2 && done(&rest) > done(&peak), "{:?}", rest.load);
    let (peak, _) = runs_after_peak_and_rest(Pacer::Governor(LIMITS));
    assert!(level0(&peak) <= 6, "a governor compacts at once: {} runs", level0(&peak));
}

#[test]
fn dlc_compacts_level_0_in_bursts_once_it_has_too_many_runs() {
    let full = Pacer::Dlc(Dlc { burst: Burst::Full { runs: 5 }, ..dlc() });
    let (peak, _) = runs_after_peak_and_rest(full);
    assert!(peak.load.is_high && level0(&peak) <= 8, "{} runs", level0(&peak));
    assert_eq!(peak.compaction.intra_l0, 0);
    let parts = Pacer::Dlc(Dlc { burst: Burst::Part { runs: 4, parts: 100 }, ..dlc() });
    let (peak, _) = runs_after_peak_and_rest(parts);
    assert!(peak.load.is_high && peak.compaction.intra_l0 >= 2, "{}", peak.compaction.intra_l0);
    assert!(level0(&peak) < 12, "{} runs", level0(&peak));
}

#[test]
fn a_load_that_only_writes_looks_idle_by_blocks_and_not_by_the_composite() {
    let is_high = |estimator| {
        simulate(move |env| {
            let db = open(&env, options(Pacer::Dlc(Dlc { estimator, ..dlc() })));
            let (start, mut at, mut high) = (env.now(), 0, 0);
            for ms in 0..1000 {
                perform(&db, Step::Writes(20), &mut at);
                env.sleep((start + MS * (ms + 1)).saturating_sub(env.now()));
                high += u32::from(ms % 10 == 0 && db.stats().load.is_high);
            }
            db.close().unwrap();
            high
        })
    };
    assert_eq!(is_high(LoadEstimator::Blocks), 0);
    assert!(is_high(LoadEstimator::Composite) > 50);
}

#[test]
fn who_waits_for_background_work_is_not_put_off() {
    simulate(|env| {
        let db = open(&env, options(Pacer::Dlc(Dlc { softness: 1000, ..dlc() })));
        let (start, mut at) = (env.now(), 0);
        for ms in 0..300 {
            perform(&db, Step::Both(15), &mut at);
            env.sleep((start + MS * (ms + 1)).saturating_sub(env.now()));
        }
        assert!(db.stats().load.is_high && level0(&db.stats()) > 6);
        db.wait_idle().unwrap();
        assert!(env.now() - start < Duration::from_secs(2), "the load stays high for 100 s");
        assert!(level0(&db.stats()) < 2);
        db.close().unwrap();
    });
}

#[test]
fn a_store_closes_at_once_while_everything_is_put_off() {
    for pacer in [Pacer::Dlc(dlc()), Pacer::Silk(silk())] {
        simulate(move |env| {
            let db = open(&env, options(pacer));
            let mut at = 0;
            for _ in 0..300 {
                perform(&db, Step::Both(15), &mut at);
                env.sleep(MS);
            }
            assert!(db.stats().load.is_high);
            let start = env.now();
            db.close().unwrap();
            let time = env.now() - start;
            assert!(time < Duration::from_secs(1), "{time:?}");
            // What was put off, or suspended and given up, is due again.
            let shared: Arc<dyn Env> = env.clone();
            let db = Db::builder(Path::new("/db")).env(shared).options(options(pacer)).open().unwrap();
            db.wait_idle().unwrap();
            assert!(level0(&db.stats()) < 2 && db.verify().unwrap().problems.is_empty());
            assert_eq!(db.iter().unwrap().count() as u64, KEYS);
            db.close().unwrap();
        });
    }
}

/// What compactions read and wrote in each sample, beside what they were allowed.
#[derive(Default)]
struct Samples(Mutex<Vec<LoadStats>>);

impl EventListener for Samples {
    fn load(&self, load: &LoadStats) {
        self.0.lock().push(*load);
    }
}

#[test]
fn compactions_keep_to_what_clients_leave_of_the_device() {
    simulate(|env| {
        // Only the limiter holds them back, and they have more to do than it lets them.
        let limits = Governor {
            l0_slow: 1000,
            l0_stop: 2000,
            debt_slow_bytes: u64::MAX - 1,
            debt_stop_bytes: u64::MAX,
        };
        let device = 5_000_000;
        let bandwidth = Bandwidth { device: Some(device), floor_percent: 5 };
        let pacer = Dlc { limits, bandwidth, high_percent: 100, low_percent: 99, ..dlc() };
        let samples = Arc::new(Samples::default());
        drop(open(&env, options(Pacer::Dlc(pacer))));
        let shared: Arc<dyn Env> = env.clone();
        let builder = Db::builder(Path::new("/db")).env(shared).options(options(Pacer::Dlc(pacer)));
        let db = builder.listener(samples.clone()).open().unwrap();
        let (start, mut at) = (env.now(), 0);
        let before = db.stats();
        for ms in 0..2000 {
            perform(&db, Step::Both(10), &mut at);
            env.sleep((start + MS * (ms + 1)).saturating_sub(env.now()));
        }
        let after = db.stats();
        db.close().unwrap();
        let jobs = |stats: &Stats| stats.read.compaction + stats.written.compaction + stats.written.rewrite;
        let done = (jobs(&after) - jobs(&before)) as f64;
        let samples = samples.0.lock();
        assert!((15..=21).contains(&samples.len()), "{}: one each tenth of a second", samples.len());
        let allowed: f64 = samples
            .iter()
            .map(|load| load.background_rate.unwrap() as f64 * load.interval.as_secs_f64())
            .sum();
        assert!(done > 0.7 * allowed && done <= 1.2 * allowed, "{done} of {allowed}");
        for load in samples.iter() {
            let client = (load.returned_bytes + load.written_bytes) as f64 / load.interval.as_secs_f64();
            assert!((load.client_rate as f64 - client).abs() <= 1.0, "{load:?}");
            let rest = device.saturating_sub(load.client_rate).max(device / 20);
            assert_eq!(load.background_rate, Some(rest));
        }
    });
}

/// How many compactions of level 0 began while a deeper one was running, and how many deeper ones there were.
#[derive(Default)]
struct Preemptions(Mutex<(u64, u64, u64)>);

impl EventListener for Preemptions {
    fn compaction_begin(&self, compaction: &JobBegin) {
        let (preempting, deep, running) = &mut *self.0.lock();
        if compaction.level == 0 {
            *preempting += u64::from(*running > 0);
        } else {
            (*deep, *running) = (*deep + 1, *running + 1);
        }
    }

    fn compaction_end(&self, compaction: &JobEnd) {
        if compaction.begin.level > 0 {
            self.0.lock().2 -= 1;
        }
    }
}

#[test]
fn silk_compacts_level_0_while_deeper_compactions_are_suspended() {
    let run = |pacer| {
        simulate(move |env| {
            let jobs = Arc::new(Preemptions::default());
            let mut options = options(pacer);
            *options.tree.level1_bytes() = 32 << 10;
            drop(open(&env, options.clone()));
            let shared: Arc<dyn Env> = env.clone();
            let builder = Db::builder(Path::new("/db")).env(shared).options(options);
            let db = builder.listener(jobs.clone()).open().unwrap();
            let (start, mut at) = (env.now(), 0);
            for ms in 0..2000 {
                perform(&db, Step::Writes(12), &mut at);
                env.sleep((start + MS * (ms + 1)).saturating_sub(env.now()));
            }
            db.close().unwrap();
            let (preempting, deep, _) = *jobs.0.lock();
            (preempting, deep)
        })
    };
    // One thread compacts all levels.
    let (preempting, deep) = run(Pacer::Silk(Silk { pause_percent: 100, ..silk() }));
    assert!(preempting > 0 && deep > preempting, "{preempting} of {deep}");
    assert_eq!(run(Pacer::Governor(LIMITS)).0, 0);
}

/// Whether a deep compaction is running.
#[derive(Default)]
struct Deep(Mutex<bool>);

impl EventListener for Deep {
    fn compaction_begin(&self, compaction: &JobBegin) {
        *self.0.lock() |= compaction.level > 0;
    }

    fn compaction_end(&self, compaction: &JobEnd) {
        *self.0.lock() &= compaction.begin.level == 0;
    }
}

/// SILK's pace, by which a few lookups in each hundredth of a second are a peak, on a tree whose level 1 is compacted as a whole.
fn suspending() -> Options {
    let bandwidth = Bandwidth { device: Some(1 << 20), floor_percent: 100 };
    let silk = Silk { limits: LIMITS, bandwidth, pause_percent: 1, ..Silk::default() };
    let mut options = options(Pacer::Silk(silk));
    *options.tree.level1_bytes() = 64 << 10;
    options.tree.group().bytes = 1 << 20;
    options.tree.group().parts = 1;
    options
}

/// A store in which a deep compaction is running and has written something. Its clients rest.
fn beside_a_deep_job(env: &Arc<SimEnv>) -> Db {
    drop(open(env, suspending()));
    let (shared, deep): (Arc<dyn Env>, _) = (env.clone(), Arc::new(Deep::default()));
    let builder = Db::builder(Path::new("/db")).env(shared).options(suspending());
    let db = builder.listener(deep.clone()).open().unwrap();
    (0..KEYS).for_each(|key| db.put(key_of(key), [8; 100]).unwrap());
    db.flush().unwrap();
    for _ in 0..100_000 {
        if *deep.0.lock() && unnamed_packs(&db, env) > 0 {
            return db;
        }
        env.sleep(MS);
    }
    panic!("no deep compaction: {:?}", db.stats());
}

/// Packs on the disk that no tree names: what jobs are writing.
fn unnamed_packs(db: &Db, env: &SimEnv) -> u64 {
    let is_pack = |path: &Path| path.extension().is_some_and(|extension| extension == "pack");
    let packs = env.files().iter().filter(|(path, _)| is_pack(path)).count() as u64;
    let space = db.stats().space;
    packs - space.pack_files - space.preallocated_files
}

/// A peak of so many hundredths of a second. Lookups may fail.
fn peak(db: &Db, env: &SimEnv, hundredths: u32) {
    let start = env.now();
    for step in 1..=hundredths {
        (0..4).for_each(|n| drop(db.get(key_of(u64::from(step) + n))));
        env.sleep((start + 10 * MS * step).saturating_sub(env.now()));
    }
}

#[test]
fn i11_a_job_that_stays_suspended_is_given_up_and_done_later() {
    simulate(|env| {
        let db = beside_a_deep_job(&env);
        peak(&db, &env, 5500);
        let before = db.stats();
        assert!(before.load.is_high && before.running_compactions == 1, "{before:?}");
        assert!(unnamed_packs(&db, &env) > 0 && before.compaction.given_up == 0);
        peak(&db, &env, 1000);
        let given_up = db.stats();
        assert_eq!((given_up.compaction.given_up, given_up.running_compactions), (1, 0));
        assert_eq!((unnamed_packs(&db, &env), given_up.background_errors), (0, 0));
        assert_eq!(given_up.compaction.jobs, before.compaction.jobs);
        assert!(given_up.keyspaces[0].debt_bytes > 0);
        // Its inputs are free for others, and it is planned again by itself.
        env.sleep(Duration::from_secs(20));
        let rest = db.stats();
        assert_eq!((rest.keyspaces[0].debt_bytes, rest.compaction.given_up), (0, 1), "{:?}", rest.load);
        assert!(rest.compaction.jobs > before.compaction.jobs && unnamed_packs(&db, &env) == 0);
        assert!(db.verify().unwrap().problems.is_empty());
        assert_eq!(db.iter().unwrap().count() as u64, KEYS);
        db.close().unwrap();
    });
}

/// Peaks of more than a minute, between which the job would not come to its end: each attempt would be lost.
#[test]
fn i11_a_job_is_done_though_no_rest_is_long_enough_for_it() {
    simulate(|env| {
        let db = beside_a_deep_job(&env);
        let before = db.stats();
        for _ in 0..20 {
            peak(&db, &env, 6500);
            env.sleep(100 * MS);
        }
        let after = db.stats();
        assert!(after.compaction.given_up > 0, "this shows something else");
        assert_eq!(after.keyspaces[0].debt_bytes, 0, "{after:?}");
        assert!(after.compaction.jobs > before.compaction.jobs && after.compaction.given_up < 8);
        db.close().unwrap();
    });
}

#[test]
fn a_power_cut_beside_a_job_that_is_given_up_loses_nothing() {
    // At the first calls that change anything from here on: those that remove what it has written.
    for (others, survival) in [(0, Survival::Nothing), (0, Survival::Everything), (1, Survival::Random(7))] {
        let machine = SimEnv::new(machine());
        machine.simulate(move |env| {
            let db = beside_a_deep_job(&env);
            db.sync().unwrap();
            peak(&db, &env, 5500);
            env.cut_after(others);
            peak(&db, &env, 1000);
            drop(db.close());
        });
        machine.crash(survival).simulate(|env| {
            let shared: Arc<dyn Env> = env.clone();
            let db = Db::builder(Path::new("/db")).env(shared).options(suspending()).open().unwrap();
            db.wait_idle().unwrap();
            assert!(db.verify().unwrap().problems.is_empty() && unnamed_packs(&db, &env) == 0);
            let found =
                db.iter().unwrap().map(|entry| entry.unwrap()).filter(|(_, value)| value[..] == [8; 100]);
            assert_eq!(found.count() as u64, KEYS);
            db.close().unwrap();
        });
    }
}

/// What was told of each sample, and the sample itself.
#[derive(Default)]
struct Recorded(Mutex<(Vec<LoadStats>, Vec<LoadSample>)>);

impl EventListener for Recorded {
    fn load(&self, load: &LoadStats) {
        self.0.lock().0.push(*load);
    }

    fn load_sample(&self, sample: &str) {
        self.0.lock().1.push(sample.parse().unwrap());
    }
}

/// A run of two seconds under `pacer`.
fn recorded(pacer: Pacer) -> (Vec<LoadStats>, Vec<LoadSample>) {
    simulate(move |env| {
        drop(open(&env, options(pacer)));
        let recorded = Arc::new(Recorded::default());
        let shared: Arc<dyn Env> = env.clone();
        let builder = Db::builder(Path::new("/db")).env(shared).options(options(pacer));
        let db = builder.listener(recorded.clone()).open().unwrap();
        let (start, mut at) = (env.now(), 0);
        for ms in 0..2000 {
            let step = if ms % 500 < 350 { Step::Both(15) } else { Step::Rest };
            perform(&db, step, &mut at);
            env.sleep((start + MS * (ms + 1)).saturating_sub(env.now()));
        }
        db.close().unwrap();
        std::mem::take(&mut *recorded.0.lock())
    })
}

#[test]
fn a_recorded_run_replays_to_the_same_verdicts() {
    for (name, pacer) in pacers() {
        let (told, samples) = recorded(pacer);
        assert!(!samples.is_empty() && told.len() == samples.len(), "{name}");
        let verdicts = replay(&options(pacer), &samples).unwrap();
        for (at, (verdict, told)) in verdicts.iter().zip(&told).enumerate() {
            let said = (verdict.interval, verdict.is_high, verdict.client_rate, verdict.background_rate);
            let then = (told.interval, told.is_high, told.client_rate, told.background_rate);
            assert_eq!(said, then, "{name}: sample {at}");
        }
        // From any sample on.
        let half = samples.len() / 2;
        assert_eq!(replay(&options(pacer), &samples[half..]).unwrap(), verdicts[half..], "{name}");
    }
    let (told, samples) = recorded(Pacer::Dlc(dlc()));
    assert!(told.iter().any(|load| load.is_high) && told.iter().any(|load| !load.is_high));
    let put_off = |pacer| {
        let verdicts = replay(&options(pacer), &samples).unwrap();
        let is_put_off = |verdict: &&terrace::LoadVerdict| verdict.jobs[0].deferred.is_some();
        verdicts.iter().filter(is_put_off).count()
    };
    assert!(put_off(Pacer::Dlc(dlc())) > 0);
    assert_eq!(put_off(Pacer::Governor(LIMITS)), 0);
}
