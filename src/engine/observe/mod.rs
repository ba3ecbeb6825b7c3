//! What the engine tells its owner: events, statistics and whether it is healthy. And what the machine costs, which it measures.
//!
//! This room reads counters and forwards events. It changes nothing but them, and calls the listener under no lock.

pub(super) mod alarm;
pub(super) mod costs;
pub(super) mod events;
pub(super) mod health;
pub(super) mod reads;
pub(super) mod statistics;
