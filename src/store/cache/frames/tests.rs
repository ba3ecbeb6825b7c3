//! Tests of frames: changing sizes, readers that hold frames, shrinking budgets, and threads.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::*;

/// A cache that evicts what a random number says.
struct Cache {
    frames: Frames,
    kept: Kept,
    weight_max: usize,
    keys: Vec<u64>,
    next: u64,
    random: u64,
}

#[derive(Default)]
struct Kept {
    buffers: RefCell<HashMap<u64, (Buffer, Option<Charge>)>>,
    weight: Cell<usize>,
    given_up: Cell<usize>,
}

impl Kept {
    fn remove(&self, key: u64) -> bool {
        let Some((buffer, _)) = self.buffers.borrow_mut().remove(&key) else { return false };
        self.weight.set(self.weight.get() - buffer.memory().0);
        true
    }
}

impl Keeper for Kept {
    fn has(&self, [key, _]: Tag) -> bool {
        self.buffers.borrow().contains_key(&key)
    }

    fn evict(&self, [key, _]: Tag) {
        self.given_up.set(self.given_up.get() + usize::from(self.remove(key)));
    }
}

impl Cache {
    fn new(bytes: u64) -> Self {
        let weight_max = (bytes - bytes / 16) as usize;
        Self {
            frames: Frames::new(bytes),
            kept: Kept::default(),
            weight_max,
            keys: Vec::new(),
            next: 0,
            random: 7,
        }
    }

    /// Fills a buffer and keeps it, as many others evicted as is needed.
    fn insert(&mut self, bytes: usize) -> Buffer {
        let kept = &self.kept;
        let mut buffer = self.frames.take(bytes, kept);
        buffer.get_mut().unwrap().fill(bytes as u8);
        let key = self.next;
        self.next += 1;
        buffer.set_tag([key, 0]);
        let (memory, is_alone) = buffer.memory();
        let charge = is_alone.then(|| self.frames.charge(memory as u64, kept));
        kept.buffers.borrow_mut().insert(key, (buffer.clone(), charge));
        kept.weight.set(kept.weight.get() + memory);
        self.keys.push(key);
        self.evict_beyond();
        buffer
    }

    fn evict_beyond(&mut self) {
        while self.kept.weight.get() > self.weight_max {
            let at = pick(&mut self.random, self.keys.len() - 1);
            let key = self.keys.swap_remove(at);
            self.kept.remove(key);
        }
    }

    fn set_bytes_max(&mut self, bytes: u64) {
        self.weight_max = (bytes - bytes / 16) as usize;
        self.evict_beyond();
        self.frames.suit(bytes);
        self.frames.set_bytes_max(bytes, &self.kept);
    }

    fn kept_bytes(&self) -> u64 {
        self.kept.buffers.borrow().values().map(|(buffer, _)| buffer.len() as u64).sum()
    }

    fn given_up(&self) -> usize {
        self.kept.given_up.get()
    }
}

/// A budget that has chunks; small, where each step takes long.
const BUDGET: u64 = BYTES_MIN;

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
    let mut cache = Cache::new(BUDGET);
    let mut random = 3;
    let all = [1055..1056, 4000..5000, 1000..2100, 100..101, 3500..4300, 1055..1056, 16_000..18_500];
    for sizes in if cfg!(miri) { &all[..2] } else { &all[..] } {
        for _ in 0..BUDGET as usize * 3 / 2 / sizes.start {
            cache.insert(sizes.start + pick(&mut random, sizes.len()));
            assert!(cache.frames.bytes() <= BUDGET);
        }
        let buffers = cache.kept.buffers.borrow();
        assert!(buffers.values().all(|(buffer, _)| buffer.iter().all(|&byte| byte == buffer.len() as u8)));
        drop(buffers);
        let kept = cache.kept_bytes();
        // Of a hundred bytes, a frame takes 512.
        let floor = if sizes.end < 500 { BUDGET / 8 } else { BUDGET * 2 / 3 };
        assert!(kept > floor, "{kept} of {BUDGET} for buffers of {sizes:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn one_size_gives_nothing_up_and_many_little() {
    for (sizes, given_up_max) in [(4000..4001, 0), (500..2000, 6000)] {
        let mut cache = Cache::new(BUDGET);
        let mut random = 5;
        for _ in 0..BUDGET / 280 {
            cache.insert(sizes.start + pick(&mut random, sizes.len()));
        }
        let (given_up, kept) = (cache.given_up(), cache.kept_bytes());
        assert!(
            given_up <= given_up_max && kept > BUDGET * 4 / 5,
            "{given_up} given up, {kept} kept of {sizes:?}"
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn what_is_new_is_not_given_up_for_what_is_newer() {
    let mut cache = Cache::new(BUDGET);
    for _ in 0..BUDGET / 900 {
        cache.insert(1000);
    }
    let before = cache.next;
    for n in 0..8000 {
        cache.insert(1500 + n % 8 * 300);
    }
    let kept = cache.kept.buffers.borrow().keys().filter(|&&key| key >= before).count();
    assert!(kept > 6500, "{kept} of 8000");
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn what_readers_hold_is_on_top_and_costs_the_cache_nothing() {
    let mut cache = Cache::new(BUDGET);
    // One of each chunk, and of some two.
    let mut held: Vec<Buffer> = (0..BUDGET / 950).map(|_| cache.insert(1000)).step_by(100).collect();
    for _ in 0..BUDGET / 2000 {
        cache.insert(4000);
    }
    let given_up = cache.given_up();
    for _ in 0..BUDGET / 2000 {
        cache.insert(4000);
    }
    let (given_up, kept, bytes) = (cache.given_up() - given_up, cache.kept_bytes(), cache.frames.bytes());
    assert!(held.iter().all(|buffer| **buffer == [1000_usize as u8; 1000]));
    assert!(given_up < 100 && kept > BUDGET * 4 / 5 && bytes < 2 * BUDGET, "{given_up} {kept} {bytes}");
    cache.set_bytes_max(BUDGET * 7 / 8);
    assert!(cache.kept_bytes() > BUDGET * 3 / 5);
    held.clear();
    for _ in 0..BUDGET / 500 {
        cache.insert(700);
    }
    assert!(cache.frames.bytes() <= BUDGET, "{}", cache.frames.bytes());
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn large_buffers_are_by_themselves_and_count_while_they_are_kept() {
    let mut cache = Cache::new(BUDGET);
    for _ in 0..BUDGET / 900 {
        cache.insert(1000);
    }
    let kept = cache.kept_bytes();
    let large = cache.frames.take(100 << 20, &cache.kept);
    assert!(large.memory().1 && cache.kept_bytes() == kept, "nothing goes for what is not kept");
    for _ in 0..200 {
        cache.insert(200_000);
        assert!(cache.frames.bytes() <= BUDGET);
    }
    let is_large = |(buffer, _): &&(Buffer, _)| buffer.len() == 200_000;
    assert!(cache.kept.buffers.borrow().values().filter(is_large).count() >= 160);
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn another_budget_has_chunks_of_another_length() {
    let mut cache = Cache::new(4 * BUDGET);
    for budget in [4 * BUDGET, BUDGET, 2 * BUDGET, 1 << 20, BUDGET] {
        cache.set_bytes_max(budget);
        assert!(cache.frames.bytes() <= budget);
        let mut random = 9;
        for round in 0..3 {
            let given_up = cache.given_up();
            for _ in 0..budget / 2000 {
                cache.insert(1000 + pick(&mut random, 3000));
            }
            let given_up = cache.given_up() - given_up;
            let (kept, bytes) = (cache.kept_bytes(), cache.frames.bytes());
            assert!(bytes <= budget && (round == 0 || kept > budget * 3 / 4), "{kept}, {bytes} of {budget}");
            assert!(round < 2 || given_up < 4000, "{given_up} were given up in {budget}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow")]
fn short_chunks_make_room_for_long_ones() {
    let (before, after) = (BYTES_MIN, 4 * BYTES_MIN);
    assert_eq!(chunk_bytes(after), 4 * chunk_bytes(before));
    let mut cache = Cache::new(before);
    let mut random = 9;
    for _ in 0..before / 2000 {
        cache.insert(1000 + pick(&mut random, 3000));
    }
    cache.set_bytes_max(after);
    for _ in 0..after / 10_000 {
        cache.insert(5000 + pick(&mut random, 15_000));
        let bytes = cache.frames.bytes();
        assert!(bytes <= after, "{bytes} of {after}");
    }
}

/// Nobody keeps anything.
struct Nobody;

impl Keeper for Nobody {
    fn has(&self, _: Tag) -> bool {
        false
    }

    fn evict(&self, _: Tag) {}
}

#[test]
fn threads_share_frames() {
    let frames = Frames::new(BUDGET);
    let rounds = if cfg!(miri) { 50 } else { 3000 };
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let frames = &frames;
            scope.spawn(move || {
                let mut random = thread + 1;
                let mut kept = Vec::new();
                for _ in 0..rounds {
                    let bytes = 500 + pick(&mut random, 4000);
                    let mut buffer = frames.take(bytes, &Nobody);
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
    let mut chunks = state.classes.iter().flat_map(|class| class.chunks.iter().chain(&class.held));
    assert!(chunks.all(|chunk| chunk.owned() == 0));
}
