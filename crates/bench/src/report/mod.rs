//! Reports of runs: JSON objects for programs, aligned tables for people, and pages of pictures.
//!
//! 1. A run is stored as one JSON object: what ran it ([`Provenance`]), and its phases ([`PhaseReport`]) or whatever
//!    else its kind has. [`Run`] is the run of `terrace bench ycsb` and `terrace bench db`.
//! 2. [`html`] draws stored runs of any kind together on one page. It reads only the parts of the JSON that the
//!    pictures need ([`Stored`]), so that runs of other versions and other programs can stand beside.

mod page;
mod phase;
mod provenance;
mod stored;
mod text;

pub use self::page::html;
pub use self::phase::{Amounts, Counted, Io, PhaseReport};
pub use self::provenance::{Machine, Provenance, Run};
pub use self::stored::Stored;
pub use self::text::{table, text};
pub use crate::latency::LatencySummary;
