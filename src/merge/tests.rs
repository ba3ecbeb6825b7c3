//! Tests of merges, and of what readers see of them, against sorted vectors.

use super::{
    Cursor, Masked, MergeBackward, MergeForward, PinValue, Span, Tombstones, VisibleBackward, VisibleForward,
    fragment, newer_in, span_at,
};
use crate::types::{Key, KeyRange, Kind, RangeTombstone, Seq, Stamp, UpperBound};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

type Record = (Vec<u8>, Reverse<Stamp>, Vec<u8>);

/// A cursor over a sorted vector that fails when its fuse has burnt down.
struct VecCursor {
    records: Rc<Vec<Record>>,
    position: Option<usize>,
    fuse: usize,
    /// Whether a seek may leave it in front of an entry; then, at this key.
    may_wait: bool,
    gate: Option<Vec<u8>>,
}

#[derive(Debug, PartialEq)]
struct Burnt;

impl VecCursor {
    fn new(records: Vec<Record>) -> Self {
        assert!(records.is_sorted());
        Self { records: Rc::new(records), position: None, fuse: usize::MAX, may_wait: false, gate: None }
    }

    fn to(&mut self, position: Option<usize>) -> Result<(), Burnt> {
        (self.position, self.gate) = (None, None);
        self.fuse = self.fuse.checked_sub(1).ok_or(Burnt)?;
        self.position = position.filter(|&position| position < self.records.len());
        Ok(())
    }

    /// One that waits wherever it may.
    fn waiting(records: Vec<Record>) -> Self {
        Self { may_wait: true, ..Self::new(records) }
    }

    fn record(&self) -> &Record {
        &self.records[self.position.unwrap()]
    }

    fn lower_bound(&self, key: &[u8], stamp: Stamp) -> usize {
        self.records.partition_point(|(k, s, _)| (&k[..], *s) < (key, Reverse(stamp)))
    }
}

impl Cursor for VecCursor {
    type Error = Burnt;

    fn valid(&self) -> bool {
        self.position.is_some()
    }

    fn waits(&self) -> bool {
        self.gate.is_some()
    }

    fn key(&self) -> &[u8] {
        self.gate.as_ref().unwrap_or_else(|| &self.record().0)
    }

    fn stamp(&self) -> Stamp {
        if self.waits() { Stamp::MAX } else { self.record().1.0 }
    }

    fn value(&self) -> &[u8] {
        assert!(!self.waits());
        &self.record().2
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<(), Burnt> {
        let at = self.lower_bound(key, stamp);
        self.to(Some(at))?;
        if self.may_wait && self.valid() && self.key() > key {
            // The first key that is behind, or one before it.
            self.gate =
                Some(if at.is_multiple_of(2) { self.record().0.clone() } else { [key, &[0]].concat() });
        }
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<(), Burnt> {
        self.to(self.lower_bound(key, stamp).checked_sub(1))
    }

    fn seek_first(&mut self) -> Result<(), Burnt> {
        self.to(Some(0))
    }

    fn seek_last(&mut self) -> Result<(), Burnt> {
        self.to(self.records.len().checked_sub(1))
    }

    fn next(&mut self) -> Result<(), Burnt> {
        self.to(Some(self.position.unwrap() + usize::from(!self.waits())))
    }

    fn prev(&mut self) -> Result<(), Burnt> {
        self.to(self.position.unwrap().checked_sub(1))
    }
}

impl PinValue for VecCursor {
    type Pinned = Vec<u8>;

    fn pin_value(&self) -> Vec<u8> {
        self.value().to_vec()
    }
}

/// The remaining records of a walk; the macro stands for a trait that the four types have no other use for.
macro_rules! drain {
    ($walk:expr $(, $outlook:expr)?) => {{
        let mut records = Vec::new();
        while $walk.valid() {
            records.push(($walk.key().to_vec(), Reverse($walk.stamp()), $walk.value().to_vec()));
            $walk.step($($outlook)?).unwrap();
        }
        records
    }};
}

/// An entry's value follows from its place, so that equal entries of two sources are the same entry.
fn record(key: Vec<u8>, seq: u64, deletes: bool) -> Record {
    let kind = if deletes { Kind::Delete } else { Kind::Put };
    let value = if deletes { Vec::new() } else { [&key[..], &seq.to_le_bytes()[..1]].concat() };
    (key, Reverse(Stamp::new(Seq(seq), kind)), value)
}

fn key_strategy() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(prop_oneof![Just(0), Just(0xff)], 0..3),
        prop::collection::vec(0..2u8, 3).prop_map(|tail| [&b"a shared prefix/"[..], &tail[..]].concat()),
        prop::collection::vec(0..2u8, 7..10),
        prop::collection::vec(0xfe..=0xffu8, 7..10),
        // So often that a source has more versions of it than are passed by steps.
        Just(b"hot".to_vec()),
    ]
}

/// Up to six sources; few distinct places, so that sources share keys and whole entries.
fn sources_strategy(count: Range<usize>) -> impl Strategy<Value = Vec<Vec<Record>>> {
    let record = (key_strategy(), 1..30u64).prop_map(|(key, seq)| record(key, seq, seq % 3 == 0));
    let source = prop::collection::btree_set(record, 0..40).prop_map(|set| set.into_iter().collect());
    prop::collection::vec(source, count)
}

/// Of each two one that waits.
fn cursors(sources: &[Vec<Record>]) -> Vec<VecCursor> {
    let make = [VecCursor::new, VecCursor::waiting];
    sources.iter().cloned().enumerate().map(|(at, records)| make[at % 2](records)).collect()
}

fn union(sources: &[Vec<Record>]) -> Vec<Record> {
    sources.iter().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// The newest put at or below `upto` of every key that is not deleted then.
fn visible(records: &[Record], upto: Seq) -> Vec<Record> {
    let mut newest: BTreeMap<&[u8], &Record> = BTreeMap::new();
    for record in records.iter().filter(|record| record.1.0.seq() <= upto) {
        newest.entry(&record.0).or_insert(record);
    }
    newest.into_values().filter(|record| record.1.0.kind() == Kind::Put).cloned().collect()
}

fn reversed(mut records: Vec<Record>) -> Vec<Record> {
    records.reverse();
    records
}

/// Range tombstones of a source, as a reader sees them.
struct Fragments(Vec<RangeTombstone>, Seq);

impl Tombstones for Fragments {
    type Error = Burnt;

    fn span(&self, key: &[u8]) -> Result<Span, Burnt> {
        Ok(span_at([&self.0[..]], key, self.1))
    }
}

fn tombstone_strategy() -> impl Strategy<Value = RangeTombstone> {
    (key_strategy(), key_strategy(), 1..30u64).prop_map(|(a, b, seq)| {
        let end = if a == b {
            UpperBound::Unbounded
        } else {
            UpperBound::Excluded(Key::from(&*a).max((*b).into()))
        };
        RangeTombstone { range: KeyRange::half_open(a.min(b), end), seq: Seq(seq) }
    })
}

/// Numbers per source: of two sources, the first has the higher ones.
const SEQS: u64 = 100;

/// Makes each source newer than the next, as they are searched.
fn in_order_of_age(
    mut sources: Vec<(Vec<Record>, Vec<RangeTombstone>)>,
) -> Vec<(Vec<Record>, Vec<RangeTombstone>)> {
    for (source, (records, tombstones)) in sources.iter_mut().rev().enumerate() {
        let base = SEQS * source as u64;
        for (_, stamp, _) in records.iter_mut() {
            stamp.0 = Stamp::new(stamp.0.seq().plus(base), stamp.0.kind());
        }
        tombstones.iter_mut().for_each(|tombstone| tombstone.seq = tombstone.seq.plus(base));
    }
    sources
}

/// Each source behind what its own tombstones and those of newer sources hide at `upto`.
fn masked(sources: &[(Vec<Record>, Vec<RangeTombstone>)], upto: Seq) -> Vec<Masked<VecCursor, Fragments>> {
    let mut newer = Vec::new();
    let mask = |(records, tombstones): &(Vec<Record>, Vec<RangeTombstone>)| {
        let own = Arc::new(Fragments(fragment(tombstones, &[upto]), upto));
        let masked = Masked::new(VecCursor::new(records.clone()), newer.clone(), Some(own.clone()));
        newer.push(own);
        masked
    };
    sources.iter().map(mask).collect()
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 512,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn masked_sources_show_what_no_range_tombstone_hides(
        sources in sources_strategy(1..5),
        tombstones in prop::collection::vec(prop::collection::vec(tombstone_strategy(), 0..5), 4),
        upto in 0..5 * SEQS,
        from in key_strategy(),
    ) {
        let (sources, upto) = (in_order_of_age(sources.into_iter().zip(tombstones).collect()), Seq(upto));
        let hidden = |record: &Record| sources.iter().flat_map(|(_, tombstones)| tombstones).any(|tombstone| {
            let newer = record.1.0.seq() < tombstone.seq && tombstone.seq <= upto;
            newer && tombstone.range.contains(&record.0)
        });
        let mut records: Vec<_> = sources.iter().flat_map(|(records, _)| records).cloned().collect();
        records.sort_unstable();
        records.retain(|record| !hidden(record));
        let expected = visible(&records, upto);

        let mut forward = VisibleForward::new(MergeForward::new(masked(&sources, upto)), upto);
        forward.seek_first(&()).unwrap();
        prop_assert_eq!(drain!(forward, &()), expected.clone());
        forward.seek(&from, &()).unwrap();
        prop_assert_eq!(drain!(forward, &()), expected.iter().filter(|r| r.0 >= from).cloned().collect::<Vec<_>>());
        let mut backward = VisibleBackward::new(MergeBackward::new(masked(&sources, upto)), upto);
        backward.seek_last(&()).unwrap();
        prop_assert_eq!(drain!(backward, &()), reversed(expected.clone()));
        backward.seek_before(&from, &()).unwrap();
        let before = expected.into_iter().filter(|record| record.0 < from).collect();
        prop_assert_eq!(drain!(backward, &()), reversed(before));
    }

    #[test]
    fn merges_equal_the_sorted_union(
        sources in sources_strategy(0..7),
        seeks in prop::collection::vec((key_strategy(), 0..31u64), 1..4),
    ) {
        let model = union(&sources);
        let mut forward = MergeForward::new(cursors(&sources));
        let mut backward = MergeBackward::new(cursors(&sources));
        prop_assert!(!forward.valid() && !backward.valid());
        for (key, seq) in seeks {
            let stamp = Stamp::upto(Seq(seq));
            let (before, behind) =
                model.split_at(model.partition_point(|(k, s, _)| (k, *s) < (&key, Reverse(stamp))));
            forward.seek(&key, stamp).unwrap();
            prop_assert_eq!(drain!(forward), behind);
            backward.seek_before(&key, stamp).unwrap();
            prop_assert_eq!(drain!(backward), reversed(before.to_vec()));
        }
        forward.seek_first().unwrap();
        prop_assert_eq!(drain!(forward), model.clone());
        backward.seek_last().unwrap();
        prop_assert_eq!(drain!(backward), reversed(model));
    }

    #[test]
    fn a_step_that_rules_out_the_key_it_has_left_is_right(sources in sources_strategy(0..7)) {
        let mut forward = MergeForward::new(cursors(&sources));
        forward.seek_first().unwrap();
        while forward.valid() {
            let left = forward.key().to_vec();
            let may_be_same = forward.step().unwrap();
            prop_assert!(may_be_same || !forward.valid() || forward.key() != left);
        }
        let mut backward = MergeBackward::new(cursors(&sources));
        backward.seek_last().unwrap();
        while backward.valid() {
            let left = backward.key().to_vec();
            let may_be_same = backward.step().unwrap();
            prop_assert!(may_be_same || !backward.valid() || backward.key() != left);
        }
    }

    #[test]
    fn readers_see_the_newest_version_at_their_sequence_number(
        sources in sources_strategy(0..7),
        seeks in prop::collection::vec(key_strategy(), 1..4),
        upto in 0..31u64,
    ) {
        let model = visible(&union(&sources), Seq(upto));
        let mut forward = VisibleForward::new(MergeForward::new(cursors(&sources)), Seq(upto));
        let mut backward = VisibleBackward::new(MergeBackward::new(cursors(&sources)), Seq(upto));
        prop_assert!(!forward.valid() && !backward.valid());
        for key in seeks {
            let (before, behind) = model.split_at(model.partition_point(|record| record.0 < key));
            forward.seek(&key, &()).unwrap();
            prop_assert_eq!(drain!(forward, &()), behind);
            backward.seek_before(&key, &()).unwrap();
            prop_assert_eq!(drain!(backward, &()), reversed(before.to_vec()));
        }
        forward.seek_first(&()).unwrap();
        prop_assert_eq!(drain!(forward, &()), model.clone());
        backward.seek_last(&()).unwrap();
        prop_assert_eq!(drain!(backward, &()), reversed(model));
    }

    #[test]
    fn a_failing_source_makes_the_walk_fail_there(
        sources in sources_strategy(1..7),
        choice in any::<prop::sample::Index>(),
        fuse in 1..30usize,
        upto in 0..31u64,
    ) {
        let broken = || {
            let mut cursors = cursors(&sources);
            let index = choice.index(cursors.len());
            cursors[index].fuse = fuse;
            cursors
        };
        // A source needs one operation for the seek and one for each of its records.
        let burns = fuse <= sources[choice.index(sources.len())].len();
        let model = union(&sources);
        let mut seen = Vec::new();
        let mut forward = MergeForward::new(broken());
        let mut outcome = forward.seek_first();
        while outcome.is_ok() && forward.valid() {
            seen.push((forward.key().to_vec(), Reverse(forward.stamp()), forward.value().to_vec()));
            outcome = forward.step().map(drop);
        }
        prop_assert_eq!(outcome.is_err(), burns);
        prop_assert!(!forward.valid());
        prop_assert!(model.starts_with(&seen));
        prop_assert!(burns || seen == model);

        // A skip may cost a seek or save steps: how often the source is used is not foreseen here.
        let model = reversed(visible(&model, Seq(upto)));
        let mut seen = Vec::new();
        let mut backward = VisibleBackward::new(MergeBackward::new(broken()), Seq(upto));
        let mut outcome = backward.seek_last(&());
        while outcome.is_ok() && backward.valid() {
            seen.push((backward.key().to_vec(), Reverse(backward.stamp()), backward.value().to_vec()));
            outcome = backward.step(&());
        }
        prop_assert!(!backward.valid());
        prop_assert!(model.starts_with(&seen));
        prop_assert!(outcome.is_err() || seen == model);
    }
}

const VERSIONS: u64 = 5_000;
/// Movements of a cursor over as many versions that a walk may take: steps before it seeks, seeks, and a few around them.
const MOVEMENTS_MAX: usize = 40;

/// The versions of a hot key, the newest of which are in the first source, and the keys around it.
fn hot() -> [Vec<Record>; 2] {
    let hot = |seqs: Range<u64>| seqs.rev().map(|seq| record(b"hot".to_vec(), seq, seq % 7 == 1));
    let around = |key: &[u8]| record(key.to_vec(), 1, false);
    let older = [around(b"a")].into_iter().chain(hot(1..VERSIONS / 2)).chain([around(b"z")]);
    [hot(VERSIONS / 2..VERSIONS + 1).collect(), older.collect()]
}

fn limited(mut cursors: Vec<VecCursor>) -> Vec<VecCursor> {
    cursors.iter_mut().for_each(|cursor| cursor.fuse = MOVEMENTS_MAX);
    cursors
}

#[test]
fn thousands_of_versions_of_a_key_are_passed_in_a_few_operations() {
    let sources = hot();
    let all = union(&sources);
    let around =
        [0, 1, 2, 6, 8, 20, VERSIONS / 2 - 1, VERSIONS / 2, VERSIONS / 2 + 1, VERSIONS - 1, VERSIONS];
    for upto in around.map(Seq).into_iter().chain([Seq::MAX]) {
        let mut forward = VisibleForward::new(MergeForward::new(limited(cursors(&sources))), upto);
        forward.seek_first(&()).unwrap();
        assert_eq!(drain!(forward, &()), visible(&all, upto), "at {upto}");
        let mut backward = VisibleBackward::new(MergeBackward::new(limited(cursors(&sources))), upto);
        backward.seek_last(&()).unwrap();
        assert_eq!(drain!(backward, &()), reversed(visible(&all, upto)), "at {upto}");
    }
}

#[test]
fn what_is_newer_is_found_in_a_few_operations_among_thousands_of_versions() {
    let records = union(&hot());
    let found = |start: &[u8], end: &[u8], since: u64| {
        let range = KeyRange::half_open(start, UpperBound::Excluded(end.into()));
        let cursor = limited(vec![VecCursor::new(records.clone())]).remove(0);
        newer_in(cursor, &range, Seq(since)).unwrap().map(|(key, seq)| (key.to_vec(), seq.0))
    };
    let newest = Some((b"hot".to_vec(), VERSIONS));
    assert_eq!(found(b"", b"zz", 0), Some((b"a".to_vec(), 1)));
    assert_eq!(found(b"", b"zz", 1), newest);
    assert_eq!(found(b"", b"zz", VERSIONS - 1), newest);
    assert_eq!(found(b"", b"zz", VERSIONS), None);
    assert_eq!(found(b"hot", b"hot\0", VERSIONS), None);
    assert_eq!(found(b"hot\0", b"zz", 0), Some((b"z".to_vec(), 1)));
    assert_eq!(found(b"b", b"hot", 0), None);
}

#[test]
fn thousands_of_versions_that_a_range_tombstone_hides_are_passed_in_a_few_operations() {
    let records = hot().concat();
    let records = union(&[records]);
    for over in [1, 2, 8, 9, 2000, VERSIONS - 1, VERSIONS, VERSIONS + 1].map(Seq) {
        let own =
            vec![RangeTombstone { range: KeyRange::half_open(*b"b", UpperBound::Unbounded), seq: over }];
        let masked = || {
            let cursors = limited(vec![VecCursor::new(records.clone())]);
            let own = Arc::new(Fragments(own.clone(), Seq::MAX));
            cursors.into_iter().map(|cursor| Masked::new(cursor, Vec::new(), Some(own.clone()))).collect()
        };
        let mut shown = records.clone();
        shown.retain(|record| record.0 == b"a" || record.1.0.seq() >= over);
        for upto in [Seq(1000), Seq(VERSIONS), Seq::MAX] {
            let expected = visible(&shown, upto);
            let mut forward = VisibleForward::new(MergeForward::new(masked()), upto);
            forward.seek_first(&()).unwrap();
            assert_eq!(drain!(forward, &()), expected.clone(), "forward, {upto}, below {over}");
            let mut backward = VisibleBackward::new(MergeBackward::new(masked()), upto);
            backward.seek_last(&()).unwrap();
            assert_eq!(drain!(backward, &()), reversed(expected), "backward, {upto}, below {over}");
        }
    }
}

#[test]
fn a_seek_mends_a_merge_that_has_failed() {
    let mut source = VecCursor::new(vec![record(b"a".to_vec(), 1, false), record(b"b".to_vec(), 2, false)]);
    source.fuse = 1;
    let mut merge = MergeForward::new(vec![source]);
    merge.seek_first().unwrap();
    assert_eq!(merge.step(), Err(Burnt));
    assert!(!merge.valid());
    assert_eq!(merge.seek_first(), Err(Burnt));
    assert!(!merge.valid());
}

#[test]
fn what_a_newer_source_hides_is_left_by_a_seek() {
    let records: Vec<_> = (0..=255u8).map(|byte| record(vec![byte], 1, false)).collect();
    let range = KeyRange::half_open([10], UpperBound::Excluded([250][..].into()));
    let newer = Arc::new(Fragments(vec![RangeTombstone { range, seq: Seq(9) }], Seq(9)));
    let mut cursor = VecCursor::new(records);
    // Ten steps to the range, one into it, the seek, five steps behind it, one beyond the end.
    cursor.fuse = 1 + 10 + 1 + 6;
    let mut masked = Masked::new(cursor, vec![newer], None);
    masked.seek_first().unwrap();
    let mut keys = Vec::new();
    while masked.valid() {
        keys.push(masked.key()[0]);
        masked.next().unwrap();
    }
    assert_eq!(keys, (0..10).chain(250..=255).collect::<Vec<u8>>());
}

#[test]
fn a_masked_cursor_that_failed_is_not_valid() {
    let newer = Arc::new(Fragments(Vec::new(), Seq(9)));
    let mut cursor = VecCursor::new(vec![record(vec![1], 1, false), record(vec![2], 1, false)]);
    cursor.fuse = 1;
    let mut masked = Masked::new(cursor, vec![newer], None);
    masked.seek_first().unwrap();
    assert!(masked.valid());
    assert_eq!(masked.next(), Err(Burnt));
    assert!(!masked.valid());
}
