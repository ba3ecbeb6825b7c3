//! Sizes that change, readers that hold, budgets that shrink, threads.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::*;

const MIB: u64 = 1 << 20;

/// A cache that evicts what a random number says.
struct Cache {
    frames: Frames,
    kept: RefCell<HashMap<u64, Buffer>>,
    weight: Cell<usize>,
    weight_max: usize,
    keys: Vec<u64>,
    random: u64,
    given_up: Cell<usize>,
}

impl Cache {
    fn new(bytes: u64) -> Self {
        Self {
            frames: Frames::new(bytes),
            kept: RefCell::default(),
            weight: Cell::default(),
            weight_max: (bytes - bytes / 16) as usize,
            keys: Vec::new(),
            random: 7,
            given_up: Cell::default(),
        }
    }

    fn remove(&self, key: u64) -> bool {
        let Some(buffer) = self.kept.borrow_mut().remove(&key) else { return false };
        self.weight.set(self.weight.get() - memory_bytes(buffer.len()));
        true
    }

    /// Fills a buffer and keeps it, as many others evicted as is needed.
    fn insert(&mut self, bytes: usize) -> Buffer {
        let given_up = |[key, _]: Tag| self.given_up.set(self.given_up.get() + usize::from(self.remove(key)));
        let mut buffer = self.frames.take(bytes, given_up);
        buffer.get_mut().unwrap().fill(bytes as u8);
        let key = self.keys.last().map_or(0, |key| key + 1);
        buffer.set_tag([key, 0]);
        self.kept.borrow_mut().insert(key, buffer.clone());
        self.weight.set(self.weight.get() + memory_bytes(bytes));
        self.keys.push(key);
        while self.weight.get() > self.weight_max {
            let at = pick(&mut self.random, self.keys.len() - 1);
            let key = self.keys.remove(at);
            self.remove(key);
        }
        buffer
    }

    fn shrink(&self, bytes: u64) {
        self.frames.set_bytes_max(bytes, |[key, _]| _ = self.remove(key));
    }

    fn kept_bytes(&self) -> usize {
        self.kept.borrow().values().map(|buffer| buffer.len()).sum()
    }
}

#[test]
fn every_size_has_a_class_of_frames_that_are_little_longer() {
    let mut last: Option<(usize, usize)> = None;
    for bytes in 0..200_000 {
        let (class, frame_bytes) = class_of(bytes);
        assert!(frame_bytes.is_multiple_of(FRAME_ALIGN) && bytes + HEADER_BYTES <= frame_bytes, "{bytes}");
        assert!(bytes < 512 || frame_bytes <= bytes + HEADER_BYTES + bytes / 8, "{bytes} in {frame_bytes}");
        assert_eq!(class_of(frame_bytes - HEADER_BYTES), (class, frame_bytes));
        assert!(
            last.is_none_or(|last| last == (class, frame_bytes) || (last.0 < class && last.1 < frame_bytes))
        );
        last = Some((class, frame_bytes));
    }
}

#[test]
fn sizes_that_change_stay_within_the_budget_and_use_it() {
    let budget = if cfg!(miri) { MIB } else { 4 * MIB };
    let mut cache = Cache::new(budget);
    let mut random = 3;
    for sizes in [1055..1056, 16_000..18_500, 1000..2100, 100..101, 3500..4300, 1055..1056] {
        let inserts = 2 * budget as usize / sizes.start;
        for _ in 0..inserts {
            cache.insert(sizes.start + pick(&mut random, sizes.len()));
            assert!(cache.frames.bytes() <= budget);
        }
        assert!(
            cache.kept.borrow().values().all(|buffer| buffer.iter().all(|&byte| byte == buffer.len() as u8))
        );
        let kept = cache.kept_bytes() as u64;
        // Of a hundred bytes, a frame takes 512.
        let floor = if sizes.end < 500 { budget / 8 } else { budget / 2 };
        assert!(kept > floor, "{kept} of {budget} for buffers of {sizes:?}");
    }
}

#[test]
fn one_size_gives_nothing_up() {
    let mut cache = Cache::new(2 * MIB);
    for _ in 0..10_000 {
        cache.insert(4000);
    }
    assert_eq!(cache.given_up.get(), 0);
    assert!(cache.kept_bytes() as u64 > 2 * MIB * 7 / 8);
}

#[test]
fn what_readers_hold_is_not_written_over_and_used_again_behind_them() {
    let mut cache = Cache::new(MIB);
    let held: Vec<Buffer> = (0..600).map(|_| cache.insert(1500)).step_by(10).collect();
    // All chunks have a frame that is held: others come beyond the budget, by a chunk for each that is needed.
    for _ in 0..200 {
        cache.insert(2600);
    }
    assert!(held.iter().all(|buffer| **buffer == [1500_usize as u8; 1500]));
    assert!(cache.given_up.get() > 0);
    let bytes = cache.frames.bytes();
    assert!(bytes > MIB && bytes < 2 * MIB, "{bytes}");
    drop(held);
    for _ in 0..1000 {
        cache.insert(700);
    }
    assert!(cache.frames.bytes() <= MIB);
}

#[test]
fn large_buffers_are_by_themselves_and_within_the_budget() {
    let mut cache = Cache::new(MIB);
    for _ in 0..600 {
        cache.insert(1500);
    }
    for _ in 0..20 {
        cache.insert(200_000);
        assert!(cache.frames.bytes() <= MIB + 200_000);
    }
    assert!(cache.kept.borrow().values().filter(|buffer| buffer.len() == 200_000).count() >= 3);
}

#[test]
fn a_smaller_budget_holds_at_once() {
    let mut cache = Cache::new(8 * MIB);
    for _ in 0..4000 {
        cache.insert(1500);
    }
    let kept = cache.kept.borrow().len();
    cache.shrink(3 * MIB);
    assert!(cache.frames.bytes() <= 3 * MIB && cache.kept.borrow().len() > kept / 4);
    cache.shrink(0);
    assert!(cache.frames.bytes() <= BYTES_MIN);
}

#[test]
fn threads_share_frames() {
    let frames = Frames::new(MIB);
    let rounds = if cfg!(miri) { 50 } else { 3000 };
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let frames = &frames;
            scope.spawn(move || {
                let mut random = thread + 1;
                let mut kept = Vec::new();
                for _ in 0..rounds {
                    let bytes = 500 + pick(&mut random, 2000);
                    let mut buffer = frames.take(bytes, |_| {});
                    buffer.get_mut().unwrap().fill(thread as u8);
                    kept.push(buffer);
                    if kept.len() > 100 {
                        let buffer = kept.swap_remove(pick(&mut random, 100));
                        assert!(buffer.iter().all(|&byte| byte == thread as u8));
                    }
                }
            });
        }
    });
    let state = frames.state.lock();
    assert!(
        state.classes.iter().flat_map(|class| class.chunks.iter().chain(&class.held)).all(|c| c.owned() == 0)
    );
}
