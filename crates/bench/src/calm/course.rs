//! A course: clients at work for some time, and a thread that looks at the engine and the machine at the end of every window.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::client::{Client, Left, Notes, Outcome, Seen};
use super::machine::{Look, space_bytes};
use super::operations::Mix;
use super::window::{Counts, Inside, Kind, WINDOW, Window};
use crate::Result;
use crate::progress::Progress;
use crate::recording::Job;
use crate::store::Store;
use crate::workload::Poisson;

/// Time until clients begin: they are started, and what that takes is over.
const START: Duration = Duration::from_millis(50);

/// Clients at work.
pub struct Course<'a> {
    pub store: &'a dyn Store,
    /// The store's directory, whose space counts; none of an engine without files.
    pub directory: Option<&'a Path>,
    pub mix: &'a Mix,
    /// Names the streams of random numbers.
    pub phase: u64,
    pub clients: usize,
    /// Operations per second of all clients in an open loop; none in a closed one.
    pub rate: Option<f64>,
    /// A multiple of [`WINDOW`].
    pub time: Duration,
    pub slow: Duration,
    /// What it is called while it runs.
    pub name: &'a str,
}

/// What was recorded.
pub struct Recorded {
    pub windows: Vec<Window>,
    pub outcome: Outcome,
}

/// The ends of the threads that collect.
struct Collected {
    left: mpsc::Receiver<Left>,
    spares: Vec<mpsc::Sender<Box<super::client::Part>>>,
    windows: Vec<Window>,
}

impl Course<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// Those of the store, or of the operating system's counters.
    pub fn run(&self) -> Result<Recorded> {
        let stop = AtomicBool::new(false);
        let (sender, left) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let mut collected = Collected { left, spares: Vec::new(), windows: Vec::new() };
        let started = Instant::now() + START;
        let mut outcome = Outcome::default();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for index in 0..self.clients {
                let (spare, spares) = mpsc::channel();
                collected.spares.push(spare);
                let client = self.client(index, Notes::new(index, sender.clone(), spares), &stop);
                let (tell, stop) = (tell.clone(), &stop);
                threads.push(scope.spawn(move || {
                    // The one who asks may have failed.
                    let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
                    let outcome = client.run(started);
                    stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    outcome
                }));
            }
            drop((sender, tell));
            let threads_of_clients: Vec<u32> = told.iter().take(self.clients).collect();
            let sampled = self.sample(&threads_of_clients, started, &mut collected, &stop);
            stop.fetch_or(sampled.is_err(), Ordering::Relaxed);
            for thread in threads {
                let one = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                outcome.wrong += one.wrong;
                outcome.unfinished += one.unfinished;
            }
            sampled
        })?;
        collected.collect();
        self.count_arrivals(&mut collected.windows);
        Ok(Recorded { windows: collected.windows, outcome })
    }

    fn client<'a>(&'a self, index: usize, notes: Notes, stop: &'a AtomicBool) -> Client<'a> {
        Client {
            store: self.store,
            operations: self.mix.operations(self.phase, index as u64),
            arrivals: self.arrivals(index),
            exact: self.directory.is_some(),
            slow: self.slow,
            time: self.time,
            stop,
            notes,
        }
    }

    fn arrivals(&self, client: usize) -> Option<Poisson> {
        let rate = self.rate? / self.clients as f64;
        Some(Poisson::new(rate, self.mix.arrivals(self.phase, client as u64)))
    }

    /// Looks at the end of every window until the time is up.
    fn sample(
        &self,
        clients: &[u32],
        started: Instant,
        collected: &mut Collected,
        stop: &AtomicBool,
    ) -> Result<()> {
        let progress = Progress::start(self.name, u64::MAX, Some(self.time));
        let windows = (self.time.as_nanos() / WINDOW.as_nanos()).max(1) as u32;
        let sleep_until = |at: Instant| std::thread::sleep(at.saturating_duration_since(Instant::now()));
        sleep_until(started);
        // What went on before is no part of this course.
        self.store.events();
        let (mut look, mut counters) = (Look::now(clients)?, self.store.counters());
        collected.windows.resize_with(windows as usize, Window::default);
        let mut done = 0;
        for index in 0..windows {
            sleep_until(started + WINDOW * (index + 1));
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let (later, later_counters) = (Look::now(clients)?, self.store.counters());
            let window = &mut collected.windows[index as usize];
            window.start_s = (WINDOW * index).as_secs_f64();
            window.looked(&look, &later);
            window.inside = Inside::between(&counters, &later_counters);
            let jobs = self.jobs_after(look.at);
            if let Some(inside) = &mut window.inside {
                inside.jobs = inside.jobs.max(jobs);
            }
            window.space_bytes = self.directory.map_or(0, space_bytes);
            (look, counters) = (later, later_counters);
            done += collected.collect();
            progress.show(done);
        }
        progress.finish();
        Ok(())
    }

    /// Flushes and compactions, told of since the last call, that had not ended at `from`.
    fn jobs_after(&self, from: Instant) -> u64 {
        let events = self.store.events();
        let jobs = events.iter().filter(|event| event.job != Job::Stall);
        jobs.filter(|event| event.end.is_none_or(|end| end > from)).count() as u64
    }

    /// Arrivals follow from the seed: they are counted here, where no client has to.
    fn count_arrivals(&self, windows: &mut [Window]) {
        if self.rate.is_none() {
            windows.iter_mut().for_each(|window| window.offered = window.completed());
            return;
        }
        for arrivals in (0..self.clients).filter_map(|client| self.arrivals(client)) {
            for due in arrivals.take_while(|due| *due < self.time) {
                windows[(due.as_nanos() / WINDOW.as_nanos()) as usize].offered += 1;
            }
        }
    }
}

impl Collected {
    /// Takes what clients have left, and gives the histograms back; how many operations that were.
    fn collect(&mut self) -> u64 {
        let mut operations = 0;
        while let Ok(Left { client, window, mut part }) = self.left.try_recv() {
            // What ends when the time is up, and later, belongs to the last window.
            let last = self.windows.len().saturating_sub(1);
            if let Some(window) = self.windows.get_mut(window.min(last)) {
                operations += take(&part.reads, &mut window.reads) + take(&part.writes, &mut window.writes);
                window.between.add(&part.between);
                window.user_bytes += part.user_bytes;
                window.disk_bytes += part.disk_bytes;
            }
            part.clear();
            // A client that has ended needs no more.
            let _ = self.spares[client].send(part);
        }
        operations
    }
}

fn take(seen: &Seen, kind: &mut Kind) -> u64 {
    let (arrival, service) = (Counts::of(&seen.arrival), Counts::of(&seen.service));
    let operations = service.count();
    kind.merge(Kind { arrival, service, waits: seen.waits });
    operations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calm::{Empty, Settings};

    fn course<'a>(mix: &'a Mix, rate: Option<f64>) -> Course<'a> {
        Course {
            store: &Empty,
            directory: None,
            mix,
            phase: 1,
            clients: 2,
            rate,
            time: 2 * WINDOW,
            slow: Duration::from_millis(2),
            name: "test",
        }
    }

    #[test]
    fn every_arrival_has_a_latency_and_belongs_to_a_kind() {
        let mix = Mix::new(&Settings { records: 100, ..Settings::default() }).unwrap();
        let recorded = course(&mix, Some(5000.0)).run().unwrap();
        assert_eq!(recorded.windows.len(), 2);
        let offered: u64 = recorded.windows.iter().map(|window| window.offered).sum();
        assert!((4500..5500).contains(&offered), "{offered}");
        let all = |kind: fn(&Window) -> &Kind| -> u64 {
            recorded.windows.iter().map(|window| kind(window).arrival.count()).sum()
        };
        assert_eq!(all(|window| &window.reads) + all(|window| &window.writes), offered);
        let completed: u64 = recorded.windows.iter().map(Window::completed).sum();
        assert_eq!(completed + recorded.outcome.unfinished, offered);
        assert!(recorded.windows[0].inside.is_none());
    }

    #[test]
    fn closed_loop_offers_what_it_does() {
        let mix = Mix::new(&Settings { records: 100, ..Settings::default() }).unwrap();
        let does_something = || {
            let recorded = course(&mix, None).run().unwrap();
            assert!(recorded.windows.iter().all(|window| window.offered == window.completed()));
            assert_eq!(recorded.outcome.unfinished, 0);
            recorded.windows.iter().any(|window| window.offered > 0)
        };
        // Clients that get no processor before the time is up do nothing.
        assert!((0..300).any(|_| does_something()));
    }
}
