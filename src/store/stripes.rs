//! Counters that many threads add to and few read.
//!
//! Threads that add to the same counter wait for its cache line, which costs a lookup as much as a filter probe does.
//! So each counter exists several times, each copy in a cache line of its own. A thread chooses its copy by the place
//! in the table or file that it reads. Whoever reads the counter adds up all copies.

/// As many as threads seldom meet in.
const STRIPES: usize = 16;

/// Several `T`, each in a cache line of its own.
#[derive(Debug, Default)]
pub(crate) struct Stripes<T>([Line<T>; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line<T>(T);

impl<T> Stripes<T> {
    /// That of a `place`: any number whose low bits differ from one place to the next.
    #[inline]
    pub(crate) fn at(&self, place: u64) -> &T {
        &self.0[place as usize % STRIPES].0
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|Line(stripe)| stripe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn all_places_together_are_all_there_is() {
        let stripes = Stripes::<AtomicU64>::default();
        (0..1000).for_each(|place| _ = stripes.at(place).fetch_add(place, Relaxed));
        assert_eq!(stripes.iter().map(|stripe| stripe.load(Relaxed)).sum::<u64>(), 499_500);
        let [one, next] = [7, 8].map(|place| std::ptr::from_ref(stripes.at(place)) as usize);
        assert!(next - one >= 64);
    }
}
