//! The workloads of the papers, as streams of actions on numbered records.
//!
//! [`order`] lists YCSB's phases as each paper runs them; [`RangeHot`] is LSbM's, [`Oltp`] DLC's transaction, whose
//! [`Arrivals`] come when they come, whether or not earlier ones are done; [`Poisson`]'s come by themselves; [`Permutation`] visits each record once.
//!
//! All are plain values without a clock: a seed replays them exactly. What they do not know: keys, values, and the store.

mod arrival;
mod oltp;
pub mod order;
mod permutation;
mod range_hot;

pub use arrival::{Arrivals, Poisson, Rate};
pub use oltp::{Mix, Oltp};
pub use permutation::Permutation;
pub use range_hot::RangeHot;

/// What to do with numbered records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read one.
    Get(u64),
    /// Write one, new or not.
    Put(u64),
    /// Remove one.
    Delete(u64),
    /// Read up to `records` of them in order, `from` one on.
    Scan {
        /// The first.
        from: u64,
        /// How many.
        records: u64,
    },
}
