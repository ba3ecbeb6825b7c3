//! Torture tests: the machinery that tests a store by breaking what is under it, and long-running suites that use it.
//!
//! The history of a store is kept twice: in the store, and in an [`oracle`] outside of any disk. The parts:
//!
//! * [`client`] is a caller that writes to both. [`mod@schedules`] are scripts for it. [`recovery`] compares what a power
//!   cut has left with what the client was answered.
//! * [`counter`] is a writer whose store shows at every moment what it must contain. [`holders`] hold on to a moment
//!   of a store. [`large_packs`] is a store for them.
//! * [`option_sets`] are the sets of options that the suites run under. [`memory`] measures what a process takes.
//!
//! A [`suite`](mod@suite) is a family of cases that follow from a seed: [`crash`], [`fault`], [`corruption`],
//! [`kill`], [`power`], [`blocks`](mod@blocks), [`model`](mod@model), [`full_disk`], [`soak`]. [`suites`] lists them.
//! [`runner`] runs them for as long as is wanted; `cargo test` runs a part of a sample of each by the same code. A judge panics
//! when something is wrong.
#![allow(missing_docs, reason = "steps of schedules and fields of histories are named after what they are")]
#![expect(clippy::unwrap_used, reason = "what fails in a judge fails the case")]
#![expect(clippy::disallowed_methods, reason = "what runs the suites lives in real time")]

pub mod allocation;
pub mod blocks;
pub mod client;
pub mod corruption;
pub mod counter;
pub mod crash;
pub mod fault;
pub mod files;
pub mod full_disk;
pub mod holders;
pub mod kill;
pub mod large_packs;
pub mod memory;
pub mod model;
pub mod option_sets;
pub mod options;
pub mod oracle;
pub mod panics;
pub mod power;
pub mod recovery;
pub mod runner;
pub mod schedules;
pub mod second;
pub mod seed;
pub mod soak;
pub mod suite;
pub mod suites;
pub mod tree_parts;
pub mod volume;
pub mod writer;

pub use files::sealed_packs;
pub use options::tiny;
pub use seed::{Replay, Rng, is_long, number, schedules, seed_or, switched_on};
pub use tree_parts::TreeParts;
