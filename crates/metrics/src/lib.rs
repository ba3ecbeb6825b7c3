//! Metrics of a Terrace store, for whoever operates one.
//!
//! ```
//! use std::sync::Arc;
//! use terrace_metrics::{Monitor, Operation, Picture, prometheus};
//! # let dir = tempfile::tempdir().unwrap();
//! let monitor = Arc::new(Monitor::default());
//! let db = terrace::Db::builder(dir.path()).listener(monitor.clone()).open()?;
//! monitor.time(Operation::Write, || db.put("key", "value"))?;
//!
//! // What an HTTP server answers to Prometheus.
//! let text = prometheus(&[Picture::of(&db.stats()).monitor(&monitor)]);
//! assert!(text.contains("terrace_user_written_bytes_total 8\n"));
//! assert!(text.contains("terrace_operation_seconds_count{operation=\"write\"} 1\n"));
//! # Ok::<(), terrace::Error>(())
//! ```
//!
//! * [`catalogue`] has every metric: name, unit, help, labels. All else goes by it. Most are figures of
//!   [`terrace::Stats`]; reading them costs the store nothing until somebody asks.
//! * [`Monitor`] knows what the statistics do not: how long calls took, which errors there were. It is optional.
//! * [`prometheus`] writes it all as text that Prometheus reads.
#![cfg_attr(feature = "metrics", doc = "* [`Exporter`] publishes it through the facade `metrics`.")]
#![cfg_attr(
    not(feature = "metrics"),
    doc = "* With the feature `metrics`, `Exporter` publishes it through the facade of that name."
)]
#![cfg_attr(feature = "tracing", doc = "* [`Spans`] tells the events of a store to `tracing`.")]
#![cfg_attr(
    not(feature = "tracing"),
    doc = "* With the feature `tracing`, `Spans` tells the events of a store to `tracing`."
)]
//! * [`Listeners`] joins several listeners.
//!
//! `docs/operating.md` in the repository says what to watch. `dashboard.json` beside this crate's manifest is for Grafana,
//! `alerts.yml` for Prometheus.

mod catalogue;
mod exposition;
#[cfg(feature = "metrics")]
mod facade;
mod histogram;
mod listeners;
mod monitor;
mod picture;
#[cfg(feature = "tracing")]
mod spans;

pub use catalogue::{Kind, Metric, Unit, catalogue};
pub use exposition::{CONTENT_TYPE, prometheus};
#[cfg(feature = "metrics")]
pub use facade::{Exporter, Publisher};
pub use histogram::Buckets;
pub use listeners::Listeners;
pub use monitor::{Monitor, Operation};
pub use picture::{Picture, Reading, Series};
#[cfg(feature = "tracing")]
pub use spans::Spans;
