//! The collector of a phase's intervals, and the probes of its load threads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::{Curve, Interval, Recording, Span, Tail, rounded, samples_of};
use crate::latency::{Latency, LatencySummary};
use crate::store::{ByCause, Counters, Store};

/// Length of a fine interval. An interval's number, its *epoch*, is the time of its start in this unit.
const FINE: Duration = Duration::from_millis(100);

/// Fine intervals in a coarse one.
const FINE_PER_COARSE: u32 = 10;

/// From this epoch on, intervals are coarse, unless they are from the beginning.
const FINE_END: u32 = 300;

/// The epoch that a probe has reached whose thread has ended.
const ENDED: u32 = u32::MAX;

/// Collects what happens during one phase on one store.
pub struct Recorder<'a> {
    store: &'a dyn Store,
    /// Names of the kinds of operations.
    kinds: Vec<&'static str>,
    started: Instant,
    /// From this epoch on, intervals are coarse.
    fine_end: u32,
    /// The current interval, which the probes watch.
    epoch: Arc<AtomicU32>,
    sender: Sender<Batch>,
    batches: Receiver<Batch>,
    /// By probe: all before this epoch has been handed over.
    reached: Vec<u32>,
    /// Beginnings of the intervals.
    ticks: Vec<Tick>,
    /// Histograms by kind of the epochs that some thread may still add to.
    open: BTreeMap<u32, Vec<Option<Latency>>>,
    /// The same of the coarse interval that is not over.
    coarse: Option<(u32, Vec<Option<Latency>>)>,
    totals: Vec<Option<Latency>>,
    fine_tails: BTreeMap<u32, Tails>,
    coarse_tails: BTreeMap<u32, Tails>,
}

type Tails = BTreeMap<String, Tail>;

/// A look at the store.
struct Tick {
    epoch: u32,
    at: Duration,
    counters: Counters,
}

/// What a probe hands over: the latencies of `epoch` by kind, and the epoch that it goes on with.
#[derive(Debug)]
struct Batch {
    probe: usize,
    epoch: u32,
    reached: u32,
    latencies: Vec<(usize, Latency)>,
}

/// Where one load thread leaves its latencies. Dropping it hands over the rest.
#[derive(Debug)]
pub struct Probe {
    index: usize,
    watched: Arc<AtomicU32>,
    epoch: u32,
    latencies: Vec<Latency>,
    sender: Sender<Batch>,
}

impl Probe {
    /// Notes an operation that has just ended, of the kind with this index.
    pub fn record(&mut self, kind: usize, latency: Duration) {
        let epoch = self.watched.load(Ordering::Relaxed);
        if epoch != self.epoch {
            self.hand_over(epoch);
        }
        self.latencies[kind].record(latency);
    }

    fn hand_over(&mut self, reached: u32) {
        let filled = self.latencies.iter_mut().enumerate().filter(|(_, latency)| !latency.is_empty());
        let latencies =
            filled.map(|(kind, latency)| (kind, std::mem::replace(latency, Latency::new()))).collect();
        let batch = Batch { probe: self.index, epoch: self.epoch, reached, latencies };
        // The recorder is gone if the phase has failed; then nobody needs the figures.
        let _ = self.sender.send(batch);
        self.epoch = reached;
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.hand_over(ENDED);
    }
}

impl<'a> Recorder<'a> {
    /// Begins a phase now; `kinds` names the kinds of operations.
    pub fn start(store: &'a dyn Store, kinds: impl Into<Vec<&'static str>>) -> Self {
        let kinds = kinds.into();
        let (sender, batches) = mpsc::channel();
        let (counters, started) = (store.counters(), Instant::now());
        // What went on before is no part of this phase.
        store.events();
        store.load_samples();
        Self {
            store,
            started,
            fine_end: FINE_END,
            epoch: Arc::new(AtomicU32::new(0)),
            sender,
            batches,
            reached: Vec::new(),
            ticks: vec![Tick { epoch: 0, at: Duration::ZERO, counters }],
            open: BTreeMap::new(),
            coarse: None,
            totals: vec![None; kinds.len()],
            kinds,
            fine_tails: BTreeMap::new(),
            coarse_tails: BTreeMap::new(),
        }
    }

    /// With a look at the store once a second alone, from the beginning on.
    pub fn by_the_second(self) -> Self {
        Self { fine_end: 0, ..self }
    }

    /// When the phase began.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// A probe for one more thread.
    pub fn probe(&mut self) -> Probe {
        let epoch = self.epoch.load(Ordering::Relaxed);
        self.reached.push(epoch);
        Probe {
            index: self.reached.len() - 1,
            watched: self.epoch.clone(),
            epoch,
            latencies: self.kinds.iter().map(|_| Latency::new()).collect(),
            sender: self.sender.clone(),
        }
    }

    /// Does `work` on a thread of its own, and samples until it is done.
    pub fn sampling<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let (done, wait) = mpsc::channel::<()>();
            let thread = scope.spawn(move || {
                // Dropped at the end, also when the work panics.
                let _done = done;
                work()
            });
            while wait.recv_timeout(self.until_tick()) == Err(RecvTimeoutError::Timeout) {
                self.tick();
            }
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Ends the phase, after all probes are gone; what happened, and the latencies of the whole phase by kind.
    pub fn finish(mut self) -> (Recording, BTreeMap<&'static str, LatencySummary>) {
        let last = self.last_epoch();
        self.look(last);
        self.collect();
        self.close_coarse();
        let totals = || self.kinds.iter().zip(&self.totals);
        let totals = || totals().filter_map(|(&kind, latency)| Some((kind, latency.as_ref()?)));
        let latency_curves_us =
            totals().map(|(kind, latency)| (kind.to_owned(), Curve(latency.curve()))).collect();
        let summaries = totals().map(|(kind, latency)| (kind, latency.summary())).collect();
        let is_fine = last < self.fine_end;
        let recording = Recording {
            interval_s: FINE.as_secs_f64() * if is_fine { 1.0 } else { f64::from(FINE_PER_COARSE) },
            intervals: self.intervals(is_fine),
            spans: self.spans(),
            samples: samples_of(self.started, self.store.load_samples()),
            latency_curves_us,
        };
        (recording, summaries)
    }

    fn last_epoch(&self) -> u32 {
        self.ticks.last().map_or(0, |tick| tick.epoch)
    }

    /// Time left in the current interval.
    fn until_tick(&self) -> Duration {
        self.next_tick().saturating_sub(self.started.elapsed())
    }

    /// When the current interval ends, from the beginning of the phase.
    fn next_tick(&self) -> Duration {
        let last = self.last_epoch();
        FINE * (last + if last < self.fine_end { 1 } else { FINE_PER_COARSE })
    }

    /// Begins the interval that it is time for; intervals that were slept through are part of the one before.
    fn tick(&mut self) {
        let mut epoch = (self.started.elapsed().as_nanos() / FINE.as_nanos()) as u32;
        if epoch >= self.fine_end {
            epoch -= epoch % FINE_PER_COARSE;
        }
        if epoch > self.last_epoch() {
            self.epoch.store(epoch, Ordering::Relaxed);
            self.look(epoch);
            self.collect();
        }
    }

    fn look(&mut self, epoch: u32) {
        let at = self.started.elapsed();
        self.ticks.push(Tick { epoch, at, counters: self.store.counters() });
    }

    /// Takes what the probes have handed over, and closes the epochs that all of them have left.
    fn collect(&mut self) {
        while let Ok(batch) = self.batches.try_recv() {
            let kinds = self.kinds.len();
            let open = self.open.entry(batch.epoch).or_insert_with(|| vec![None; kinds]);
            batch.latencies.into_iter().for_each(|(kind, latency)| add(&mut open[kind], latency));
            self.reached[batch.probe] = batch.reached;
        }
        let left = self.reached.iter().copied().min().unwrap_or(ENDED);
        while let Some(entry) = self.open.first_entry().filter(|entry| *entry.key() < left) {
            let (epoch, latencies) = entry.remove_entry();
            self.fine_tails.insert(epoch, tails(&self.kinds, &latencies));
            let number = epoch / FINE_PER_COARSE;
            if self.coarse.as_ref().is_none_or(|(current, _)| *current != number) {
                self.close_coarse();
                self.coarse = Some((number, vec![None; self.kinds.len()]));
            }
            for (sum, latency) in self.coarse.iter_mut().flat_map(|(_, sums)| sums).zip(latencies) {
                latency.into_iter().for_each(|latency| add(sum, latency));
            }
        }
    }

    fn close_coarse(&mut self) {
        let Some((number, latencies)) = self.coarse.take() else { return };
        self.coarse_tails.insert(number, tails(&self.kinds, &latencies));
        for (sum, latency) in self.totals.iter_mut().zip(latencies) {
            latency.into_iter().for_each(|latency| add(sum, latency));
        }
    }

    /// From tick to tick; coarse ones from each coarse interval's first tick to that of the next.
    fn intervals(&mut self, is_fine: bool) -> Vec<Interval> {
        let (mut tails, per_interval) = match is_fine {
            true => (std::mem::take(&mut self.fine_tails), 1),
            false => (std::mem::take(&mut self.coarse_tails), FINE_PER_COARSE),
        };
        let (end, ticks) = self.ticks.split_last().expect("invariant: the start and the end are ticks");
        let mut starts: Vec<&Tick> = ticks.iter().collect();
        starts.dedup_by_key(|tick| tick.epoch / per_interval);
        let ends = starts.iter().copied().skip(1).chain([end]);
        let pairs = starts.iter().copied().zip(ends);
        pairs
            .map(|(start, end)| {
                let latency_us = tails.remove(&(start.epoch / per_interval)).unwrap_or_default();
                interval(start, end, latency_us)
            })
            .collect()
    }

    /// The store's events, cut to the phase.
    fn spans(&self) -> Vec<Span> {
        let (started, now) = (self.started, Instant::now());
        let events = self.store.events().into_iter();
        let events = events.filter(|event| event.end.is_none_or(|end| end > started));
        events
            .map(|event| {
                let start = event.start.max(started);
                Span {
                    job: event.job,
                    detail: event.detail,
                    start_s: rounded((start - started).as_secs_f64()),
                    seconds: rounded(event.end.unwrap_or(now).saturating_duration_since(start).as_secs_f64()),
                    bytes: event.bytes,
                }
            })
            .collect()
    }
}

fn add(sum: &mut Option<Latency>, latency: Latency) {
    match sum {
        Some(sum) => sum.merge(&latency),
        None => *sum = Some(latency),
    }
}

fn tails(kinds: &[&str], latencies: &[Option<Latency>]) -> Tails {
    let kinds = kinds.iter().zip(latencies);
    kinds.filter_map(|(kind, latency)| Some(((*kind).to_owned(), latency.as_ref()?.tail()))).collect()
}

fn interval(start: &Tick, end: &Tick, latency_us: Tails) -> Interval {
    let since = end.counters.since(&start.counters);
    Interval {
        start_s: rounded(start.at.as_secs_f64()),
        seconds: rounded((end.at - start.at).as_secs_f64()),
        operations: latency_us.values().map(|tail| tail.count).sum(),
        latency_us,
        written_bytes: nonzero(&since.written),
        read_bytes: nonzero(&since.read),
        syncs: nonzero(&since.syncs),
        stall_ms: since.stall_micros as f64 / 1000.0,
        cache_hits: since.cache_hits,
        cache_misses: since.cache_misses,
        space_bytes: since.space_bytes,
        level_bytes: since.level_bytes,
    }
}

fn nonzero(amounts: &ByCause) -> BTreeMap<String, u64> {
    amounts
        .iter()
        .filter(|(_, amount)| **amount > 0)
        .map(|(cause, amount)| ((*cause).to_owned(), *amount))
        .collect()
}

#[cfg(test)]
mod tests;
