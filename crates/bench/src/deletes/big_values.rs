//! Large values, some of them deleted, then all compacted: whether the space comes back, and in how much memory.

use super::session::{Session, SpaceWatch, key, value};
use super::{Goal, Quantity};
use crate::Result;
use crate::probe::{forget_memory_peak, memory_peak_bytes};

/// Values, and their sizes.
const VALUES: u64 = 150;
const BYTES_MIN: u64 = 10_000_000;
const BYTES_MAX: u64 = 34_000_000;

/// One in so many is deleted.
const DELETED: u64 = 5;

/// Seconds of rest after the compaction.
const REST_S: f64 = 5.0;

/// Space over live bytes in the end.
const GOAL: Goal = Goal::AtMost(1.05);

const LETTER: u8 = b'v';

pub(super) fn big_values(session: &mut Session<'_>) -> Result<()> {
    let store = session.store()?;
    let values = session.count(VALUES, 5);
    let mut rng = session.rng(1);
    let bytes = value(BYTES_MAX as usize, &mut rng);
    let sizes: Vec<u64> = (0..values).map(|_| BYTES_MIN + rng.below(BYTES_MAX - BYTES_MIN)).collect();
    let mut watch = SpaceWatch::start();
    forget_memory_peak();
    let mut live = 0;
    let mut pace = session.whole("put", values);
    while pace.step() {
        let number = pace.done() - 1;
        store.put(&key(LETTER, number), &bytes[..sizes[number as usize] as usize])?;
        live += 16 + sizes[number as usize];
        watch.look(&store, live)?;
    }
    let mb_per_s = live as f64 / 1e6 / pace.finish();
    for number in (0..values).step_by(DELETED as usize) {
        store.delete(&key(LETTER, number))?;
        live -= 16 + sizes[number as usize];
    }
    watch.look(&store, live)?;
    session.row("puts", mb_per_s, "MB/s", None);
    session.row("live", live as f64 / 1e6, "MB", None);
    session.row("deleted, space over live", watch.last().ratio(), "", None);
    session.row("peak of memory while putting", memory_peak_bytes() as f64 / 1e6, "MB", None);
    forget_memory_peak();
    let pace = session.whole("compact", 1);
    store.compact()?;
    let seconds = pace.finish();
    watch.look(&store, live)?;
    session.row("compaction", seconds, "s", None);
    session.row("compacted, space over live", watch.last().ratio(), "", None);
    // Holes are punched behind it.
    session.rest(&mut watch, &store, live, REST_S)?;
    session.row("rested, space over live", watch.last().ratio(), "", Some(GOAL));
    session.row("peak of memory while compacting", memory_peak_bytes() as f64 / 1e6, "MB", None);
    session.course(Quantity::Space, watch.points());
    store.close()
}
