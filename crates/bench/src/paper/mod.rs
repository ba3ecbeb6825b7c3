//! The experiments of the papers that Terrace follows.
//!
//! [`record`] is what a run of one leaves behind.

pub mod record;
