//! What must happen after damage to a file, computed from the format alone.

use std::ops::Range;

use super::judge::Expected;
use super::{Change, Patient};

/// What must come of `changes` to files of the store.
pub(super) fn expect(patient: &Patient, changes: &[Change]) -> Expected {
    let mut all = changes.iter().map(|change| match change.path.extension() {
        Some(kind) if kind == "wal" => expect_log(patient, changes),
        _ if change.new.is_none() => Expected::Refused,
        Some(kind) if kind == "pack" => expect_pack(patient, change),
        _ if change.path.to_string_lossy().contains("MANIFEST") => expect_manifest(patient, change),
        _ => Expected::Refused,
    });
    let first = all.next().expect("invariant: a wound changes something");
    // Changes of several files are of one kind, and the strictest expectation holds.
    all.fold(
        first,
        |one, other| if one == Expected::Intact(patient.image.history.len()) { other } else { one },
    )
}

fn expect_pack(patient: &Patient, change: &Change) -> Expected {
    let covered = &patient.packs[&change.path].covered;
    let touched = |at: &usize| !change.keeps(&(*at..at + 1));
    if (0..change.old.len()).filter(touched).any(|at| covered[at]) {
        Expected::Noticed
    } else {
        Expected::Intact(patient.image.history.len())
    }
}

fn expect_log(patient: &Patient, changes: &[Change]) -> Expected {
    let image = &patient.image;
    let segments = image.files(".wal");
    // Nothing testifies to the existence of the last one.
    let is_missing = |change: &Change| change.new.is_none() && segments.last() != Some(&change.path);
    if changes.iter().any(is_missing) {
        return Expected::Refused;
    }
    let mut seen = 0;
    let batches: usize =
        segments.iter().map(|path| image.frames(path).iter().filter(|frame| frame.batch).count()).sum();
    let before = image.history.len() - batches;
    let mut damaged = false;
    for path in &segments {
        let change = changes.iter().find(|change| change.is_of(path));
        let intact = |range: &Range<usize>| change.is_none_or(|change| change.keeps(range));
        let frames = image.frames(path);
        let first_bad = frames.iter().position(|frame| !intact(&frame.range)).unwrap_or(frames.len());
        if damaged {
            // Behind the log's end: readable frames testify that every older segment was durable.
            if frames[..first_bad].iter().any(|frame| frame.synced > 0) {
                return Expected::Refused;
            }
            continue;
        }
        seen += frames[..first_bad].iter().filter(|frame| frame.batch).count();
        if first_bad < frames.len() {
            damaged = true;
            let start = frames[first_bad].range.start as u64;
            let mut behind = frames[first_bad + 1..].iter();
            if behind.any(|frame| frame.synced > start && intact(&frame.range)) {
                return Expected::Refused;
            }
        }
    }
    Expected::Intact(image.flushed.max(before + seen))
}

fn expect_manifest(patient: &Patient, change: &Change) -> Expected {
    let frames = patient.image.frames(&change.path);
    match frames.iter().position(|frame| !change.keeps(&frame.range)) {
        None => Expected::Intact(patient.image.history.len()),
        Some(0) => Expected::Refused,
        Some(bad) if frames[bad + 1..].iter().any(|frame| change.keeps(&frame.range)) => Expected::Refused,
        // The last edit is lost. Its effects may contradict the rest, or are found again in the log; or what it dropped
        // has been punched out of a pack that lives on.
        Some(_) => Expected::NoticedOrComplete,
    }
}
