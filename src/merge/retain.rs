//! The retain rules: which versions a flush or a compaction keeps.
//!
//! This is the one place that decides it. The rules, for a version with sequence number `s` of a key:
//!
//! 1. It is dropped if a newer version of the key in the same job, or a newer range tombstone over it, is visible to
//!    every snapshot that sees `s`. That is: no snapshot lies at or above `s` and below the newer one.
//! 2. A tombstone is dropped if no snapshot lies below `s` and no table outside the job may hold an older version.
//!    All older versions in the job are dropped with it, by rule 1. A range tombstone is a tombstone of each of its
//!    keys.
//!
//! For a version that stays only because of snapshots, the verdict says which ones ([`Verdict::KeepFor`]): without
//! them the same job would drop it.
//!
//! The newest state always has a reader. Snapshots taken after the job started are at least as new as everything in
//! the job. The filter knows one key at a time and no tables: the caller says what lies outside the job.

use crate::types::{Holders, Kind, Seq, Stamp};

/// The verdict on a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The version is written to the output.
    Keep,
    /// The same, but only because of these readers at past sequence numbers: without them a job over the same tables
    /// would drop it.
    KeepFor(Holders),
    /// No reader can see it behind a newer version or range tombstone.
    DropShadowed,
    /// A tombstone with no older version below it.
    DropTombstone,
}

impl Verdict {
    /// Whether the version stays.
    #[must_use]
    pub fn is_kept(self) -> bool {
        matches!(self, Self::Keep | Self::KeepFor(_))
    }

    /// The readers because of which alone it stays.
    #[must_use]
    pub fn holders(self) -> Option<Holders> {
        match self {
            Self::KeepFor(holders) => Some(holders),
            Self::Keep | Self::DropShadowed | Self::DropTombstone => None,
        }
    }
}

/// Decides on versions in the order of a forward compaction: keys ascending, stamps of a key descending.
pub struct VersionFilter {
    snapshots: Vec<Seq>,
    /// Sequence number of the version of the key that was judged last.
    newer: Option<Seq>,
}

impl VersionFilter {
    /// A filter for a job while readers hold `snapshots`, in ascending order.
    #[must_use]
    pub fn new(snapshots: &[Seq]) -> Self {
        debug_assert!(snapshots.is_sorted(), "snapshots must ascend");
        Self { snapshots: snapshots.to_vec(), newer: None }
    }

    /// Judges the newest version of a key in the job. `over`: the oldest of the job's range tombstones over the key
    /// that are newer than the version. `older_outside`: whether a table outside the job may hold an older version of
    /// the key; called for tombstones only.
    pub fn judge_first(
        &mut self,
        stamp: Stamp,
        over: Option<Seq>,
        older_outside: impl FnOnce() -> bool,
    ) -> Verdict {
        self.newer = None;
        self.judge_next(stamp, over, older_outside)
    }

    /// Judges the next older version of the key judged last.
    pub fn judge_next(
        &mut self,
        stamp: Stamp,
        over: Option<Seq>,
        older_outside: impl FnOnce() -> bool,
    ) -> Verdict {
        let seq = stamp.seq();
        debug_assert!(self.newer.is_none_or(|newer| seq <= newer), "versions must descend");
        let newer = self.newer.replace(seq).into_iter().chain(over).min();
        let verdict = match newer.map(|newer| self.between(seq, newer)) {
            Some(None) => return Verdict::DropShadowed,
            Some(Some(holders)) => Verdict::KeepFor(holders),
            None => Verdict::Keep,
        };
        match stamp.kind() {
            Kind::Delete => self.judge_shadowed(seq, verdict, older_outside),
            Kind::Put | Kind::Separated => verdict,
        }
    }

    /// Judges a range tombstone. `newer`: the next newer one over the same keys that some reader cannot see.
    /// `older_outside`: as for versions, for any key of the range.
    pub fn judge_range(&self, seq: Seq, newer: Option<Seq>, older_outside: impl FnOnce() -> bool) -> Verdict {
        let holders = newer.and_then(|newer| self.between(seq, newer));
        self.judge_shadowed(seq, holders.map_or(Verdict::Keep, Verdict::KeepFor), older_outside)
    }

    /// The final verdict on a tombstone, of a key or of a range, whose verdict by rule 1 is given.
    fn judge_shadowed(&self, seq: Seq, verdict: Verdict, older_outside: impl FnOnce() -> bool) -> Verdict {
        let oldest = self.snapshots.first().filter(|_| !planted!("tombstone-dropped-above-a-snapshot"));
        let reaches_all = oldest.is_none_or(|&oldest| seq <= oldest);
        let hides_nothing = (reaches_all || verdict == Verdict::Keep) && !older_outside();
        match (hides_nothing, reaches_all) {
            (true, true) => Verdict::DropTombstone,
            (true, false) if planted!("tombstone-held-for-nobody") => verdict,
            (true, false) => self.between(Seq::ZERO, seq).map_or(verdict, Verdict::KeepFor),
            (false, _) => verdict,
        }
    }

    /// Whether a range tombstone numbered `over` hides from every reader all older versions from number `oldest` on.
    #[must_use]
    pub fn is_hidden(&self, oldest: Seq, over: Seq) -> bool {
        self.between(oldest, over).is_none()
    }

    /// The snapshots that see `older` but not `newer`.
    fn between(&self, older: Seq, newer: Seq) -> Option<Holders> {
        let older = if planted!("version-at-a-snapshot-dropped") { older.plus(1) } else { older };
        Holders::between(&self.snapshots, older, newer)
    }
}

#[cfg(test)]
mod tests {
    use super::{Verdict, VersionFilter};
    use crate::types::{Holders, Kind, Seq, Stamp};

    /// Where a version of the one key lies, and what it is.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Version {
        Absent,
        Inside(Kind),
        Outside(Kind),
    }

    /// What a history looks like: version `i` has sequence number `i + 1`.
    type History = [Version; 5];

    const CHOICES: [Version; 5] = [
        Version::Absent,
        Version::Inside(Kind::Put),
        Version::Inside(Kind::Delete),
        Version::Outside(Kind::Put),
        Version::Outside(Kind::Delete),
    ];

    /// All histories, each with all sets of snapshots.
    fn cases() -> impl Iterator<Item = (History, Vec<Seq>)> {
        (0..5usize.pow(5)).flat_map(|code| {
            let history = std::array::from_fn(|i| CHOICES[code / 5usize.pow(i as u32) % 5]);
            (0..1u32 << 6)
                .map(move |set| (history, (0..6u64).filter(|seq| set >> seq & 1 == 1).map(Seq).collect()))
        })
    }

    /// The sequence number of the put that a reader finds.
    fn answer(history: &History, reader: Seq) -> Option<usize> {
        let newest = (0..reader.0.min(5) as usize).rev().find(|&i| history[i] != Version::Absent)?;
        matches!(history[newest], Version::Inside(Kind::Put) | Version::Outside(Kind::Put)).then_some(newest)
    }

    /// The history after a job over everything inside.
    fn run(history: &History, snapshots: &[Seq], older_outside: impl Fn(usize) -> bool) -> History {
        judged(history, snapshots, older_outside).0
    }

    /// The same, and for whom alone versions are kept.
    fn judged(
        history: &History,
        snapshots: &[Seq],
        older_outside: impl Fn(usize) -> bool,
    ) -> (History, [Option<Holders>; 5]) {
        let mut filter = VersionFilter::new(snapshots);
        let (mut after, mut holders) = (*history, [None; 5]);
        let mut first = true;
        for i in (0..5).rev() {
            let Version::Inside(kind) = history[i] else { continue };
            let stamp = Stamp::new(Seq(i as u64 + 1), kind);
            let verdict = if first {
                filter.judge_first(stamp, None, || older_outside(i))
            } else {
                filter.judge_next(stamp, None, || older_outside(i))
            };
            first = false;
            holders[i] = verdict.holders();
            assert!(verdict != Verdict::DropTombstone || kind == Kind::Delete);
            if !verdict.is_kept() {
                after[i] = Version::Absent;
            }
        }
        (after, holders)
    }

    fn truly_outside(history: History) -> impl Fn(usize) -> bool {
        move |i| history[..i].iter().any(|version| matches!(version, Version::Outside(_)))
    }

    fn readers(snapshots: &[Seq]) -> impl Iterator<Item = Seq> {
        snapshots.iter().copied().chain([Seq(5), Seq::MAX])
    }

    #[test]
    fn no_reader_sees_a_job() {
        for (history, snapshots) in cases() {
            let after = run(&history, &snapshots, truly_outside(history));
            for reader in readers(&snapshots) {
                let (was, is) = (answer(&history, reader), answer(&after, reader));
                assert_eq!(was, is, "reader {reader} with {snapshots:?}: {history:?} became {after:?}");
            }
        }
    }

    #[test]
    fn what_remains_is_needed_by_a_reader() {
        // With nothing outside, a put remains only if some reader finds it. A tombstone remains only if a snapshot
        // lies below it, for it may hide something from the newer ones.
        for (history, snapshots) in cases() {
            if history.iter().any(|version| matches!(version, Version::Outside(_))) {
                continue;
            }
            let after = run(&history, &snapshots, |_| false);
            for (i, version) in after.iter().enumerate() {
                let needed = match version {
                    Version::Absent => true,
                    Version::Inside(Kind::Delete) => {
                        snapshots.iter().any(|snapshot| snapshot.0 < i as u64 + 1)
                    }
                    _ => readers(&snapshots).any(|reader| answer(&history, reader) == Some(i)),
                };
                assert!(needed, "version {i} with {snapshots:?}: {history:?} became {after:?}");
            }
        }
    }

    #[test]
    fn what_is_held_goes_once_its_holders_have_and_nothing_else_does() {
        let mut held_versions = 0;
        for (history, snapshots) in cases() {
            let outside = truly_outside(history);
            let (after, holders) = judged(&history, &snapshots, &outside);
            for gone in 0..1u32 << snapshots.len() {
                let left = snapshots.iter().enumerate().filter(|(at, _)| gone >> at & 1 == 0);
                let left: Vec<_> = left.map(|(_, seq)| *seq).collect();
                let later = run(&after, &left, truly_outside(after));
                for i in (0..5).filter(|&i| after[i] != Version::Absent) {
                    let Some(by) = holders[i] else { continue };
                    held_versions += 1;
                    // Of some of several the groups know nothing; none goes too early, all go at last.
                    assert!(
                        !by.are_gone(&left) || later[i] == Version::Absent,
                        "{history:?} {snapshots:?} {left:?}"
                    );
                }
                let is_put = |i: usize| matches!(after[i], Version::Inside(Kind::Put));
                for i in (0..5).filter(|&i| is_put(i) && holders[i].is_none_or(|by| !by.are_gone(&left))) {
                    assert_ne!(later[i], Version::Absent, "{history:?} {snapshots:?} {left:?}");
                }
            }
        }
        assert!(held_versions > 10_000, "{held_versions}");
    }

    #[test]
    fn a_wrong_word_about_the_outside_brings_deleted_values_back() {
        let revived = cases().any(|(history, snapshots)| {
            let after = run(&history, &snapshots, |_| false);
            readers(&snapshots).any(|reader| answer(&history, reader) != answer(&after, reader))
        });
        assert!(revived, "the model test has no case that depends on tables outside");
    }

    #[test]
    fn a_range_tombstone_hides_what_no_snapshot_sees_without_it() {
        let put = |seq| Stamp::new(Seq(seq), Kind::Put);
        let mut filter = VersionFilter::new(&[Seq(5)]);
        assert_eq!(filter.judge_first(put(8), Some(Seq(9)), || false), Verdict::DropShadowed);
        let held = Verdict::KeepFor(Holders { first: Seq(5), last: Seq(5) });
        assert_eq!(filter.judge_next(put(5), Some(Seq(9)), || false), held);
        assert_eq!(filter.judge_next(put(4), Some(Seq(9)), || false), Verdict::DropShadowed);
        assert_eq!(filter.judge_first(put(4), Some(Seq(5)), || false), Verdict::DropShadowed);
        assert_eq!(filter.judge_first(put(4), Some(Seq(6)), || false), held);
        assert!(filter.is_hidden(Seq(6), Seq(9)) && !filter.is_hidden(Seq(5), Seq(9)));
        assert_eq!(filter.judge_range(Seq(5), None, || false), Verdict::DropTombstone);
        assert_eq!(filter.judge_range(Seq(5), None, || true), Verdict::Keep);
        assert_eq!(filter.judge_range(Seq(6), None, || false), held);
        assert_eq!(filter.judge_range(Seq(6), None, || true), Verdict::Keep);
        assert_eq!(filter.judge_range(Seq(4), Some(Seq(9)), || true), held);
        assert_eq!(filter.judge_range(Seq(4), Some(Seq(9)), || false), Verdict::DropTombstone);
    }

    #[test]
    fn keys_are_judged_apart() {
        let mut filter = VersionFilter::new(&[]);
        let put = |seq| Stamp::new(Seq(seq), Kind::Put);
        assert_eq!(filter.judge_first(put(9), None, || false), Verdict::Keep);
        assert_eq!(filter.judge_next(put(8), None, || false), Verdict::DropShadowed);
        assert_eq!(filter.judge_first(put(3), None, || false), Verdict::Keep);
        let delete = Stamp::new(Seq(2), Kind::Delete);
        assert_eq!(filter.judge_first(delete, None, || true), Verdict::Keep);
        assert_eq!(filter.judge_first(delete, None, || false), Verdict::DropTombstone);
    }
}
