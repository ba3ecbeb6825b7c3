//! Publishes the catalogue through the facade `metrics`, which hands it to whatever recorder the program has installed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, with_recorder};
use terrace::{Db, Stats};

use crate::catalogue::{Kind, Metric, Unit, catalogue};
use crate::histogram::Buckets;
use crate::monitor::Monitor;
use crate::picture::{Picture, Reading, Series};

static METADATA: Metadata<'static> = Metadata::new("terrace", Level::INFO, Some(module_path!()));

/// Publishes the metrics of one store through the facade `metrics`. Call [`Exporter::publish`] now and then, or let a thread
/// do so ([`Exporter::start`]). Nothing is published between two calls, so it costs the store nothing.
///
/// What the facade cannot say is said like this:
///
/// * Counters of seconds are gauges, since its counters are whole numbers. Rates over them are the same.
/// * A time in a histogram counts as the bound of its bucket, and twice the largest bound beyond it.
/// * Gauges of what is gone, such as a keyspace that was dropped, become 0, since none can be taken back.
///
/// ```
/// use terrace_metrics::Exporter;
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrace::Db::open(dir.path())?;
/// let mut exporter = Exporter::new().store("people");
/// exporter.publish(&db.stats());
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Exporter {
    store: Option<String>,
    monitor: Option<Arc<Monitor>>,
    keyspaces: Option<Vec<String>>,
    is_described: bool,
    /// The gauges of the last time.
    gauges: BTreeSet<Key>,
    /// What has been recorded of each histogram, by bucket.
    recorded: BTreeMap<Key, Vec<u64>>,
}

/// A thread that publishes the metrics of a store; it ends when this is dropped.
#[derive(Debug)]
pub struct Publisher {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// An exporter for the one store of a process.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With a label `store` of this value on every series, for a process that has several stores.
    #[must_use]
    pub fn store(self, name: impl Into<String>) -> Self {
        Self { store: Some(name.into()), ..self }
    }

    /// With what `monitor` notices.
    #[must_use]
    pub fn monitor(self, monitor: Arc<Monitor>) -> Self {
        Self { monitor: Some(monitor), ..self }
    }

    /// Of the keyspaces, these alone: see [`Picture::keyspaces`].
    #[must_use]
    pub fn keyspaces<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        Self { keyspaces: Some(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// Publishes `stats`, and what the monitor has noticed up to now. The first call describes all metrics, so the recorder
    /// should be installed by then.
    pub fn publish(&mut self, stats: &Stats) {
        with_recorder(|recorder| {
            if !mem::replace(&mut self.is_described, true) {
                catalogue().for_each(|metric| describe(recorder, metric));
            }
            self.publish_to(recorder, stats);
        });
    }

    fn publish_to(&mut self, recorder: &dyn Recorder, stats: &Stats) {
        let (store, monitor, chosen) = (self.store.clone(), self.monitor.clone(), self.keyspaces.clone());
        let names: Option<Vec<&str>> =
            chosen.as_ref().map(|names| names.iter().map(String::as_str).collect());
        let mut picture = Picture::of(stats);
        if let Some(store) = &store {
            picture = picture.store(store);
        }
        if let Some(monitor) = &monitor {
            picture = picture.monitor(monitor);
        }
        if let Some(names) = &names {
            picture = picture.keyspaces(names);
        }
        let before = mem::take(&mut self.gauges);
        for metric in catalogue() {
            for series in picture.series(metric) {
                let key = key_of(metric, &series);
                match (metric.kind, series.reading) {
                    (_, Reading::Histogram(buckets)) => self.record(recorder, key, &buckets),
                    (Kind::Counter, Reading::Count(count)) => {
                        recorder.register_counter(&key, &METADATA).absolute(count);
                    }
                    (_, Reading::Count(count)) => self.set(recorder, key, count as f64),
                    (_, Reading::Real(real)) => self.set(recorder, key, real),
                }
            }
        }
        for gone in before.difference(&self.gauges) {
            recorder.register_gauge(gone, &METADATA).set(0.0);
        }
    }

    fn set(&mut self, recorder: &dyn Recorder, key: Key, value: f64) {
        recorder.register_gauge(&key, &METADATA).set(value);
        self.gauges.insert(key);
    }

    /// Records what has come into `buckets` since the last time.
    fn record(&mut self, recorder: &dyn Recorder, key: Key, buckets: &Buckets) {
        let histogram = recorder.register_histogram(&key, &METADATA);
        let recorded = self.recorded.entry(key).or_insert_with(|| vec![0; buckets.counts.len()]);
        let beyond = buckets.bounds.last().map_or(0.0, |bound| 2.0 * bound);
        let bounds = buckets.bounds.iter().copied().chain([beyond]);
        for ((bound, now), before) in bounds.zip(&buckets.counts).zip(recorded) {
            let new = now - mem::replace(before, *now);
            if new > 0 {
                histogram.record_many(bound, usize::try_from(new).unwrap_or(usize::MAX));
            }
        }
    }

    /// Starts a thread that publishes the metrics of `db` every `interval`, for the first time at once. It holds a handle of
    /// the store: drop the [`Publisher`] before the store is to close.
    ///
    /// ```
    /// use std::time::Duration;
    /// use terrace_metrics::Exporter;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let publisher = Exporter::new().start(db.clone(), Duration::from_secs(5)).unwrap();
    /// // ...
    /// drop(publisher);
    /// db.close()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// That of the operating system when there can be no more threads.
    pub fn start(mut self, db: Db, interval: Duration) -> io::Result<Publisher> {
        let (stop, stopped) = channel::<()>();
        let publish = move || {
            self.publish(&db.stats());
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                self.publish(&db.stats());
            }
        };
        let thread = Builder::new().name("terrace-metrics".to_owned()).spawn(publish)?;
        Ok(Publisher { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A recorder's panic has been reported by the panic hook and is nobody else's.
            let _ = thread.join();
        }
    }
}

fn describe(recorder: &dyn Recorder, metric: &Metric) {
    let name = KeyName::from_const_str(metric.name);
    let unit = match metric.unit {
        Unit::Count => Some(metrics::Unit::Count),
        Unit::Bytes => Some(metrics::Unit::Bytes),
        Unit::Seconds => Some(metrics::Unit::Seconds),
        // The facade knows bits per second alone.
        Unit::BytesPerSecond | Unit::None => None,
    };
    match metric.kind {
        Kind::Counter if metric.unit == Unit::Seconds => {
            recorder.describe_gauge(name, unit, metric.help.into())
        }
        Kind::Counter => recorder.describe_counter(name, unit, metric.help.into()),
        Kind::Gauge => recorder.describe_gauge(name, unit, metric.help.into()),
        Kind::Histogram => recorder.describe_histogram(name, unit, metric.help.into()),
    }
}

fn key_of(metric: &Metric, series: &Series) -> Key {
    let labels: Vec<_> = series.labels.iter().map(|(name, value)| Label::new(*name, value.clone())).collect();
    Key::from_parts(metric.name, labels)
}

#[cfg(test)]
mod tests;
