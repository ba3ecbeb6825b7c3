//! Pictures for users: statistics, shapes of trees, replays of recorded loads.
//!
//! This room looks at all parts and changes nothing.

pub(super) mod replay;
pub(super) mod stats_view;
