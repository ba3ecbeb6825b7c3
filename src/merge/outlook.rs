//! What a reader knows of keys besides their versions, and what a walk learns about keys that are dead.

use crate::types::{Key, KeyRange, UpperBound};

/// Dead keys that are crossed before the outlook is asked whether it knows where they end. It is asked again whenever
/// twice as many have been crossed. At once in debug builds, so that all tests come across dead ranges.
const KEYS_BEFORE_ASKING: u64 = if cfg!(debug_assertions) { 1 } else { 4 };

/// Dead keys that are crossed before the outlook is told of them, at most.
const KEYS_TOLD_AT_ONCE: u64 = 1 << 16;

/// What a reader knows of keys besides their versions. A key is *dead* for it if it has no value, or one that has expired.
pub trait Outlook {
    /// Whether values can expire.
    fn expires(&self) -> bool;

    /// Whether a stored value has expired.
    fn is_expired(&self, value: &[u8]) -> bool;

    /// Whether a forward walk may end at `key`, for nothing from there on is asked for.
    fn is_behind(&self, key: &[u8]) -> bool;

    /// The same for a backward walk.
    fn is_before(&self, key: &[u8]) -> bool;

    /// The end of a range around `key` in which each key is dead, if one is known.
    fn dead_until(&self, key: &[u8]) -> Option<UpperBound>;

    /// The start of a range that has the last key before `key`, and in which each key is dead, if one is known.
    fn dead_from(&self, key: &[u8]) -> Option<Key>;

    /// A walk has crossed a range, in which each key is dead.
    fn found_dead(&self, crossed: Crossed, range: impl FnOnce() -> KeyRange);
}

/// What a walk has crossed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossed {
    /// Keys that have entries there.
    pub keys: u64,
    /// Whether it lies between two ranges that are known to be dead, and meets both.
    pub links: bool,
}

/// Knows nothing: all is asked for, and lives for ever.
impl Outlook for () {
    fn expires(&self) -> bool {
        false
    }

    fn is_expired(&self, _: &[u8]) -> bool {
        false
    }

    fn is_behind(&self, _: &[u8]) -> bool {
        false
    }

    fn is_before(&self, _: &[u8]) -> bool {
        false
    }

    fn dead_until(&self, _: &[u8]) -> Option<UpperBound> {
        None
    }

    fn dead_from(&self, _: &[u8]) -> Option<Key> {
        None
    }

    fn found_dead(&self, _: Crossed, _: impl FnOnce() -> KeyRange) {}
}

/// The key that a walk was sent to, or before, and from which on it has met nothing that is alive.
#[derive(Clone, Copy)]
pub(super) struct Edge<'a> {
    pub(super) key: &'a [u8],
    /// Whether a range that is known to be dead ends there.
    pub(super) ends_dead: bool,
}

/// The dead keys that a walk crosses in a row.
#[derive(Default)]
pub(super) struct Crossing {
    /// Where it has begun, or has told of what lies behind it: the first key of a forward walk, the key behind the last one of a
    /// backward walk. Nothing before `last` was met until it is set.
    edge: Vec<u8>,
    has_edge: bool,
    /// Whether a range that is known to be dead ends there.
    is_linked: bool,
    /// The dead key that was crossed last.
    last: Vec<u8>,
    /// Keys since the outlook was told.
    keys: u64,
    /// Keys in all.
    crossed: u64,
    asks_at: u64,
}

impl Crossing {
    /// Begins anew: at `edge`, if the walk has come from there, or else at the first key that is counted.
    pub(super) fn begin(&mut self, edge: Option<Edge<'_>>) {
        (self.has_edge, self.is_linked) = (false, edge.is_some_and(|edge| edge.ends_dead));
        (self.keys, self.crossed, self.asks_at) = (0, 0, KEYS_BEFORE_ASKING);
        if let Some(Edge { key, .. }) = edge {
            self.begin_at(key);
        }
    }

    fn begin_at(&mut self, edge: &[u8]) {
        self.edge.clear();
        self.edge.extend_from_slice(edge);
        (self.has_edge, self.keys) = (true, 0);
    }

    /// Another range may begin where it has jumped to.
    fn jumped_to(&mut self, edge: &[u8]) {
        self.begin_at(edge);
        (self.is_linked, self.asks_at) = (true, self.crossed + 1);
    }

    /// Counts a dead key. Returns whether the outlook is to be asked now.
    fn count(&mut self, key: &[u8]) -> bool {
        self.last.clear();
        self.last.extend_from_slice(key);
        self.keys += 1;
        self.crossed += 1;
        let asks = self.crossed == self.asks_at;
        if asks {
            self.asks_at += self.crossed.min(KEYS_TOLD_AT_ONCE);
        }
        asks
    }

    /// Counts a dead key of a forward walk. Returns where to jump, if it is known that all is dead up to there.
    pub(super) fn forward(&mut self, key: &[u8], outlook: &impl Outlook) -> Option<UpperBound> {
        if !self.has_edge {
            self.begin_at(key);
        }
        if self.count(key)
            && let Some(end) = outlook.dead_until(key)
        {
            self.tell_forward(None, self.is_linked, outlook);
            self.jumped_to(end.as_bytes());
            return Some(end);
        }
        if self.keys == KEYS_TOLD_AT_ONCE {
            self.tell_forward(None, false, outlook);
        }
        None
    }

    /// The same for a backward walk: it is to jump before the key that is returned.
    pub(super) fn backward(&mut self, key: &[u8], outlook: &impl Outlook) -> Option<Key> {
        if !self.has_edge {
            self.begin_at(key);
            self.edge.push(0);
        }
        if self.count(key)
            && let Some(start) = outlook.dead_from(key)
        {
            self.tell_backward(self.is_linked, outlook);
            self.jumped_to(&start);
            return Some(start);
        }
        if self.keys == KEYS_TOLD_AT_ONCE {
            self.tell_backward(false, outlook);
        }
        None
    }

    /// Tells `outlook` of what a forward walk has crossed since it was told. `alive`: the key that it has reached, which is not
    /// dead. Up to there the range is told, so that it meets the next one once that key is deleted.
    pub(super) fn tell_forward(&mut self, alive: Option<&[u8]>, links: bool, outlook: &impl Outlook) {
        if self.keys > 0 {
            let end = || {
                alive.map_or_else(|| UpperBound::after(&self.last), |key| UpperBound::Excluded(key.into()))
            };
            outlook
                .found_dead(Crossed { keys: self.keys, links }, || KeyRange::half_open(&*self.edge, end()));
            // The next range meets this one.
            std::mem::swap(&mut self.edge, &mut self.last);
            self.edge.push(0);
            self.keys = 0;
        }
    }

    /// The same for a backward walk.
    pub(super) fn tell_backward(&mut self, links: bool, outlook: &impl Outlook) {
        if self.keys > 0 {
            let end = || UpperBound::Excluded(self.edge[..].into());
            outlook
                .found_dead(Crossed { keys: self.keys, links }, || KeyRange::half_open(&*self.last, end()));
            std::mem::swap(&mut self.edge, &mut self.last);
            self.keys = 0;
        }
    }
}
