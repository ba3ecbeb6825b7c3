//! The books of packs, by hand and against a model.

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
fn books(packs: u64, tables: u64) -> Books {
    let mut books = Books::default();
    for pack in 1..=packs {
        books.enter_pack(PackId(pack), page(8 * tables) + 500);
        (0..tables).for_each(|table| books.enter_table(&table_of(pack, table)));
    }
    books
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
fn neighbours_that_die_are_one_stretch() {
    let mut books = books(1, 10);
    assert_eq!(books.release(&table_of(1, 3)), Released::Dead);
    assert_eq!(books.pick(ALL), None, "32 KiB are not worth a hole");
    assert_eq!(books.totals().worth, 0);
    assert_eq!(books.release(&table_of(1, 5)), Released::Dead);
    assert_eq!(books.pick(ALL), None);
    assert_eq!(books.release(&table_of(1, 4)), Released::Dead);
    let pick = books.pick(ALL).unwrap();
    assert_eq!((pick.pack, &pick.stretches[..]), (PackId(1), &[pages(24, 48)][..]));
    assert_eq!(books.totals().worth, page(24));
    books.punched(PackId(1), &pick.stretches);
    assert_eq!((books.pick(ALL), books.totals().worth), (None, 0));
    assert_eq!(books.totals().stored, page(56) + 500);
    assert_eq!(books.data_ranges(), (2, 2));
    books.release(&table_of(1, 0));
    let small = books.pick_anything(ALL, &BTreeSet::new()).unwrap();
    assert_eq!(small.stretches, [pages(0, 8)]);
    books.punched(PackId(1), &small.stretches);
    assert_eq!(books.data_ranges(), (2, 2));
}

#[test]
fn the_pack_with_most_of_what_is_dead_comes_first_within_the_budget() {
    let mut books = books(3, 12);
    for (pack, tables) in [(1, 2), (2, 7), (3, 3)] {
        (0..tables).for_each(|table| _ = books.release(&table_of(pack, table)));
    }
    books.release(&table_of(2, 9));
    books.release(&table_of(2, 10));
    let few = Budget { punches: 1, bytes: page(20) };
    let pick = books.pick(few).unwrap();
    assert_eq!((pick.pack, &pick.stretches[..]), (PackId(2), &[pages(0, 20)][..]), "cut to the budget");
    let pick = books.pick(Budget { punches: 9, bytes: page(60) }).unwrap();
    assert_eq!(pick.stretches, [pages(0, 56)], "a rest too small for a hole waits");
    assert_eq!(books.pick(ALL).unwrap().stretches, [pages(0, 56), pages(72, 88)], "longest first");
    let tried = BTreeSet::from([PackId(2)]);
    let pick = books.pick_anything(Budget { punches: 9, bytes: 1 }, &tried).unwrap();
    assert_eq!((pick.pack, pick.stretches), (PackId(3), vec![pages(0, 24)]));
}

#[test]
fn small_stretches_are_punched_too_once_half_as_much_is_dead_as_lives() {
    let mut books = books(2, 10);
    (0..6).for_each(|n| _ = books.release(&table_of(1 + n % 2, 1 + n / 2 * 2)));
    assert!(!books.is_wasteful() && books.pick(ALL).is_none());
    books.release(&table_of(2, 7));
    assert!(books.is_wasteful());
    let pick = books.pick(Budget { punches: 1, bytes: page(100) }).unwrap();
    assert_eq!((pick.pack, &pick.stretches[..]), (PackId(2), &[pages(8, 16)][..]));
    books.punched(PackId(2), &pick.stretches);
    assert!(!books.is_wasteful() && books.pick(ALL).is_none());
}

#[test]
fn a_long_stretch_is_cut_to_what_is_asked() {
    let mut books = books(1, 200);
    (0..199).for_each(|table| _ = books.release(&table_of(1, table)));
    let asked = |bytes| {
        let pick = books.pick_anything(Budget { punches: 9, bytes }, &BTreeSet::new());
        pick.unwrap().stretches
    };
    assert_eq!(asked(1), [pages(0, 256)]);
    assert_eq!(asked(page(300) + 1), [pages(0, 301)]);
    assert_eq!(asked(u64::MAX), [pages(0, 8 * 199)]);
}

#[test]
fn a_pack_that_something_stands_in_the_way_of_is_tried_again_ever_later() {
    let mut books = books(2, 4);
    (0..3).for_each(|table| _ = books.release(&table_of(1, table)));
    assert!(books.is_wasteful());
    let seconds = Duration::from_secs;
    let mut now = seconds(100);
    for pause in [1, 2, 4, 8, 16, 32, 64, 64] {
        books.block(PackId(1), now);
        assert!(!books.is_wasteful() && books.pick(ALL).is_none());
        assert_eq!((books.totals().worth, books.totals().kept), (0, page(24)));
        assert_eq!(books.next_retry(), Some(now + seconds(pause)));
        books.retry(now + seconds(pause) - Duration::from_nanos(1));
        assert!(!books.is_wasteful());
        now += seconds(pause);
        books.retry(now);
        assert!(books.is_wasteful() && books.pick(ALL).is_some());
        assert_eq!((books.next_retry(), books.totals().kept), (None, 0));
    }
    books.cleared(PackId(1));
    books.block(PackId(1), now);
    assert_eq!(books.next_retry(), Some(now + seconds(1)));
    // Who needs space does not wait for that.
    assert!(books.pick_anything(ALL, &BTreeSet::new()).is_some());
    let dead = books.release(&table_of(1, 3));
    assert_eq!(dead, Released::Last(DeadPack { id: PackId(1), bytes: page(32) + 500, is_whole: true }));
    assert_eq!((books.next_retry(), books.totals().kept), (None, 0));
}

#[test]
fn i8_what_is_not_known_as_live_does_not_become_dead_and_what_is_live_is_never_offered() {
    let mut books = books(1, 4);
    for unknown in [table_of(2, 0), extent(1, page(1), 100), extent(1, 0, page(8)), extent(1, page(32), 1)] {
        assert_eq!(books.release(&unknown), Released::Unknown);
    }
    assert_eq!(books.release(&table_of(1, 1)), Released::Dead);
    assert_eq!(books.release(&table_of(1, 1)), Released::Unknown, "twice");
    // A mistaken word about gaps, with a live table in each.
    books.enter_gaps(PackId(1), &[pages(0, 16), pages(20, 32)], &[pages(0, 1), pages(23, 25)]);
    let offered = books.pick_anything(ALL, &BTreeSet::new()).unwrap();
    assert_eq!(offered.stretches, [pages(8, 16)]);
    assert_eq!(books.totals().stored, page(32) + 500);
}

#[test]
fn what_is_a_hole_when_the_store_is_opened_does_not_count() {
    let mut books = books(1, 10);
    let mut live: Vec<Extent> = [0, 1, 9].map(|table| table_of(1, table)).into();
    let mut reopened = Books::default();
    reopened.enter_pack(PackId(1), page(80) + 500);
    live.iter().for_each(|extent| reopened.enter_table(extent));
    let gaps = gaps_between(&mut live, page(80) + 500);
    assert_eq!(gaps, [pages(16, 72)]);
    reopened.enter_gaps(PackId(1), &gaps, &[pages(40, 72)]);
    (2..9).for_each(|table| _ = books.release(&table_of(1, table)));
    books.punched(PackId(1), &[pages(16, 40)]);
    assert_eq!(reopened.totals(), books.totals());
    assert_eq!(reopened.pick(ALL), books.pick(ALL));
    assert_eq!(reopened.data_ranges(), (2, 2));
}

/// What is left of a pack counts, whether the rest is dead or a hole.
#[test]
fn a_pack_of_which_a_sixteenth_is_left_is_sparse() {
    let mut books = books(2, 40);
    (0..37).for_each(|table| _ = books.release(&table_of(1, table)));
    assert_eq!(books.totals().sparse, 0);
    books.release(&table_of(1, 37));
    assert_eq!(books.totals().sparse, 1);
    books.punched(PackId(1), &[pages(0, 100)]);
    assert_eq!(books.totals().sparse, 1);
    let view =
        PackView { pack: PackId(1), length: page(320) + 500, dead_bytes: page(204), hole_bytes: page(100) };
    assert_eq!(books.views(), [view]);
    books.block(PackId(1), Duration::ZERO);
    assert_eq!((books.totals().sparse, books.views().len()), (0, 0));
    assert!(books.retry(RETRY_PAUSE) && !books.retry(RETRY_PAUSE));
    assert_eq!(books.totals().sparse, 1);
    (38..40).for_each(|table| _ = books.release(&table_of(1, table)));
    assert_eq!(books.totals().sparse, 0);
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
    let mut books = books(packs, tables);
    let mut live: BTreeSet<(u64, u64)> =
        (1..=packs).flat_map(|pack| (0..tables).map(move |table| (pack, table))).collect();
    let (mut holes, mut now) = (BTreeMap::<u64, u64>::new(), Duration::ZERO);
    while let Some(last) = live.last().map(|(pack, _)| *pack) {
        now += Duration::from_millis(300);
        match below(4) {
            0 => {
                let budget = Budget { punches: 1 + below(3) as usize, bytes: page(16 + below(40)) };
                if let Some(pick) = books.pick(budget) {
                    let bytes: u64 = pick.stretches.iter().map(|stretch| stretch.end - stretch.start).sum();
                    assert!(bytes <= budget.bytes && pick.stretches.len() <= budget.punches);
                    *holes.entry(pick.pack.0).or_default() += bytes;
                    books.punched(pick.pack, &pick.stretches);
                    books.cleared(pick.pack);
                }
            }
            1 if below(4) == 0 => books.block(PackId(1 + below(packs)), now),
            1 => _ = books.retry(now),
            _ => {
                let Some(&gone) = live.range((1 + below(last), below(tables))..).next() else { continue };
                live.remove(&gone);
                let released = books.release(&table_of(gone.0, gone.1));
                let is_last = !live.iter().any(|(pack, _)| *pack == gone.0);
                assert_eq!(matches!(released, Released::Last(_)), is_last);
            }
        }
        let alive: BTreeSet<u64> = live.iter().map(|(pack, _)| *pack).collect();
        let punched: u64 = alive.iter().filter_map(|pack| holes.get(pack)).sum();
        let totals = books.totals();
        assert_eq!(totals.live, live.len() as u64 * (page(8) - 100));
        assert_eq!(totals.stored, alive.len() as u64 * (page(8 * tables) + 500) - punched);
        let dead = (alive.len() as u64 * tables - live.len() as u64) * page(8) - punched;
        assert!(totals.worth + totals.kept <= dead);
    }
    assert_eq!((books.totals(), books.by_dead.len(), books.blocked.len()), (Totals::default(), 0, 0));
}
