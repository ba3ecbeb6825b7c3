//! Background jobs and stalls, from Terrace's events.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use terrace::env::sync::Mutex;
use terrace::{EventListener, JobBegin, JobEnd, Stall};

/// Samples of the load that come sooner after one another are left out.
const SAMPLES_APART: Duration = Duration::from_millis(90);

/// What goes on beside, or holds up, the operations of a workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Job {
    /// A memtable becomes tables.
    Flush,
    /// Tables become tables. Stored runs may call it a merge.
    #[serde(alias = "merge")]
    Compaction,
    /// Writers wait, or are slowed down.
    Stall,
}

/// A job or a stall with its times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// What it was.
    pub job: Job,
    /// Levels of a compaction, reason of a stall.
    pub detail: String,
    /// When it began.
    pub start: Instant,
    /// When it ended; none if it has not yet.
    pub end: Option<Instant>,
    /// Bytes that it wrote.
    pub bytes: u64,
}

/// Hears of a Terrace store's jobs and stalls and keeps them until they are asked for.
#[derive(Debug, Default)]
pub struct EventLog {
    /// Those that have no end yet stay when the others are taken.
    events: Mutex<Vec<Event>>,
    samples: Mutex<Samples>,
}

#[derive(Debug, Default)]
struct Samples {
    taken: Vec<(Instant, String)>,
    last: Option<Instant>,
}

impl EventLog {
    /// What has ended since the last call, then what is still going on.
    pub fn take(&self) -> Vec<Event> {
        let mut events = self.events.lock();
        let (ended, open): (Vec<_>, Vec<_>) = events.drain(..).partition(|event| event.end.is_some());
        events.clone_from(&open);
        ended.into_iter().chain(open).collect()
    }

    /// The samples of the load since the last call, at most about eleven a second.
    pub fn take_samples(&self) -> Vec<(Instant, String)> {
        std::mem::take(&mut self.samples.lock().taken)
    }

    fn sampled(&self, now: Instant, sample: &str) {
        let mut samples = self.samples.lock();
        if samples.last.is_none_or(|last| now.saturating_duration_since(last) >= SAMPLES_APART) {
            samples.last = Some(now);
            samples.taken.push((now, sample.to_owned()));
        }
    }

    fn begin(&self, job: Job, detail: String) {
        self.events.lock().push(Event { job, detail, start: Instant::now(), end: None, bytes: 0 });
    }

    /// Ends the oldest event of this kind. The store tells how long it took; its beginning is reckoned from that, since
    /// the news of it came late.
    fn end(&self, job: Job, detail: &str, time: Duration, bytes: u64) {
        let now = Instant::now();
        let start = now.checked_sub(time).unwrap_or(now);
        let mut events = self.events.lock();
        let of_kind = |event: &&mut Event| event.end.is_none() && event.job == job && event.detail == detail;
        match events.iter_mut().find(of_kind) {
            Some(event) => (event.start, event.end, event.bytes) = (start, Some(now), bytes),
            None => events.push(Event { job, detail: detail.to_owned(), start, end: Some(now), bytes }),
        }
    }
}

impl EventListener for EventLog {
    fn flush_begin(&self, _: &JobBegin) {
        self.begin(Job::Flush, String::new());
    }

    fn flush_end(&self, flush: &JobEnd) {
        self.end(Job::Flush, "", flush.time, flush.bytes_out);
    }

    fn compaction_begin(&self, compaction: &JobBegin) {
        self.begin(Job::Compaction, levels(compaction));
    }

    fn compaction_end(&self, compaction: &JobEnd) {
        self.end(Job::Compaction, &levels(&compaction.begin), compaction.time, compaction.bytes_out);
    }

    fn stall_begin(&self, stall: &Stall) {
        self.begin(Job::Stall, stall.reason.clone());
    }

    fn stall_end(&self, stall: &Stall, time: Duration) {
        self.end(Job::Stall, &stall.reason, time, 0);
    }

    fn load_sample(&self, sample: &str) {
        self.sampled(Instant::now(), sample);
    }
}

fn levels(compaction: &JobBegin) -> String {
    format!("{} to {}", compaction.level, compaction.target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_ended_is_told_again_when_it_has() {
        let log = EventLog::default();
        log.begin(Job::Compaction, "0 to 1".to_owned());
        log.begin(Job::Flush, String::new());
        log.end(Job::Flush, "", Duration::from_millis(5), 7);
        let first = log.take();
        assert_eq!((first[0].job, first[0].bytes), (Job::Flush, 7));
        assert_eq!((first[1].job, first[1].end), (Job::Compaction, None));
        log.end(Job::Compaction, "0 to 1", Duration::from_millis(5), 9);
        let second = log.take();
        assert_eq!((second.len(), second[0].job, second[0].bytes), (1, Job::Compaction, 9));
        assert_eq!(second[0].end.map(|end| end - second[0].start), Some(Duration::from_millis(5)));
        assert!(log.take().is_empty());
    }

    #[test]
    fn a_stored_merge_is_a_compaction() {
        let job = |name: &str| serde_json::from_value::<Job>(name.into()).unwrap();
        assert_eq!((job("merge"), job("compaction")), (Job::Compaction, Job::Compaction));
    }

    #[test]
    fn samples_close_together_are_left_out() {
        let (log, start) = (EventLog::default(), Instant::now());
        for ms in (0..1000).step_by(10) {
            log.sampled(start + Duration::from_millis(ms), "period=1");
        }
        let at: Vec<_> = log.take_samples().iter().map(|(at, _)| (*at - start).as_millis()).collect();
        assert_eq!((at.len(), at[1], at[2]), (12, 90, 180));
        assert!(log.take_samples().is_empty());
    }

    #[test]
    fn end_without_a_beginning_counts() {
        let log = EventLog::default();
        log.end(Job::Stall, "memtables", Duration::from_millis(2), 0);
        assert_eq!(log.take().len(), 1);
    }
}
