//! Tests of what is known of packs while they are punched.

use super::*;
use crate::types::{DeviceId, PAGE_BYTES};

fn table(at_page: u64, pages: u64) -> Extent {
    Extent { device: DeviceId(0), pack: PackId(1), offset: at_page * PAGE_BYTES, length: pages * PAGE_BYTES }
}

fn two_tables() -> Reclaimer {
    let reclaimer = Reclaimer::default();
    let tables = [table(0, 20), table(20, 30)].into_iter();
    reclaimer.register([(PackId(1), 51 * PAGE_BYTES)].into_iter(), tables, std::iter::empty());
    reclaimer
}

#[test]
fn a_pack_that_dies_during_its_punch_has_holes_and_counts_once() {
    let reclaimer = two_tables();
    reclaimer.released(table(0, 20));
    let hole = 0..20 * PAGE_BYTES;
    reclaimer.released(table(20, 30));
    let mut state = reclaimer.state.lock();
    state.punched(PackId(1), std::slice::from_ref(&hole));
    let left = DeadPack { id: PackId(1), bytes: 31 * PAGE_BYTES, is_whole: false };
    assert_eq!(state.dead, [left]);
    assert_eq!((state.unsynced.get(&PackId(1)), state.pack_to_sync()), (Some(&hole.end), None));
}

#[test]
fn holes_are_to_be_synced_unless_that_has_failed() {
    let reclaimer = two_tables();
    reclaimer.released(table(0, 20));
    let mut state = reclaimer.state.lock();
    assert_eq!(state.pack_to_sync(), None);
    state.punched(PackId(1), std::slice::from_ref(&(0..20 * PAGE_BYTES)));
    assert_eq!((state.pack_to_sync(), state.freed_bytes), (Some(PackId(1)), 0));
    state.accounting.never_sync(PackId(1));
    assert_eq!(state.pack_to_sync(), None);
}
