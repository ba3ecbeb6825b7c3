//! When background jobs run: threads, claims and retries; what is done for space; files made ahead.
//!
//! This room measures the trees, asks the policy for a plan and hands it to the room `jobs`. It opens no files and
//! writes no tables.
//!
//! It may touch what [`background::Background`] holds.

mod attention;
pub(super) mod background;
pub(super) mod deleted_keys;
mod full_disk;
pub(super) mod idle_time;
mod load;
mod load_totals;
pub(super) mod preallocate;
pub(super) mod scheduler;
mod space_budget;
