//! What the simulated devices were told to read ahead: transfers that have begun and whose bytes nobody has read yet.
//!
//! The first read of these bytes waits for their transfer and costs no other one. A machine without a page cache forgets them by that:
//! a second read goes to the device again, as every read does there.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

/// Transfers by the number of the file.
#[derive(Default)]
pub(super) struct Transfers {
    /// Those of a file do not overlap. There are few: callers read what they are about to ask for.
    files: HashMap<u64, Vec<Transfer>>,
}

struct Transfer {
    bytes: Range<u64>,
    done: Duration,
}

/// What a read finds of them.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Begun {
    /// Bytes of the read that were begun ahead.
    pub(super) bytes: u64,
    /// When the last of them are there.
    pub(super) until: Duration,
}

impl Transfers {
    /// The parts of `range` that no transfer has.
    pub(super) fn missing(&self, file: u64, range: Range<u64>) -> Vec<Range<u64>> {
        let mut missing = vec![range];
        missing.retain(|range| !range.is_empty());
        for Transfer { bytes, .. } in self.files.get(&file).into_iter().flatten() {
            missing = missing.iter().flat_map(|part| without(part, bytes)).collect();
        }
        missing
    }

    /// Notes that `bytes` of a file are there from `done` on.
    pub(super) fn begin(&mut self, file: u64, bytes: Range<u64>, done: Duration) {
        self.forget(file, &bytes);
        self.files.entry(file).or_default().push(Transfer { bytes, done });
    }

    /// Takes what there is of `range`, which is read now.
    pub(super) fn take(&mut self, file: u64, range: &Range<u64>) -> Option<Begun> {
        let transfers = self.files.get_mut(&file)?;
        let mut found: Option<Begun> = None;
        let mut rest = Vec::new();
        for Transfer { bytes, done } in transfers.drain(..) {
            let taken = bytes.start.max(range.start)..bytes.end.min(range.end);
            if !taken.is_empty() {
                let before = found.get_or_insert(Begun { bytes: 0, until: done });
                before.bytes += taken.end - taken.start;
                before.until = before.until.max(done);
            }
            rest.extend(without(&bytes, range).map(|bytes| Transfer { bytes, done }));
        }
        *transfers = rest;
        if transfers.is_empty() {
            self.files.remove(&file);
        }
        found
    }

    /// Forgets what there is of `range`, which is written or gone.
    pub(super) fn forget(&mut self, file: u64, range: &Range<u64>) {
        self.take(file, range);
    }
}

/// What of `whole` lies before and behind `part`.
fn without(whole: &Range<u64>, part: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let before = whole.start..whole.end.min(part.start);
    let behind = whole.start.max(part.end)..whole.end;
    [before, behind].into_iter().filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    const fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn each_byte_is_taken_once() {
        let mut transfers = Transfers::default();
        transfers.begin(1, 100..200, at(1));
        transfers.begin(1, 200..300, at(2));
        assert_eq!(transfers.missing(1, 50..350), [50..100, 300..350]);
        assert_eq!(transfers.missing(1, 120..280), []);
        assert_eq!(transfers.missing(2, 120..280), slice::from_ref(&(120..280)));
        assert_eq!(transfers.take(2, &(0..1000)), None);
        assert_eq!(transfers.take(1, &(150..220)), Some(Begun { bytes: 70, until: at(2) }));
        assert_eq!(transfers.missing(1, 100..300), slice::from_ref(&(150..220)));
        assert_eq!(transfers.take(1, &(0..160)), Some(Begun { bytes: 50, until: at(1) }));
        transfers.forget(1, &(220..299));
        assert_eq!(transfers.take(1, &(0..1000)), Some(Begun { bytes: 1, until: at(2) }));
        assert!(transfers.files.is_empty());
        (0..100).for_each(|n| transfers.begin(1, 2 * n..2 * n + 1, at(n)));
        assert_eq!(transfers.missing(1, 0..200).len(), 100);
    }
}
