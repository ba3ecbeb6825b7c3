//! Workloads, load generators and reports for Terrace.
//!
//! * [`generator`] draws numbers. [`store`] is the small interface that a workload needs of an engine. [`ycsb`] runs
//!   YCSB's core workloads over it and verifies every value that it reads.
//! * [`db_bench`] runs RocksDB's benchmarks by their names. [`punch`] measures what holes in files cost, without a
//!   store. [`paper`] runs the experiments of the papers.
//! * [`layouts`] maps which layout of levels wins where, in virtual time.
//! * [`deletes`] measures what a delete costs readers afterwards, and when its space comes back.
//! * [`values`] measures what large values cost, and how much space they take over time.
//! * [`calm`] measures whether clients notice the work of the background.
//! * [`recording`] keeps the course of a phase. [`report`] turns results into figures and pictures.
//!
//! A new engine is one more implementation of [`store::Store`]; a new workload is one more module beside `ycsb`.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time on real files, outside `env`")]

pub mod calm;
pub mod db_bench;
pub mod deletes;
pub mod generator;
mod latency;
pub mod layouts;
pub mod paper;
mod probe;
mod progress;
pub mod punch;
pub mod recording;
pub mod replay;
pub mod report;
pub mod store;
pub mod values;
pub mod workload;
pub mod ycsb;

/// Whatever stops a benchmark: a refused configuration, or an error of the engine or the file system.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Result of a benchmark's step.
pub type Result<T, E = Error> = std::result::Result<T, E>;
