//! A picture of a store at one moment: the series of every metric.

use terrace::{KeyspaceStats, Stats};

use crate::catalogue::{Field, Metric, Source};
use crate::histogram::Buckets;
use crate::monitor::Monitor;

/// What is known of a store at one moment: its statistics, and what a [`Monitor`] has noticed, if there is one.
///
/// ```
/// use terrace_metrics::{Monitor, Picture, prometheus};
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrace::Db::open(dir.path())?;
/// let (stats, monitor) = (db.stats(), Monitor::default());
/// let text = prometheus(&[Picture::of(&stats).monitor(&monitor).store("people")]);
/// assert!(text.contains("terrace_snapshots{store=\"people\"} 0\n"));
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    stats: &'a Stats,
    monitor: Option<&'a Monitor>,
    store: Option<&'a str>,
    keyspaces: Option<&'a [&'a str]>,
}

/// One series of a metric.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Series {
    /// Names and values of its labels.
    pub labels: Vec<(&'static str, String)>,
    /// Its value.
    pub reading: Reading,
}

/// The value of a series.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Reading {
    /// A whole number.
    Count(u64),
    /// Any number. A counter of seconds is one.
    Real(f64),
    /// A histogram.
    Histogram(Buckets),
}

impl Series {
    pub(crate) fn new(labels: &[(&'static str, &str)], reading: Reading) -> Self {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { labels, reading }
    }
}

impl<'a> Picture<'a> {
    /// A picture of the store that has `stats`.
    #[must_use]
    pub fn of(stats: &'a Stats) -> Self {
        Self { stats, monitor: None, store: None, keyspaces: None }
    }

    /// With what `monitor` has noticed.
    #[must_use]
    pub fn monitor(self, monitor: &'a Monitor) -> Self {
        Self { monitor: Some(monitor), ..self }
    }

    /// With a label `store` of this value on every series, for a process that has several stores.
    #[must_use]
    pub fn store(self, name: &'a str) -> Self {
        Self { store: Some(name), ..self }
    }

    /// Of the keyspaces, these alone. Each has a dozen series, and a dozen more for each of its levels, which is much in a
    /// store of thousands of keyspaces. The figures of the store as a whole have all of them.
    ///
    /// ```
    /// # use terrace_metrics::{Picture, prometheus};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// # db.keyspace("users")?;
    /// let text = prometheus(&[Picture::of(&db.stats()).keyspaces(&["users"])]);
    /// assert!(text.contains("{keyspace=\"users\"}") && !text.contains("{keyspace=\"default\"}"));
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn keyspaces(self, names: &'a [&'a str]) -> Self {
        Self { keyspaces: Some(names), ..self }
    }

    /// The series of `metric`, none if there is nothing of the kind.
    ///
    /// ```
    /// # use terrace_metrics::{Picture, Reading, catalogue};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let stats = db.stats();
    /// let metric = catalogue().find(|metric| metric.name == "terrace_running_jobs").unwrap();
    /// for series in Picture::of(&stats).series(metric) {
    ///     assert_eq!((series.labels[0].0, series.reading), ("kind", Reading::Count(0)));
    /// }
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn series(&self, metric: &Metric) -> Vec<Series> {
        let mut series = Vec::new();
        let stats = self.stats;
        match &metric.source {
            Source::Store(field) => series.push(one(field, stats, &[])),
            Source::ByLabel(name, fields) => {
                series.extend(fields.iter().map(|field| one(field, stats, &[(name, field.label)])));
            }
            Source::Stalls(field) => {
                series
                    .extend(stats.stalls.iter().map(|stall| one(field, stall, &[("reason", &stall.reason)])));
            }
            Source::Devices(field) => series.extend(stats.devices.iter().map(|device| {
                let (id, dir) = (device.id.to_string(), device.dir.to_string_lossy());
                one(field, device, &[("device", &id), ("dir", &dir)])
            })),
            Source::Keyspaces(field) => {
                series.extend(self.chosen().map(|space| one(field, space, &[("keyspace", &space.name)])));
            }
            Source::Levels(field) => {
                let levels = self
                    .chosen()
                    .flat_map(|space| space.shape.levels.iter().map(move |level| (space, level)));
                series.extend(levels.map(|(space, level)| {
                    one(field, level, &[("keyspace", &space.name), ("level", &level.level.to_string())])
                }));
            }
            Source::Passed(fields) => {
                for (level, passed) in stats.compaction.passed.iter().enumerate() {
                    let level = level.to_string();
                    let of =
                        |field: &Field<_>| one(field, passed, &[("level", &level), ("way", field.label)]);
                    series.extend(fields.iter().map(of));
                }
            }
            Source::Monitor(_, read) => {
                if let Some(monitor) = self.monitor {
                    read(monitor, &mut series);
                }
            }
        }
        if let Some(store) = self.store {
            series.iter_mut().for_each(|series| series.labels.insert(0, ("store", store.to_owned())));
        }
        series
    }

    fn chosen(&self) -> impl Iterator<Item = &'a KeyspaceStats> {
        let chosen = self.keyspaces;
        let is_chosen =
            move |space: &&KeyspaceStats| chosen.is_none_or(|names| names.contains(&space.name.as_str()));
        self.stats.keyspaces.iter().filter(is_chosen)
    }
}

fn one<T>(field: &Field<T>, of: &T, labels: &[(&'static str, &str)]) -> Series {
    Series::new(labels, (field.read)(of).into())
}
