//! When background jobs run: threads, claims, retries, and how much of the machine jobs may take.
//!
//! This part measures the load, asks the policy for a plan and hands it to the part `jobs`. It opens no files and
//! writes no tables.
//!
//! It may touch what [`background::Background`] holds.

pub(super) mod background;
pub(super) mod idle_time;
pub(super) mod limiter;
pub(super) mod overwrite_ratio;
pub(super) mod read_triggered;
pub(super) mod sampler;
pub(super) mod scheduler;
pub(super) mod throttle;
pub(super) mod users;
