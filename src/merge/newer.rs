//! The search in a range for a version, or for a value, that is newer than a sequence number.

use super::Cursor;
use super::visible::STEPS_BEFORE_SEEK;
use crate::types::{Key, KeyRange, Kind, Seq, Stamp};

/// Finds a key of `range` with a version above `since`, and that version's sequence number. Of each key it looks at
/// the newest version and skips the others by a few steps and a seek, however many they are.
///
/// # Errors
/// That of the cursor.
pub fn newer_in<C: Cursor>(
    mut cursor: C,
    range: &KeyRange,
    since: Seq,
) -> Result<Option<(Key, Seq)>, C::Error> {
    cursor.seek(&range.start, Stamp::MAX)?;
    let mut key = Vec::new();
    // Number of versions of `key` met one after the other.
    let mut met = 0;
    while cursor.valid() && range.end.admits(cursor.key()) {
        if met == 0 || cursor.key() != key {
            let newest = cursor.stamp().seq();
            if newest > since {
                return Ok(Some((cursor.key().into(), newest)));
            }
            key.clear();
            key.extend_from_slice(cursor.key());
            met = 0;
        }
        met += 1;
        if met <= STEPS_BEFORE_SEEK || planted!("versions-walked-by-a-commit") {
            cursor.next()?;
        } else {
            // No entry has sequence number zero: this lies behind all versions.
            cursor.seek(&key, Stamp::new(Seq::ZERO, Kind::Delete))?;
        }
    }
    Ok(None)
}

/// Whether a key of `range` has a value that is newer than `since`. Costs a few steps and a seek for each key, and a step for each
/// newer version.
///
/// # Errors
/// That of the cursor.
pub fn has_newer_put<C: Cursor>(mut cursor: C, range: &KeyRange, since: Seq) -> Result<bool, C::Error> {
    cursor.seek(&range.start, Stamp::MAX)?;
    let mut key = Vec::new();
    // Number of versions of `key` that are not newer, met one after the other.
    let mut met = 0;
    while cursor.valid() && range.end.admits(cursor.key()) {
        let stamp = cursor.stamp();
        if stamp.seq() > since {
            if stamp.kind().is_put() {
                return Ok(true);
            }
        } else if met == 0 || cursor.key() != key {
            key.clear();
            key.extend_from_slice(cursor.key());
            met = 1;
        } else {
            met += 1;
        }
        if met <= STEPS_BEFORE_SEEK {
            cursor.next()?;
        } else {
            // No entry has sequence number zero: this lies behind all versions.
            cursor.seek(&key, Stamp::new(Seq::ZERO, Kind::Delete))?;
            met = 0;
        }
    }
    Ok(false)
}
