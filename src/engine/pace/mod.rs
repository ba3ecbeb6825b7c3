//! The load of the store, and how jobs are throttled by it.
//!
//! The pacer (`policy/pacer`) decides; this room measures what it goes by, and makes jobs pause.

pub(super) mod limiter;
pub(super) mod sampler;
pub(super) mod throttle;
pub(super) mod users;
