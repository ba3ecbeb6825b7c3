//! Bare devices (figures 4 and 5), what a merge spends in calls (6), and processor time with and without a log (7).
//!
//! Figures 4 and 5 of simulated disks say what the disks of the other figures are, not what disks are like. On a real file system they
//! measure it through its page cache.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use terrace::env::simulated::DeviceModel;
use terrace::env::{Access, Env};
use terrace::tree::{Governor, Layout, Leveled, Pacer, Placer};
use terrace::{Db, Options};

use super::nvme::{FAST, KEY_BYTES, RECORDS, SLOW, VALUE_BYTES, disk, fast, machine, options, slow};
use super::{memory_for, series};
use crate::Result;
use crate::generator::Rng;
use crate::paper::client::{Client, Records};
use crate::paper::experiment::{Findings, Setting};
use crate::paper::lab_env::{Kind, LabEnv};
use crate::paper::machine::{Body, Lab, Machine};
use crate::paper::record::{Axis, Relation, Series};
use crate::workload::Action;
use crate::ycsb::keys::InsertOrder;

/// Threads that read or write at the same time.
const THREADS: u64 = 32;

/// The disks by name: those of the simulated machine, or the file system that there is.
fn machines(
    setting: &Setting,
    simulated: [(&'static str, DeviceModel); 3],
) -> Result<Vec<(&'static str, Machine)>> {
    match &setting.machine {
        Machine::Simulated { .. } => {
            simulated.into_iter().map(|(name, model)| Ok((name, machine(model, name)?))).collect()
        }
        real @ Machine::Real { .. } => Ok(vec![("file system", real.clone())]),
    }
}

/// Direct reads and writes of the two disks through the kernel, and of the fast one by a thread that submits for all, in 2 us.
fn bare() -> [(&'static str, DeviceModel); 3] {
    let direct = |model: DeviceModel| DeviceModel { dirty_bytes_max: 0, ..model };
    let spdk = DeviceModel { reactor_latency: Duration::from_micros(2), ..direct(fast()) };
    [("slow", direct(slow())), ("fast", direct(fast())), ("fast, SPDK", spdk)]
}

/// Operations a second of `bytes` each, written to files and then read in no order, by several threads.
fn operations(machine: &Machine, seed: u64, bytes: usize, each: u64) -> Result<[f64; 2]> {
    machine.run(seed, move |lab| {
        lab.env().create_dir(lab.dir())?;
        let file = |thread: u64| lab.dir().join(format!("bare-{thread}"));
        let write = |thread: u64| -> Body<()> {
            let (env, path) = (lab.env().clone(), file(thread));
            Box::new(move || {
                let (file, data) = (env.create(&path)?, vec![7; bytes]);
                (0..each).try_for_each(|n| file.write_at(n * bytes as u64, &data))?;
                Ok(file.sync()?)
            })
        };
        let read = |thread: u64| -> Body<()> {
            let (env, path) = (lab.env().clone(), file(thread));
            Box::new(move || {
                let (file, mut data) = (env.open(&path, Access::Read)?, vec![0; bytes]);
                let mut rng = Rng::stream(1, thread);
                (0..each).try_for_each(|_| file.read_at(rng.below(each) * bytes as u64, &mut data))?;
                Ok(())
            })
        };
        let per_second = |bodies: Vec<Body<()>>| -> Result<f64> {
            let before = lab.env().now();
            lab.threads(bodies)?;
            Ok((THREADS * each) as f64 / (lab.env().now() - before).as_secs_f64())
        };
        let written = per_second((0..THREADS).map(write).collect())?;
        let read = per_second((0..THREADS).map(read).collect())?;
        (0..THREADS).try_for_each(|thread| lab.env().remove(&file(thread)))?;
        Ok([read, written])
    })
}

/// A line of bare devices, over reads and writes.
fn bare_line(name: &str, y: Axis, [read, written]: [f64; 2]) -> Series {
    let configuration = BTreeMap::from([
        ("table".to_owned(), "none: files without a store".to_owned()),
        ("threads".to_owned(), THREADS.to_string()),
    ]);
    let points = vec![[0.0, read], [1.0, written]];
    Series { name: name.into(), profile: "custom".into(), configuration, y, points }
}

/// Reads and writes of `bytes` on bare devices; `claims` are the paper's of the fast disk over the slow one, and `unit` is what an
/// operation counts.
fn bare_devices(
    setting: &Setting,
    (bytes, each): (usize, u64),
    (label, unit, counts): (&str, &str, f64),
    ratio: (&str, std::ops::RangeInclusive<f64>),
) -> Result<Findings> {
    let each = setting.scaled(each).max(4);
    let (mut lines, mut found) = (Vec::new(), Vec::new());
    for (name, machine) in machines(setting, bare())? {
        let both = operations(&machine, setting.seed, bytes, each)?.map(|rate| rate * counts);
        lines.push(bare_line(name, Axis::linear(label, unit), both));
        found.push(both);
    }
    let relations = match found[..] {
        [slow, fast, spdk] => vec![
            Relation::within("reads: fast / slow", ratio.0, ratio.1.clone(), fast[0] / slow[0]),
            Relation::within("writes: fast / slow", ratio.0, ratio.1, fast[1] / slow[1]),
            Relation::within("writes: SPDK / ext4", "equal", 0.95..=1.05, spdk[1] / fast[1]),
        ],
        _ => vec![Relation::within(
            "reads / writes",
            "of one file system, whose cache may hold all of it",
            0.0..=f64::INFINITY,
            found[0][0] / found[0][1],
        )],
    };
    Ok(Findings {
        x: Axis::named("", &["read", "write"]),
        series: lines,
        relations,
        deviations: vec!["the ratios of the simulated disks are chosen after the paper's"],
        machine: match &setting.machine {
            Machine::Simulated { .. } => machine(fast(), "450 MB/s; others beside it")?,
            real @ Machine::Real { .. } => real.clone(),
        },
    })
}

/// Bandwidth of bare devices (`nvme-4`).
pub fn bandwidth(setting: &Setting) -> Result<Findings> {
    bare_devices(
        setting,
        (1 << 20, RECORDS / 1024 / THREADS),
        ("bandwidth", "MB/s", 1.048_576),
        ("4 to 5 times", 4.0..=5.0),
    )
}

/// Operations of bare devices (`nvme-5`).
pub fn small_operations(setting: &Setting) -> Result<Findings> {
    let mut findings = bare_devices(
        setting,
        (4096, RECORDS / 16 / THREADS),
        ("operations of 4 KiB", "1/s", 1.0),
        ("over 3 times", 3.0..=f64::INFINITY),
    )?;
    if let [_, fast, spdk] = &findings.series[..] {
        findings.relations.push(Relation::within(
            "reads: SPDK / ext4",
            "about 3",
            2.0..=4.0,
            spdk.points[0][1] / fast.points[0][1],
        ));
    }
    Ok(findings)
}

/// Seconds of a merge of four runs of level 0 that all overlap, `bytes` together, in write, allocate and sync.
fn merge(machine: &Machine, seed: u64, bytes: u64) -> Result<[f64; 3]> {
    const RUNS: u64 = 4;
    let options = merge_options(bytes);
    machine.run(seed, move |lab| {
        let env = LabEnv::timing(lab.env().clone());
        let times = env.times();
        let db = Db::builder(lab.dir()).env(env).options(options).open()?;
        let format = Arc::new(Records::new(InsertOrder::Ordered, KEY_BYTES, VALUE_BYTES)?);
        let mut client = Client::new(lab, &db, format);
        let each = (bytes / 1024 / RUNS).max(1);
        for run in 0..RUNS {
            for n in 0..each {
                client.perform(Action::Put(n * RUNS + run))?;
            }
            db.flush()?;
        }
        db.wait_idle()?;
        let kinds = [Kind::Write, Kind::Allocate, Kind::Sync];
        let before = kinds.map(|kind| times.seconds(kind));
        db.compact()?;
        let spent = [0, 1, 2].map(|at| times.seconds(kinds[at]) - before[at]);
        db.close()?;
        Ok(spent)
    })
}

/// Runs stay in level 0 until they are told to merge.
fn merge_options(bytes: u64) -> Options {
    let mut options = options(Placer::Home, 2 << 20, true);
    options.tree.layout = Layout::Leveled(Leveled { l0_trigger: 64, ..Leveled::default() });
    options.tree.pacer = Pacer::Governor(Governor { l0_slow: 200, l0_stop: 400, ..Governor::default() });
    options.memtable_bytes = bytes.max(1 << 20);
    options.memory_bytes = Some(memory_for(64 << 20, options.memtable_bytes));
    options
}

/// Where a merge of level 0 spends its time (`nvme-6`).
pub fn merge_calls(setting: &Setting) -> Result<Findings> {
    // The page cache takes all: writes wait for no disk.
    let cached = |bandwidth, sync| DeviceModel {
        cache_bandwidth: 4_000_000_000,
        dirty_bytes_max: 1 << 30,
        ..disk(bandwidth, sync)
    };
    let [slow, fast] = [cached(SLOW, slow().flush_latency), cached(FAST, fast().flush_latency)];
    let (mut lines, mut last) = (Vec::new(), Vec::new());
    // At the default scale of 64 these are the paper's 10 to 100 MB.
    let sizes = [10, 25, 50, 75, 100].map(|megabytes| setting.scaled(megabytes * 64_000_000).max(256 << 10));
    let machines = machines(setting, [("slow", slow), ("fast", fast), ("", fast)])?;
    for (name, machine) in machines.iter().filter(|(name, _)| !name.is_empty()) {
        let spent: Vec<_> = sizes
            .iter()
            .map(|bytes| Ok((*bytes as f64 / 1e6, merge(machine, setting.seed, *bytes)?)))
            .collect::<Result<_>>()?;
        for (at, call) in ["write", "allocate", "sync"].into_iter().enumerate() {
            let points = spent.iter().map(|(size, times)| [*size, times[at] * 1e3]).collect();
            let y = Axis::linear("time in calls", "ms");
            lines.push(series(&format!("{name}: {call}"), &merge_options(sizes[4]), y, points));
        }
        last.push(spent[4].1);
    }
    let relations = match last[..] {
        [slow, fast] => vec![
            Relation::within("write: slow / fast", "equal", 0.9..=1.1, slow[0] / fast[0]),
            Relation::within("allocate (fallocate): slow / fast", "equal", 0.9..=1.1, slow[1] / fast[1]),
            Relation::within("sync: slow / fast", "differs strongly", 2.0..=f64::INFINITY, slow[2] / fast[2]),
        ],
        _ => vec![Relation::within(
            "sync / all three",
            "one disk: how much of it depends on the disk",
            0.0..=1.0,
            last[0][2] / last[0].iter().sum::<f64>(),
        )],
    };
    Ok(Findings {
        x: Axis::linear("data in level 0", "MB"),
        series: lines,
        relations,
        deviations: vec![
            "Terrace calls no fallocate: files that are made, renamed, cut and punched stand for it",
            "four runs that overlap: what does not overlap would move without being written",
        ],
        machine: match &setting.machine {
            Machine::Simulated { .. } => Machine::preset("nvme")?
                .with("450 MB/s; another of 100 MB/s; a page cache for all", |model| *model = fast),
            real @ Machine::Real { .. } => real.clone(),
        },
    })
}

/// Seconds of processor time that the threads of this process have taken whose names begin with `prefix`.
fn threads_time(prefix: &str) -> Result<f64> {
    let mut nanos = 0.0;
    for entry in std::fs::read_dir("/proc/self/task")? {
        let dir = entry?.path();
        let read = |name: &str| std::fs::read_to_string(dir.join(name));
        // A thread may end meanwhile.
        if let (Ok(name), Ok(times)) = (read("comm"), read("schedstat"))
            && name.starts_with(prefix)
        {
            nanos += times.split(' ').next().unwrap_or_default().parse::<f64>()?;
        }
    }
    Ok(nanos / 1e9)
}

fn this_thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds of the processor that random writes take: of the client, of flushes, of compactions, of all other threads of the store.
fn processor_shares(lab: &Lab, has_log: bool, options: Options, writes: u64) -> Result<[f64; 4]> {
    let env: Arc<dyn Env> = if has_log { lab.env().clone() } else { LabEnv::without_log(lab.env().clone()) };
    let db = Db::builder(lab.dir()).env(env).options(options).open()?;
    let format = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, VALUE_BYTES)?);
    let (mut client, mut rng) = (Client::new(lab, &db, format), Rng::new(1));
    let times = || -> Result<[f64; 4]> {
        let [flush, compaction, all] =
            [threads_time("terrace-flush")?, threads_time("terrace-comp")?, threads_time("terrace-")?];
        Ok([this_thread_time(), flush, compaction, all - flush - compaction])
    };
    let before = times()?;
    for _ in 0..writes {
        client.perform(Action::Put(rng.below(writes)))?;
    }
    db.wait_idle()?;
    let after = times()?;
    db.close()?;
    Ok([0, 1, 2, 3].map(|at| after[at] - before[at]))
}

/// Shares of processor time with and without a log (`nvme-7`): on the real machine, since only that has processors.
pub fn processor_time(setting: &Setting) -> Result<Findings> {
    let machine = match &setting.machine {
        Machine::Simulated { .. } => Machine::Real { dir: None },
        real @ Machine::Real { .. } => real.clone(),
    };
    let writes = setting.scaled(RECORDS);
    let options = options(Placer::Home, 1 << 20, false);
    let measured = [true, false].map(|has_log| {
        let options = options.clone();
        machine.run(setting.seed, move |lab| processor_shares(lab, has_log, options, writes))
    });
    let [with, without] = measured;
    let (with, without) = (with?, without?);
    let all = [with, without].map(|times| times.iter().sum::<f64>().max(1e-9));
    let parts = ["client", "flushes", "compactions", "others"];
    let line = |(at, part): (usize, &str)| {
        let points = vec![[0.0, 100.0 * with[at] / all[0]], [1.0, 100.0 * without[at] / all[1]]];
        series(part, &options, Axis::linear("of all processor time", "%"), points)
    };
    let mut lines: Vec<Series> = parts.into_iter().enumerate().map(line).collect();
    let seconds = vec![[0.0, all[0]], [1.0, all[1]]];
    lines.push(series("all", &options, Axis::linear("processor time", "s"), seconds));
    let relations = vec![
        Relation::within(
            "the log's part of the client's processor time",
            "the log takes a large share",
            0.1..=1.0,
            1.0 - without[0] / with[0].max(1e-9),
        ),
        Relation::within("flushes' part of all, with a log", "21 % on ext4", 0.1..=0.4, with[1] / all[0]),
    ];
    Ok(Findings {
        x: Axis::named("log", &["with a log", "without"]),
        series: lines,
        relations,
        deviations: vec![
            "processor time of threads, not samples of stacks; the log's is the difference of two runs",
            "in real time on this machine, whatever disk it has",
        ],
        machine,
    })
}
