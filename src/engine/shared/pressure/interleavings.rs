//! Whether a stopped writer can be forgotten: loom runs every order of steps that the memory model allows.

use std::sync::Arc;

use loom::thread;

use super::*;

#[test]
fn a_writer_sees_the_change_or_is_seen() {
    loom::model(|| {
        let shared = Arc::new((StopMark::default(), AtomicBool::new(false)));
        let beside = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            let (mark, changed) = &*beside;
            mark.set();
            changed.load(Relaxed)
        });
        let (mark, changed) = &*shared;
        changed.store(true, Relaxed);
        let seen = mark.is_set();
        assert!(writer.join().unwrap() || seen, "it waits for ever");
    });
}
