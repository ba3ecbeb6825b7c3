//! The list of all suites. Code that suites share does not know it.

use crate::suite::Suite;

/// All suites, in the order in which they are listed.
pub static SUITES: &[&dyn Suite] = &[
    &crate::crash::Crash,
    &crate::fault::Fault,
    &crate::corruption::Corruption,
    &crate::kill::KILL,
    &crate::power::Power,
    &crate::blocks::Blocks,
    &crate::model::MODEL,
    &crate::full_disk::FULL_DISK,
    &crate::soak::Soak,
];

/// The suite of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Suite> {
    SUITES.iter().find(|suite| suite.name() == name).copied()
}
