//! The error of the catalog.

use std::fmt;

/// An edit or a version that contradicts itself or the state it is applied to.
///
/// The message is a sentence that names the table, level or pack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inconsistent(String);

impl Inconsistent {
    /// An error with this sentence.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Inconsistent {}

/// Returns an [`Inconsistent`] with a formatted sentence unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($sentence:tt)+) => {
        if !$condition {
            return Err($crate::catalog::Inconsistent::new(format!($($sentence)+)));
        }
    };
}

pub(super) use ensure;
