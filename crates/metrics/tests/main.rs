//! Tests of the catalogue against the statistics, and of what is written around it.
#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

mod completeness;
mod documents;
mod monitor;
