//! The value tables of a tree, and when their dead values may go.
//!
//! A value table never changes, but its values die one by one: a compaction drops the last pointer to one, and its edit says
//! so ([`Deaths`]). The table leaves the tree with its last value.
//!
//! **Generations.** Each change of the value tables, or of what is alive in them, makes a new generation of [`Values`]. Readers
//! and jobs hold the generation of their version; only with that can they follow a pointer. What died in the step from one
//! generation to the next may be given up once nobody holds the first one, nor any from before. So each generation
//! holds an [`End`], and each end the next one: the end of a generation drops when the last holder of it, or of one before,
//! lets go, and then it hands what died to an [`ExtentSink`].

use std::fmt;
use std::ops::AddAssign;
use std::sync::{Arc, OnceLock};

use super::inconsistent::ensure;
use super::sequence::{Change, Element, Sequence};
use super::{ExtentSink, Inconsistent};
use crate::format::edit::{Deaths, TreeEdit, ValueTableRecord};
use crate::types::{Extent, PAGE_BYTES, Spans, TableId};

/// Dead bytes are counted by the whole pages of the ranges that they lie in: none, then below 8, 16, 32 and 64 KiB, and more.
pub const CLASSES: usize = 6;

/// A value table, and what in it is dead.
#[derive(Clone, PartialEq, Eq)]
pub struct ValueTable {
    /// What it is.
    pub record: ValueTableRecord,
    /// Bytes of dead values, and of none.
    pub dead: Spans,
    /// Number of dead values.
    pub dead_count: u64,
    /// The bytes of dead values, by the length of their ranges.
    classes: [u64; CLASSES],
}

/// Sums over value tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ValueSums {
    /// Values that are alive.
    pub count: u64,
    /// Their bytes, and those of footers.
    pub live_bytes: u64,
    /// Dead bytes in ranges of each class.
    pub dead_bytes: [u64; CLASSES],
}

impl AddAssign for ValueSums {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.live_bytes += other.live_bytes;
        self.dead_bytes.iter_mut().zip(other.dead_bytes).for_each(|(sum, bytes)| *sum += bytes);
    }
}

impl ValueSums {
    /// Dead bytes that no hole of at least `hole_bytes` gives back; all of them if there are no holes.
    #[must_use]
    pub fn stuck_bytes(&self, hole_bytes: Option<u64>) -> u64 {
        self.dead_bytes[..hole_bytes.map_or(CLASSES, class_of)].iter().sum()
    }
}

/// The class of a range of so many bytes of whole pages: behind the first, each is twice as long as the one before.
fn class_of(bytes: u64) -> usize {
    let pages = bytes / PAGE_BYTES;
    pages.checked_ilog2().map_or(0, |log| (1 + log as usize).min(CLASSES - 1))
}

impl ValueTable {
    fn new(record: ValueTableRecord) -> Self {
        Self { record, dead: Spans::default(), dead_count: 0, classes: [0; CLASSES] }
    }

    fn with(&self, deaths: &Deaths) -> Result<Self, Inconsistent> {
        let id = self.record.id;
        let dead = self.dead.with(&deaths.spans);
        let dead = dead.ok_or_else(|| Inconsistent::new(format!("values of table {id} die twice")))?;
        let dead_count = self.dead_count.saturating_add(deaths.count);
        let is_within = dead.iter().all(|range| u64::from(range.end) <= self.record.extent.length);
        ensure!(
            is_within && dead_count <= self.record.count && dead_count <= dead.bytes(),
            "I22: more dies in value table {id} than it has"
        );
        let mut classes = [0; CLASSES];
        for range in dead.iter() {
            let pages = u64::from(range.start).next_multiple_of(PAGE_BYTES)
                ..u64::from(range.end) / PAGE_BYTES * PAGE_BYTES;
            let whole = pages.end.saturating_sub(pages.start);
            classes[class_of(whole)] += whole;
            classes[0] += u64::from(range.end - range.start) - whole;
        }
        // To write what lives anew would leave as much empty.
        classes[0] = classes[0].saturating_sub(self.record.gap_bytes);
        Ok(Self { record: self.record.clone(), dead, dead_count, classes })
    }

    /// Sums over it alone.
    #[must_use]
    pub fn sums(&self) -> ValueSums {
        ValueSums {
            count: self.record.count - self.dead_count,
            live_bytes: self.record.extent.length - self.dead.bytes(),
            dead_bytes: self.classes,
        }
    }

    /// Where its live values lie, and its footer.
    pub fn live_extents(&self) -> impl Iterator<Item = Extent> {
        let length = u32::try_from(self.record.extent.length).unwrap_or(u32::MAX);
        extents(&self.record, &self.dead.complement(length))
    }

    /// What dies in it for good where `next` takes its place; all that lives if nothing does.
    fn dying(&self, next: Option<&Self>, deaths: &Deaths) -> Vec<Extent> {
        match next {
            Some(_) => extents(&self.record, &deaths.spans).collect(),
            None => self.live_extents().collect(),
        }
    }
}

/// Where `spans` of the table lie.
fn extents(record: &ValueTableRecord, spans: &Spans) -> impl Iterator<Item = Extent> + use<> {
    let extent = record.extent;
    let spans: Vec<_> = spans.iter().collect();
    spans.into_iter().map(move |range| Extent {
        offset: extent.offset + u64::from(range.start),
        length: (range.end - range.start).into(),
        ..extent
    })
}

impl Element for Arc<ValueTable> {
    type Key = TableId;
    type Total = ValueSums;

    fn key(&self) -> TableId {
        self.record.id
    }

    fn total(&self) -> ValueSums {
        self.sums()
    }
}

/// The value tables of one tree at one moment. Whoever holds it may follow the pointers of the version that it is of.
#[derive(Clone, Default)]
pub struct Values(Arc<Generation>);

#[derive(Default)]
struct Generation {
    tables: Sequence<Arc<ValueTable>>,
    end: Arc<End>,
}

/// What happens when nobody holds a generation any more, nor one before it.
#[derive(Default)]
struct End {
    released: OnceLock<(Arc<dyn ExtentSink>, Vec<Extent>)>,
    next: OnceLock<Arc<Self>>,
}

impl Drop for End {
    fn drop(&mut self) {
        let mut next = self.next.take();
        if let Some((sink, extents)) = self.released.take() {
            sink.released_all(extents);
        }
        // One after the other: a chain of them may be long where somebody has read for long.
        while let Some(mut end) = next.and_then(Arc::into_inner) {
            next = end.next.take();
        }
    }
}

impl Values {
    /// The value tables after `edit`.
    ///
    /// # Errors
    /// When it adds what is there already, or more dies than there is.
    pub(super) fn apply(&self, edit: &TreeEdit) -> Result<Self, Inconsistent> {
        if edit.values.is_empty() && edit.deaths.is_empty() {
            return Ok(self.clone());
        }
        let mut changes = Vec::new();
        let mut added: Vec<ValueTable> = Vec::new();
        for record in &edit.values {
            let id = record.id;
            ensure!(self.get(id).is_none(), "value table {id} is there already");
            let Extent { offset, length, .. } = record.extent;
            let is_sound = u32::try_from(length).is_ok() && length > 0 && record.count > 0;
            ensure!(is_sound && !record.range.is_inverted(), "value table {id} is none");
            ensure!(offset.is_multiple_of(PAGE_BYTES), "value table {id} does not start at a page");
            added.push(ValueTable::new(record.clone()));
        }
        added.sort_by_key(|table| table.record.id);
        for deaths in &edit.deaths {
            let id = deaths.table;
            if let Ok(at) = added.binary_search_by_key(&id, |table| table.record.id) {
                added[at] = added[at].with(deaths)?;
                continue;
            }
            let table = self.get(id);
            let table = table.ok_or_else(|| {
                Inconsistent::new(format!("values die in value table {id}, which is not there"))
            })?;
            let next = table.with(deaths)?;
            changes.push((id, Change::Remove));
            if next.dead_count < next.record.count {
                changes.push((id, Change::Insert(Arc::new(next))));
            }
        }
        let added = added.into_iter().filter(|table| table.dead_count < table.record.count);
        changes.extend(added.map(|table| (table.record.id, Change::Insert(Arc::new(table)))));
        changes.sort_by_key(|(id, _)| *id);
        let tables = self.0.tables.with(&changes);
        let tables = tables
            .map_err(|id| Inconsistent::new(format!("value table {id} is there twice or changes twice")))?;
        Ok(Self(Arc::new(Generation { tables, end: Arc::default() })))
    }

    /// From here on `next`, made of these by `edit`, which is durable, is in force. What `edit` says is dead goes to `sink` when
    /// nobody needs it any more.
    pub fn end(&self, next: &Self, edit: &TreeEdit, sink: &Arc<dyn ExtentSink>) {
        if Arc::ptr_eq(&self.0, &next.0) {
            return;
        }
        let mut dying = Vec::new();
        for deaths in &edit.deaths {
            match self.get(deaths.table) {
                Some(table) => dying.extend(table.dying(next.get(deaths.table).map(|next| &**next), deaths)),
                // It came with the edit: what is dead from the beginning, or all of it.
                None => {
                    let record = edit.values.iter().find(|record| record.id == deaths.table);
                    let table = record.map(|record| ValueTable::new(record.clone()));
                    let after = next.get(deaths.table).map(|next| &**next);
                    dying.extend(table.iter().flat_map(|table| table.dying(after, deaths)));
                }
            }
        }
        self.release_at_end(dying, sink);
        let _ = self.0.end.next.set(next.0.end.clone());
    }

    /// The tree is gone: everything goes to `sink` when nobody holds it any more.
    pub fn end_all(&self, sink: &Arc<dyn ExtentSink>) {
        self.release_at_end(self.live_extents().collect(), sink);
    }

    fn release_at_end(&self, extents: Vec<Extent>, sink: &Arc<dyn ExtentSink>) {
        if planted!("dead-values-freed-under-readers") {
            sink.released_all(extents);
        } else if !extents.is_empty() {
            // Edits come one after the other: a generation ends once.
            let _ = self.0.end.released.set((sink.clone(), extents));
        }
    }

    /// The value table with `id`.
    #[must_use]
    pub fn get(&self, id: TableId) -> Option<&Arc<ValueTable>> {
        self.0.tables.find(|other| *other < id).filter(|table| table.record.id == id)
    }

    /// The value tables, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ValueTable>> {
        self.0.tables.iter_from(0)
    }

    /// Where everything that lives lies.
    pub fn live_extents(&self) -> impl Iterator<Item = Extent> {
        self.iter().flat_map(|table| table.live_extents())
    }

    /// Sums over all.
    #[must_use]
    pub fn sums(&self) -> ValueSums {
        self.0.tables.total()
    }

    /// Number of value tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.tables.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.tables.len() == 0
    }
}

impl fmt::Debug for ValueTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ValueSums { count, live_bytes, .. } = self.sums();
        write!(f, "{:?}{} {count} values {live_bytes}B", self.record.id, self.record.range)
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::env::sync::OrderedMutex;

    use super::*;
    use crate::types::{DeviceId, KeyRange, PackId};

    #[derive(Debug)]
    struct Released(OrderedMutex<Vec<(u64, u64)>>);

    impl Default for Released {
        fn default() -> Self {
            Self(OrderedMutex::leaf(Vec::new()))
        }
    }

    impl ExtentSink for Released {
        fn released(&self, extent: Extent) {
            self.0.lock().push((extent.offset, extent.length));
        }
    }

    fn table(id: u64) -> ValueTableRecord {
        let extent = Extent { device: DeviceId(0), pack: PackId(id), offset: 0, length: 100 };
        ValueTableRecord {
            id: TableId(id),
            extent,
            range: KeyRange::new(*b"a", *b"z"),
            count: 8,
            gap_bytes: 0,
        }
    }

    fn deaths(id: u64, ranges: &[(u32, u32)]) -> Deaths {
        let spans = ranges.iter().map(|(from, to)| *from..*to).collect();
        Deaths { table: TableId(id), count: ranges.len() as u64, spans: Spans::new(spans).unwrap() }
    }

    fn edit(values: Vec<ValueTableRecord>, deaths: Vec<Deaths>) -> TreeEdit {
        TreeEdit { values, deaths, ..TreeEdit::default() }
    }

    #[test]
    fn i22_what_dies_is_released_when_nobody_holds_a_generation_that_has_it() {
        let released = Arc::new(Released::default());
        let sink: Arc<dyn ExtentSink> = released.clone();
        let step = |values: &Values, edit: TreeEdit| {
            let next = values.apply(&edit).unwrap();
            values.end(&next, &edit, &sink);
            next
        };
        let seen = || std::mem::take(&mut *released.0.lock());
        let first = step(&Values::default(), edit(vec![table(1)], vec![]));
        let second = step(&first, edit(vec![], vec![deaths(1, &[(0, 10)])]));
        let reader = second.clone();
        let third = step(&second, edit(vec![], vec![deaths(1, &[(10, 20), (30, 40)])]));
        drop(second);
        assert_eq!(seen(), [], "somebody holds the first");
        drop(first);
        assert_eq!(seen(), [(0, 10)]);
        // All that is left, with what belongs to no value.
        let all: Vec<_> = [(20, 30), (40, 50), (50, 60), (60, 70), (70, 80)].to_vec();
        let last = step(&third, edit(vec![], vec![deaths(1, &all)]));
        assert!(last.is_empty());
        drop((third, last));
        assert_eq!(seen(), [], "an earlier generation keeps what dies later");
        drop(reader);
        assert_eq!(seen(), [(10, 10), (30, 10), (20, 10), (40, 60)]);
    }

    #[test]
    fn i22_nothing_dies_twice_and_nothing_that_is_not_there() {
        let values = Values::default().apply(&edit(vec![table(1)], vec![deaths(1, &[(0, 10)])])).unwrap();
        for bad in [deaths(1, &[(5, 15)]), deaths(1, &[(90, 101)]), deaths(2, &[(0, 10)])] {
            assert!(values.apply(&edit(vec![], vec![bad.clone()])).is_err(), "{bad:?}");
        }
        let too_many = Deaths { count: 8, ..deaths(1, &[(10, 20)]) };
        assert!(values.apply(&edit(vec![], vec![too_many])).is_err());
        assert!(values.apply(&edit(vec![table(1)], vec![])).is_err(), "it is there already");
        assert_eq!(values.sums().count, 7);
    }

    #[test]
    fn many_generations_end_at_once() {
        let sink: Arc<dyn ExtentSink> = Arc::new(Released::default());
        let first = Values::default();
        let mut values = first.clone();
        for id in 0..200_000 {
            let edit = edit(vec![table(id)], (id > 0).then(|| whole(id - 1)).into_iter().collect());
            let next = values.apply(&edit).unwrap();
            values.end(&next, &edit, &sink);
            values = next;
        }
        drop(values);
        drop(first);
    }

    fn whole(id: u64) -> Deaths {
        Deaths { count: 8, ..deaths(id, &[(0, 60)]) }
    }
}
