//! Terrace: an embedded, persistent LSM-tree key-value store whose compactions its users never notice.

mod catalog;
mod engine;
pub mod env;
mod error;
pub mod format;
mod merge;
mod policy;
mod store;
pub mod types;

pub use error::{Error, ErrorKind, Result};
