//! The check itself. That the store keeps the order is shown by every other test, for each runs with it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::Condvar;
use super::*;

fn panics(body: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(body)).is_err()
}

#[test]
fn i18_locks_are_taken_from_the_outermost_inwards() {
    let (writer, catalog) = (OrderedMutex::new(Rank::Writer, ()), OrderedMutex::new(Rank::Catalog, ()));
    let leaf = OrderedMutex::leaf(());
    let held = (writer.lock(), catalog.lock(), leaf.lock());
    drop(held);
    let _catalog = catalog.lock();
    assert!(panics(|| drop(writer.lock())), "the writer's lock is not taken under the catalog's");
    assert!(panics(|| drop((leaf.lock(), catalog.lock()))), "nothing is taken under a leaf");
    drop(leaf.lock());
}

#[test]
fn i18_two_locks_of_a_rank_are_not_held_by_one_thread() {
    let leaves = [OrderedMutex::leaf(()), OrderedMutex::leaf(())];
    let held = leaves[0].lock();
    assert!(panics(|| drop(leaves[1].lock())));
    drop(held);
    drop(leaves[1].lock());
}

#[test]
fn i19_what_takes_long_does_not_begin_under_a_lock() {
    let (closing, writer) = (OrderedMutex::new(Rank::Closing, ()), OrderedMutex::new(Rank::Writer, ()));
    let (_closing, leaf) = (closing.lock(), OrderedMutex::leaf(()));
    Rank::Writer.assert_not_held();
    let held = writer.lock();
    assert!(panics(|| Rank::Writer.assert_not_held()));
    drop(held);
    let held = leaf.lock();
    assert!(panics(|| Rank::Writer.assert_not_held()), "a later one");
    drop(held);
    Rank::Writer.assert_not_held();
}

#[test]
fn what_is_released_out_of_order_is_forgotten() {
    let (writer, catalog) = (OrderedMutex::new(Rank::Writer, ()), OrderedMutex::new(Rank::Catalog, ()));
    let (outer, inner) = (writer.lock(), catalog.lock());
    drop(outer);
    assert!(panics(|| drop(writer.lock())), "the catalog's is still held");
    drop(inner);
    drop((writer.lock(), catalog.lock()));
}

#[test]
fn who_takes_only_what_is_free_waits_for_nobody() {
    let (writer, leaf) = (OrderedMutex::new(Rank::Writer, ()), OrderedMutex::leaf(()));
    let _leaf = leaf.lock();
    let taken = writer.try_lock();
    assert!(taken.is_some());
    drop(taken);
}

#[test]
fn a_lock_is_not_held_while_its_owner_waits_for_a_condition() {
    let (writer, scheduler) = (OrderedMutex::new(Rank::Writer, ()), OrderedMutex::new(Rank::Scheduler, ()));
    let condvar = Condvar::new();
    let mut outer = writer.lock();
    assert!(condvar.wait_for(&mut outer, std::time::Duration::ZERO));
    let inner = scheduler.lock();
    assert!(
        panics(|| _ = condvar.wait_for(&mut outer, std::time::Duration::ZERO)),
        "to wake, it would take its lock under a later one"
    );
    drop((inner, outer));
    drop((writer.lock(), scheduler.lock()));
}

#[test]
fn a_panic_lets_go_of_what_it_unwinds() {
    let (writer, catalog) = (OrderedMutex::new(Rank::Writer, ()), OrderedMutex::new(Rank::Catalog, ()));
    assert!(panics(|| {
        let _catalog = catalog.lock();
        panic!("on purpose");
    }));
    drop((writer.lock(), catalog.lock()));
}
