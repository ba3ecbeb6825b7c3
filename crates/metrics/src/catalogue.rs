//! The catalogue: every metric by its name, with its unit, its help, its labels, and where its figures come from.
//!
//! Names follow the conventions of Prometheus: base units, `_total` for what only grows. They are stable: a figure that
//! changes its meaning gets another name.

mod monitored;
mod parts;
mod work;

use terrace::{DeviceStats, KeyspaceStats, LevelShape, PassedBytes, StallStats, Stats};

use crate::monitor::Monitor;
use crate::picture::{Reading, Series};

/// A metric: a family of series that differ by their labels.
#[derive(Debug)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, as `terrace_flushes_total`.
    pub name: &'static str,
    /// Whether it only grows.
    pub kind: Kind,
    /// The unit of its values.
    pub unit: Unit,
    /// What it means, in a sentence or two.
    pub help: &'static str,
    pub(crate) source: Source,
}

/// What kind of metric it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// Only grows, from 0 at the opening of the store.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by size.
    Histogram,
}

/// The unit of a metric's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Bytes per second.
    BytesPerSecond,
    /// 0 or 1, or a number without unit.
    None,
}

/// A single figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Value {
    Count(u64),
    Real(f64),
}

/// Where the figures of a metric are.
#[derive(Debug)]
pub(crate) enum Source {
    /// A field of the statistics.
    Store(Field<Stats>),
    /// Several of them, told apart by a label of this name.
    ByLabel(&'static str, &'static [Field<Stats>]),
    /// A field of each reason to stall.
    Stalls(Field<StallStats>),
    /// Of each device.
    Devices(Field<DeviceStats>),
    /// Of each keyspace.
    Keyspaces(Field<KeyspaceStats>),
    /// Of each level of each keyspace.
    Levels(Field<LevelShape>),
    /// Of what has passed through each level, over all keyspaces.
    Passed(&'static [Field<PassedBytes>]),
    /// What a monitor has noticed, under these labels.
    Monitor(&'static [&'static str], fn(&Monitor, &mut Vec<Series>)),
}

/// A field of statistics.
#[derive(Debug)]
pub(crate) struct Field<T> {
    /// Its path from `T` on.
    pub(crate) path: &'static str,
    /// The label that tells it from the others of its metric.
    pub(crate) label: &'static str,
    pub(crate) read: fn(&T) -> Value,
}

/// A field by its path: `field!(count, flush.jobs)`, or `field!(count, written.wal, "wal")` with a label. The first word
/// is the function that makes a value of it.
macro_rules! field {
    ($value:ident, $($part:ident).+ $(, $label:literal)?) => {
        $crate::catalogue::Field {
            path: stringify!($($part).+),
            label: concat!($($label)?),
            read: |of| $crate::catalogue::$value(of.$($part).+),
        }
    };
}
use field;

/// Every metric that there is.
///
/// ```
/// for metric in terrace_metrics::catalogue() {
///     println!("{} {:?}: {}", metric.name, metric.labels(), metric.help);
/// }
/// ```
pub fn catalogue() -> impl Iterator<Item = &'static Metric> {
    [work::METRICS, parts::METRICS, monitored::METRICS].into_iter().flatten()
}

const fn counter(name: &'static str, unit: Unit, help: &'static str, source: Source) -> Metric {
    Metric { name, kind: Kind::Counter, unit, help, source }
}

const fn gauge(name: &'static str, unit: Unit, help: &'static str, source: Source) -> Metric {
    Metric { name, kind: Kind::Gauge, unit, help, source }
}

const fn histogram(name: &'static str, unit: Unit, help: &'static str, source: Source) -> Metric {
    Metric { name, kind: Kind::Histogram, unit, help, source }
}

impl Metric {
    /// The names of its labels, besides `store`.
    #[must_use]
    pub fn labels(&self) -> Vec<&'static str> {
        match &self.source {
            Source::Store(_) => vec![],
            Source::ByLabel(name, _) => vec![name],
            Source::Stalls(_) => vec!["reason"],
            Source::Devices(_) => vec!["device", "dir"],
            Source::Keyspaces(_) => vec!["keyspace"],
            Source::Levels(_) => vec!["keyspace", "level"],
            Source::Passed(_) => vec!["level", "way"],
            Source::Monitor(names, _) => names.to_vec(),
        }
    }

    /// The fields of [`terrace::Stats`] from which it comes, those of its labels included, as `devices.table_bytes`; empty
    /// for what a [`Monitor`] notices.
    ///
    /// ```
    /// let found = terrace_metrics::catalogue().find(|metric| metric.name == "terrace_stalls_total").unwrap();
    /// assert_eq!(found.fields(), ["stalls.reason", "stalls.count"]);
    /// ```
    #[must_use]
    pub fn fields(&self) -> Vec<String> {
        let (labels, fields): (&[&str], Vec<String>) = match &self.source {
            Source::Store(field) => (&[], vec![field.path()]),
            Source::ByLabel(_, fields) => (&[], fields.iter().map(Field::path).collect()),
            Source::Stalls(field) => (&["stalls.reason"], vec![format!("stalls.{}", field.path())]),
            Source::Devices(field) => {
                (&["devices.id", "devices.dir"], vec![format!("devices.{}", field.path())])
            }
            Source::Keyspaces(field) => (&["keyspaces.name"], vec![format!("keyspaces.{}", field.path())]),
            Source::Levels(field) => {
                let labels = &["keyspaces.name", "keyspaces.shape.levels.level"];
                (labels, vec![format!("keyspaces.shape.levels.{}", field.path())])
            }
            Source::Passed(fields) => {
                (&[], fields.iter().map(|field| format!("compaction.passed.{}", field.path())).collect())
            }
            Source::Monitor(..) => (&[], vec![]),
        };
        labels.iter().map(|label| (*label).to_owned()).chain(fields).collect()
    }
}

impl<T> Field<T> {
    /// Its path, without the blanks that the compiler may put around dots.
    fn path(&self) -> String {
        self.path.replace(' ', "")
    }
}

impl From<Value> for Reading {
    fn from(value: Value) -> Self {
        match value {
            Value::Count(count) => Self::Count(count),
            Value::Real(real) => Self::Real(real),
        }
    }
}

// What makes values of fields.

fn count(count: u64) -> Value {
    Value::Count(count)
}

fn size(count: usize) -> Value {
    Value::Count(count as u64)
}

fn real(value: f64) -> Value {
    Value::Real(value)
}

fn flag(is_so: bool) -> Value {
    Value::Count(is_so.into())
}

fn unset(is_so: bool) -> Value {
    flag(!is_so)
}

/// Microseconds, as seconds.
fn micros(micros: u64) -> Value {
    Value::Real(micros as f64 / 1e6)
}

fn micros_real(micros: f64) -> Value {
    Value::Real(micros / 1e6)
}

/// Nanoseconds, as seconds.
fn nanos(nanos: u64) -> Value {
    Value::Real(nanos as f64 / 1e9)
}

fn nanos_real(nanos: f64) -> Value {
    Value::Real(nanos / 1e9)
}

fn time(time: std::time::Duration) -> Value {
    Value::Real(time.as_secs_f64())
}

/// A limit that is infinite where there is none.
fn limit(limit: u64) -> Value {
    if limit == u64::MAX { Value::Real(f64::INFINITY) } else { Value::Count(limit) }
}

fn limit_if_any(some: Option<u64>) -> Value {
    limit(some.unwrap_or(u64::MAX))
}
