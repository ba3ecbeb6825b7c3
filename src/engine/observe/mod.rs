//! What the engine tells its owner: events, statistics, and whether it is healthy. It also measures the machine's
//! prices.
//!
//! This part may change counters and forward events, and nothing else. It calls the listener under no lock.

pub(super) mod alarm;
pub(super) mod costs;
pub(super) mod events;
pub(super) mod health;
pub(super) mod reads;
pub(super) mod replay;
pub(super) mod statistics;
