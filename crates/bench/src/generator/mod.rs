//! Number generators of the YCSB distributions.
//!
//! Each generator is a plain value that maps draws of an explicit [`Rng`] to record numbers or positions. Nothing is
//! shared between threads and nothing is seeded from the machine, so a seed replays a stream exactly. The definitions
//! are those of YCSB 0.17 (`site.ycsb.generator`), which its published figures rest on.
//!
//! Generators do not know which records exist: the caller bounds a draw by the records that are acknowledged.

mod exponential;
mod fnv;
mod hotspot;
mod latest;
mod rng;
mod scrambled;
mod sequential;
mod uniform;
mod zipfian;

pub use exponential::Exponential;
pub use fnv::{fnv1a_64, ycsb_hash};
pub use hotspot::Hotspot;
pub use latest::SkewedLatest;
pub use rng::{Rng, mix};
pub use scrambled::ScrambledZipfian;
pub use sequential::Sequential;
pub use uniform::Uniform;
pub use zipfian::{THETA, Zipfian};
