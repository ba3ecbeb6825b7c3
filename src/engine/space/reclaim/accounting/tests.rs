//! Tests of the accounting of packs: by hand, and against a model.

use super::*;
use crate::types::DeviceId;

const ALL: Budget = Budget { punches: usize::MAX, bytes: u64::MAX };

fn page(count: u64) -> u64 {
    count * PAGE_BYTES
}

fn pages(from: u64, to: u64) -> Range<u64> {
    page(from)..page(to)
}

fn extent(pack: u64, offset: u64, length: u64) -> Extent {
    Extent { device: DeviceId(0), pack: PackId(pack), offset, length }
}

/// Packs of `tables` tables of 8 pages each, the last of which is not full.
fn accounting(packs: u64, tables: u64) -> SpaceAccounting {
    let mut accounting = SpaceAccounting::default();
    for pack in 1..=packs {
        accounting.enter_pack(PackId(pack), page(8 * tables) + 500);
        (0..tables).for_each(|table| accounting.enter_table(&table_of(pack, table)));
    }
    accounting
}

fn table_of(pack: u64, table: u64) -> Extent {
    extent(pack, page(8 * table), page(8) - 100)
}

#[test]
fn gaps_lie_between_live_tables_and_before_the_directory() {
    let length = page(40) + 500;
    let mut live = [extent(1, page(20), 1), extent(1, 0, page(3)), extent(1, page(3), 5000)];
    // The directory of so many tables takes a page at most, wherever it begins.
    assert_eq!(gaps_between(&mut live, length), [pages(5, 20), pages(21, 39)]);
    assert_eq!(gaps_between(&mut live[..1], page(5)), [pages(3, 4)]);
    assert_eq!(gaps_between(&mut [extent(1, 0, page(39))], length), []);
}

#[test]
fn neighbours_that_die_are_one_span() {
    let mut accounting = accounting(1, 10);
    assert_eq!(accounting.release(&table_of(1, 3)), Released::Dead);
    assert_eq!(accounting.pick(ALL), None, "32 KiB are not worth a hole");
    assert_eq!(accounting.totals().worth, 0);
    assert_eq!(accounting.release(&table_of(1, 5)), Released::Dead);
    assert_eq!(accounting.pick(ALL), None);
    assert_eq!(accounting.release(&table_of(1, 4)), Released::Dead);
    let pick = accounting.pick(ALL).unwrap();
    assert_eq!((pick.pack, &pick.byte_ranges[..]), (PackId(1), &[pages(24, 48)][..]));
    assert_eq!(accounting.totals().worth, page(24));
    accounting.punched(PackId(1), &pick.byte_ranges);
    assert_eq!((accounting.pick(ALL), accounting.totals().worth), (None, 0));
    assert_eq!(accounting.totals().stored, page(56) + 500);
    assert_eq!(accounting.data_ranges(), (2, 2));
    accounting.release(&table_of(1, 0));
    let small = accounting.pick_anything(ALL, &BTreeSet::new()).unwrap();
    assert_eq!(small.byte_ranges, [pages(0, 8)]);
    accounting.punched(PackId(1), &small.byte_ranges);
    assert_eq!(accounting.data_ranges(), (2, 2));
}

#[test]
fn the_pack_with_most_of_what_is_dead_comes_first_within_the_budget() {
    let mut accounting = accounting(3, 12);
    for (pack, tables) in [(1, 2), (2, 7), (3, 3)] {
        (0..tables).for_each(|table| _ = accounting.release(&table_of(pack, table)));
    }
    accounting.release(&table_of(2, 9));
    accounting.release(&table_of(2, 10));
    let few = Budget { punches: 1, bytes: page(20) };
    let pick = accounting.pick(few).unwrap();
    assert_eq!((pick.pack, &pick.byte_ranges[..]), (PackId(2), &[pages(0, 20)][..]), "cut to the budget");
    let pick = accounting.pick(Budget { punches: 9, bytes: page(60) }).unwrap();
    assert_eq!(pick.byte_ranges, [pages(0, 56)], "a rest too small for a hole waits");
    assert_eq!(accounting.pick(ALL).unwrap().byte_ranges, [pages(0, 56), pages(72, 88)], "longest first");
    let tried = BTreeSet::from([PackId(2)]);
    let pick = accounting.pick_anything(Budget { punches: 9, bytes: 1 }, &tried).unwrap();
    assert_eq!((pick.pack, pick.byte_ranges), (PackId(3), vec![pages(0, 24)]));
}

#[test]
fn small_spans_are_punched_too_once_half_as_much_is_dead_as_lives() {
    let mut accounting = accounting(2, 10);
    (0..6).for_each(|n| _ = accounting.release(&table_of(1 + n % 2, 1 + n / 2 * 2)));
    assert!(!accounting.is_wasteful() && accounting.pick(ALL).is_none());
    accounting.release(&table_of(2, 7));
    assert!(accounting.is_wasteful());
    let pick = accounting.pick(Budget { punches: 1, bytes: page(100) }).unwrap();
    assert_eq!((pick.pack, &pick.byte_ranges[..]), (PackId(2), &[pages(8, 16)][..]));
    accounting.punched(PackId(2), &pick.byte_ranges);
    assert!(!accounting.is_wasteful() && accounting.pick(ALL).is_none());
}

#[test]
fn a_long_span_is_cut_to_what_is_asked() {
    let mut accounting = accounting(1, 200);
    (0..199).for_each(|table| _ = accounting.release(&table_of(1, table)));
    let asked = |bytes| {
        let pick = accounting.pick_anything(Budget { punches: 9, bytes }, &BTreeSet::new());
        pick.unwrap().byte_ranges
    };
    assert_eq!(asked(1), [pages(0, 256)]);
    assert_eq!(asked(page(300) + 1), [pages(0, 301)]);
    assert_eq!(asked(u64::MAX), [pages(0, 8 * 199)]);
}

#[test]
fn a_pack_that_something_stands_in_the_way_of_is_tried_again_ever_later() {
    let mut accounting = accounting(2, 4);
    (0..3).for_each(|table| _ = accounting.release(&table_of(1, table)));
    assert!(accounting.is_wasteful());
    let seconds = Duration::from_secs;
    let mut now = seconds(100);
    for pause in [1, 2, 4, 8, 16, 32, 64, 64] {
        accounting.block(PackId(1), now);
        assert!(!accounting.is_wasteful() && accounting.pick(ALL).is_none());
        assert_eq!((accounting.totals().worth, accounting.totals().kept), (0, page(24)));
        assert_eq!(accounting.next_retry(), Some(now + seconds(pause)));
        accounting.retry(now + seconds(pause) - Duration::from_nanos(1));
        assert!(!accounting.is_wasteful());
        now += seconds(pause);
        accounting.retry(now);
        assert!(accounting.is_wasteful() && accounting.pick(ALL).is_some());
        assert_eq!((accounting.next_retry(), accounting.totals().kept), (None, 0));
    }
    accounting.cleared(PackId(1));
    accounting.block(PackId(1), now);
    assert_eq!(accounting.next_retry(), Some(now + seconds(1)));
    // Who needs space does not wait for that.
    assert!(accounting.pick_anything(ALL, &BTreeSet::new()).is_some());
    let dead = accounting.release(&table_of(1, 3));
    assert_eq!(dead, Released::Last(DeadPack { id: PackId(1), bytes: page(32) + 500, is_whole: true }));
    assert_eq!((accounting.next_retry(), accounting.totals().kept), (None, 0));
}

#[test]
fn i8_what_is_not_known_as_live_does_not_become_dead_and_what_is_live_is_never_offered() {
    let mut accounting = accounting(1, 4);
    for unknown in [table_of(2, 0), extent(1, page(1), 100), extent(1, 0, page(8)), extent(1, page(32), 1)] {
        assert_eq!(accounting.release(&unknown), Released::Unknown);
    }
    assert_eq!(accounting.release(&table_of(1, 1)), Released::Dead);
    assert_eq!(accounting.release(&table_of(1, 1)), Released::Unknown, "twice");
    // A mistaken word about gaps, with a live table in each.
    accounting.enter_gaps(PackId(1), &[pages(0, 16), pages(20, 32)], &[pages(0, 1), pages(23, 25)]);
    let offered = accounting.pick_anything(ALL, &BTreeSet::new()).unwrap();
    assert_eq!(offered.byte_ranges, [pages(8, 16)]);
    assert_eq!(accounting.totals().stored, page(32) + 500);
}

#[test]
fn what_is_a_hole_when_the_store_is_opened_does_not_count() {
    let mut accounting = accounting(1, 10);
    let mut live: Vec<Extent> = [0, 1, 9].map(|table| table_of(1, table)).into();
    let mut reopened = SpaceAccounting::default();
    reopened.enter_pack(PackId(1), page(80) + 500);
    live.iter().for_each(|extent| reopened.enter_table(extent));
    let gaps = gaps_between(&mut live, page(80) + 500);
    assert_eq!(gaps, [pages(16, 72)]);
    reopened.enter_gaps(PackId(1), &gaps, &[pages(40, 72)]);
    (2..9).for_each(|table| _ = accounting.release(&table_of(1, table)));
    accounting.punched(PackId(1), &[pages(16, 40)]);
    assert_eq!(reopened.totals(), accounting.totals());
    assert_eq!(reopened.pick(ALL), accounting.pick(ALL));
    assert_eq!(reopened.data_ranges(), (2, 2));
}

/// What is left of a pack counts, whether the rest is dead or a hole.
#[test]
fn a_pack_of_which_a_sixteenth_is_left_is_sparse() {
    let mut accounting = accounting(2, 40);
    (0..37).for_each(|table| _ = accounting.release(&table_of(1, table)));
    assert_eq!(accounting.totals().sparse, 0);
    accounting.release(&table_of(1, 37));
    assert_eq!(accounting.totals().sparse, 1);
    accounting.punched(PackId(1), &[pages(0, 100)]);
    assert_eq!(accounting.totals().sparse, 1);
    let view =
        PackView { pack: PackId(1), length: page(320) + 500, dead_bytes: page(204), hole_bytes: page(100) };
    assert_eq!(accounting.views(), [view]);
    accounting.block(PackId(1), Duration::ZERO);
    assert_eq!((accounting.totals().sparse, accounting.views().len()), (0, 0));
    assert!(accounting.retry(RETRY_PAUSE) && !accounting.retry(RETRY_PAUSE));
    assert_eq!(accounting.totals().sparse, 1);
    (38..40).for_each(|table| _ = accounting.release(&table_of(1, table)));
    assert_eq!(accounting.totals().sparse, 0);
}

/// Tables come, die and are punched in any order: the totals stay those of a plain list of pages.
#[test]
fn totals_are_those_of_the_pages() {
    let mut state = 3u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let (packs, tables) = (5, 24);
    let mut accounting = accounting(packs, tables);
    let mut live: BTreeSet<(u64, u64)> =
        (1..=packs).flat_map(|pack| (0..tables).map(move |table| (pack, table))).collect();
    let (mut holes, mut now) = (BTreeMap::<u64, u64>::new(), Duration::ZERO);
    while let Some(last) = live.last().map(|(pack, _)| *pack) {
        now += Duration::from_millis(300);
        match below(4) {
            0 => {
                let budget = Budget { punches: 1 + below(3) as usize, bytes: page(16 + below(40)) };
                if let Some(pick) = accounting.pick(budget) {
                    let bytes: u64 =
                        pick.byte_ranges.iter().map(|byte_range| byte_range.end - byte_range.start).sum();
                    assert!(bytes <= budget.bytes && pick.byte_ranges.len() <= budget.punches);
                    *holes.entry(pick.pack.0).or_default() += bytes;
                    accounting.punched(pick.pack, &pick.byte_ranges);
                    accounting.cleared(pick.pack);
                }
            }
            1 if below(4) == 0 => accounting.block(PackId(1 + below(packs)), now),
            1 => _ = accounting.retry(now),
            _ => {
                let Some(&gone) = live.range((1 + below(last), below(tables))..).next() else { continue };
                live.remove(&gone);
                let released = accounting.release(&table_of(gone.0, gone.1));
                let is_last = !live.iter().any(|(pack, _)| *pack == gone.0);
                assert_eq!(matches!(released, Released::Last(_)), is_last);
            }
        }
        let alive: BTreeSet<u64> = live.iter().map(|(pack, _)| *pack).collect();
        let punched: u64 = alive.iter().filter_map(|pack| holes.get(pack)).sum();
        let totals = accounting.totals();
        assert_eq!(totals.live, live.len() as u64 * (page(8) - 100));
        assert_eq!(totals.stored, alive.len() as u64 * (page(8 * tables) + 500) - punched);
        let dead = (alive.len() as u64 * tables - live.len() as u64) * page(8) - punched;
        assert!(totals.worth + totals.kept <= dead);
    }
    assert_eq!(
        (accounting.totals(), accounting.by_dead.len(), accounting.blocked.len()),
        (Totals::default(), 0, 0)
    );
}
