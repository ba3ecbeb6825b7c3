//! The machinery that tests a store by breaking what is under it, and the suites that do so at length.
//!
//! A store's life is told twice: to the store, and to an [`oracle`] outside of any disk. [`client`] is a caller that does
//! both; [`schedules`] are scripted lives for it; [`recovery`] holds what a power cut has left against what the client was
//! told. [`counter`] is a writer whose every moment can be told, [`holders`] are those who hold on to a moment, and
//! [`large_packs`] is a store that they hold on to; [`memory`] measures what a process takes. All judges panic when something is wrong.
//!
//! A [`suite`](mod@suite) is a family of cases that can be told by a seed: [`crash`], [`fault`], [`corruption`], [`kill`], [`power`], [`blocks`](mod@blocks),
//! [`model`](mod@model), [`full_disk`], [`soak`]; [`suites`] lists them. [`runner`] runs them, for as long as is wanted; `cargo test` runs a share of
//! each by the same code. [`option_sets`] are the sets of options that they run under.
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
pub mod seed;
pub mod soak;
pub mod suite;
pub mod suites;
pub mod volume;
pub mod writer;

pub use files::sealed_packs;
pub use options::tiny;
pub use seed::{Replay, Rng, number, seed_or, switched_on};
