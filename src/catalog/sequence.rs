//! A persistent sorted sequence: a B+-tree whose nodes are shared between its versions.
//!
//! A change copies the nodes on the paths to the changed elements and shares the rest. So k changes among n elements
//! cost about k log n and never disturb a reader of an earlier version. Each subtree knows its length and the total
//! of its elements, so positions and sums over a range also cost about log n.
//!
//! A node keeps the keys of its slots side by side, apart from the elements, so that a search touches few cache
//! lines.
//!
//! # Invariants
//!
//! * All leaves have the same depth.
//! * A node has at most [`SLOTS_MAX`] slots. A node with fewer than [`SLOTS_MIN`] is joined with a neighbour.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

/// Most slots of a node.
const SLOTS_MAX: usize = 64;

/// A node with fewer slots is joined with a neighbour.
const SLOTS_MIN: usize = 16;

/// An element of a [`Sequence`]: it has a unique key and is cheap to clone.
pub trait Element: Clone {
    /// The key by which the sequence is sorted.
    type Key: Ord + Clone;
    /// A sum over elements, kept for each subtree.
    type Total: AddAssign + Copy + Default;

    /// The key.
    fn key(&self) -> Self::Key;

    /// The element's share of the total.
    fn total(&self) -> Self::Total;
}

/// A change of a [`Sequence`] at a key: removal of the element there, or arrival of a new one.
#[derive(Clone, Debug)]
pub enum Change<E> {
    /// The element with the key leaves.
    Remove,
    /// This element comes.
    Insert(E),
}

/// A place in a [`Sequence`].
pub struct Position<'a, E: Element> {
    /// Total of the elements before the place.
    pub total: E::Total,
    /// The element at the place, unless it is the end.
    pub element: Option<&'a E>,
}

/// The persistent sorted sequence. Cloning shares everything.
pub struct Sequence<E: Element> {
    root: Subtree<E>,
}

struct Subtree<E: Element> {
    node: Arc<Node<E>>,
    len: usize,
    total: E::Total,
}

/// `keys[i]` is the last key of slot `i`.
struct Node<E: Element> {
    keys: Vec<E::Key>,
    slots: Slots<E>,
}

enum Slots<E: Element> {
    Elements(Vec<E>),
    Children(Vec<Subtree<E>>),
}

impl<E: Element> Clone for Sequence<E> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone() }
    }
}

impl<E: Element> Clone for Subtree<E> {
    fn clone(&self) -> Self {
        Self { node: Arc::clone(&self.node), len: self.len, total: self.total }
    }
}

impl<E: Element + fmt::Debug> fmt::Debug for Sequence<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter_from(0)).finish()
    }
}

impl<E: Element> Default for Sequence<E> {
    fn default() -> Self {
        Self { root: Subtree::leaf(Vec::new()) }
    }
}

impl<E: Element> Sequence<E> {
    /// The sequence of `elements`, which are sorted by unique keys.
    pub fn from_sorted(elements: Vec<E>) -> Self {
        Self::over(Subtree::leaf_nodes(elements))
    }

    /// The sequence over the subtrees in `level`, which have the same height.
    fn over(mut level: Vec<Subtree<E>>) -> Self {
        while level.len() > 1 {
            level = Subtree::inner_nodes(level);
        }
        level.pop().map_or_else(Self::default, |root| Self { root })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.root.len
    }

    /// Total of all elements.
    pub fn total(&self) -> E::Total {
        self.root.total
    }

    /// The element at `index`.
    pub fn get(&self, mut index: usize) -> Option<&E> {
        let mut node = &*self.root.node;
        loop {
            match &node.slots {
                Slots::Elements(elements) => return elements.get(index),
                Slots::Children(children) => {
                    let mut children = children.iter();
                    node = loop {
                        let child = children.next()?;
                        if index < child.len {
                            break &*child.node;
                        }
                        index -= child.len;
                    };
                }
            }
        }
    }

    /// The first element whose key is not `before` the place that the caller looks for.
    pub fn find(&self, before: impl Fn(&E::Key) -> bool) -> Option<&E> {
        let mut node = &*self.root.node;
        loop {
            let slot = node.keys.partition_point(&before);
            match &node.slots {
                Slots::Elements(elements) => return elements.get(slot),
                Slots::Children(children) => node = &*children.get(slot)?.node,
            }
        }
    }

    /// As [`Sequence::find`], but only the number of elements before that place. Reads no element.
    pub fn position(&self, before: impl Fn(&E::Key) -> bool) -> usize {
        let mut node = &*self.root.node;
        let mut index = 0;
        loop {
            let slot = node.keys.partition_point(&before);
            let Slots::Children(children) = &node.slots else { return index + slot };
            index += children[..slot].iter().map(|child| child.len).sum::<usize>();
            match children.get(slot) {
                Some(child) => node = &*child.node,
                None => return index,
            }
        }
    }

    /// As [`Sequence::find`], with the total of the elements before that place.
    pub fn seek(&self, before: impl Fn(&E::Key) -> bool) -> Position<'_, E> {
        let mut node = &*self.root.node;
        let mut total = E::Total::default();
        loop {
            let slot = node.keys.partition_point(&before);
            match &node.slots {
                Slots::Elements(elements) => {
                    elements[..slot].iter().for_each(|element| total += element.total());
                    return Position { total, element: elements.get(slot) };
                }
                Slots::Children(children) => {
                    children[..slot].iter().for_each(|child| total += child.total);
                    match children.get(slot) {
                        Some(child) => node = &*child.node,
                        None => return Position { total, element: None },
                    }
                }
            }
        }
    }

    /// The elements from `index` on.
    pub fn iter_from(&self, index: usize) -> Iter<'_, E> {
        let mut iter = Iter { above: Vec::new(), leaf: [].iter() };
        iter.descend(&self.root.node, index);
        iter
    }

    /// The sequence with `changes`, which are sorted by key, a removal before an arrival at the same key.
    ///
    /// # Errors
    ///
    /// The key at which there is nothing to remove, or already an element.
    pub fn with(&self, changes: &[(E::Key, Change<E>)]) -> Result<Self, E::Key> {
        if changes.is_empty() {
            return Ok(self.clone());
        }
        let Self { mut root } = Self::over(self.root.with(changes)?);
        loop {
            let only = match &root.node.slots {
                Slots::Children(children) if children.len() == 1 => children[0].clone(),
                _ => return Ok(Self { root }),
            };
            root = only;
        }
    }
}

impl<E: Element> Subtree<E> {
    fn leaf(elements: Vec<E>) -> Self {
        let mut total = E::Total::default();
        elements.iter().for_each(|element| total += element.total());
        let keys = elements.iter().map(E::key).collect();
        let len = elements.len();
        Self { node: Arc::new(Node { keys, slots: Slots::Elements(elements) }), len, total }
    }

    fn inner(children: Vec<Self>) -> Self {
        let (mut len, mut total) = (0, E::Total::default());
        for child in &children {
            len += child.len;
            total += child.total;
        }
        let keys = children.iter().filter_map(|child| child.node.keys.last().cloned()).collect();
        Self { node: Arc::new(Node { keys, slots: Slots::Children(children) }), len, total }
    }

    /// This subtree after `changes`, as subtrees of the same height; none if nothing is left.
    fn with(&self, changes: &[(E::Key, Change<E>)]) -> Result<Vec<Self>, E::Key> {
        match &self.node.slots {
            Slots::Elements(elements) => {
                Ok(Self::leaf_nodes(changed_elements(&self.node.keys, elements, changes)?))
            }
            Slots::Children(children) => {
                let mut rest = changes;
                let mut changed = Vec::with_capacity(children.len() + 1);
                for (slot, child) in children.iter().enumerate() {
                    let mine = if slot + 1 == children.len() {
                        rest.len()
                    } else {
                        rest.partition_point(|(key, _)| *key <= self.node.keys[slot])
                    };
                    let (here, after) = rest.split_at(mine);
                    rest = after;
                    if here.is_empty() {
                        changed.push(child.clone());
                    } else {
                        changed.extend(child.with(here)?);
                    }
                }
                Ok(Self::inner_nodes(changed))
            }
        }
    }

    /// Leaves that hold `elements`.
    fn leaf_nodes(elements: Vec<E>) -> Vec<Self> {
        evenly(elements).into_iter().map(Self::leaf).collect()
    }

    /// Nodes above `children`. No child is left too small if it has a neighbour.
    fn inner_nodes(children: Vec<Self>) -> Vec<Self> {
        let mut filled: Vec<Self> = Vec::with_capacity(children.len());
        for child in children {
            match filled.pop() {
                Some(last) if last.slots() < SLOTS_MIN || child.slots() < SLOTS_MIN => {
                    filled.extend(last.joined(&child));
                }
                last => {
                    filled.extend(last);
                    filled.push(child);
                }
            }
        }
        evenly(filled).into_iter().map(Self::inner).collect()
    }

    fn slots(&self) -> usize {
        self.node.keys.len()
    }

    fn joined(&self, right: &Self) -> Vec<Self> {
        match (&self.node.slots, &right.node.slots) {
            (Slots::Elements(a), Slots::Elements(b)) => Self::leaf_nodes([&a[..], b].concat()),
            (Slots::Children(a), Slots::Children(b)) => {
                Self::inner_nodes(a.iter().chain(b).cloned().collect())
            }
            _ => unreachable!("neighbours have the same height"),
        }
    }
}

/// `elements` after `changes`.
fn changed_elements<E: Element>(
    keys: &[E::Key],
    elements: &[E],
    changes: &[(E::Key, Change<E>)],
) -> Result<Vec<E>, E::Key> {
    let mut result = Vec::with_capacity(elements.len() + changes.len());
    let mut old = keys.iter().zip(elements).peekable();
    let mut inserted = None;
    for (key, change) in changes {
        while let Some((_, element)) = old.next_if(|(other, _)| *other < key) {
            result.push(element.clone());
        }
        let present = old.peek().is_some_and(|(other, _)| *other == key);
        match change {
            Change::Remove if present => {
                old.next();
            }
            Change::Insert(element) if !present && inserted != Some(key) => {
                inserted = Some(key);
                result.push(element.clone());
            }
            _ => return Err(key.clone()),
        }
    }
    result.extend(old.map(|(_, element)| element.clone()));
    Ok(result)
}

/// Cuts `items` into as few parts of at most [`SLOTS_MAX`] as possible, all of about the same length.
fn evenly<T>(mut items: Vec<T>) -> Vec<Vec<T>> {
    let parts = items.len().div_ceil(SLOTS_MAX);
    let mut result = Vec::with_capacity(parts);
    for part in (1..parts).rev() {
        let rest = items.split_off(items.len() * part / (part + 1));
        result.push(rest);
    }
    if !items.is_empty() {
        result.push(items);
    }
    result.reverse();
    result
}

/// Walk along a [`Sequence`].
pub struct Iter<'a, E: Element> {
    above: Vec<std::slice::Iter<'a, Subtree<E>>>,
    leaf: std::slice::Iter<'a, E>,
}

impl<E: Element> Clone for Iter<'_, E> {
    fn clone(&self) -> Self {
        Self { above: self.above.clone(), leaf: self.leaf.clone() }
    }
}

impl<'a, E: Element> Iter<'a, E> {
    /// Goes down to the `index`th element of `node`, or to its end.
    fn descend(&mut self, mut node: &'a Node<E>, mut index: usize) {
        loop {
            match &node.slots {
                Slots::Elements(elements) => {
                    self.leaf = elements[index.min(elements.len())..].iter();
                    return;
                }
                Slots::Children(children) => {
                    let mut children = children.iter();
                    let child = loop {
                        match children.next() {
                            Some(child) if index < child.len => break child,
                            Some(child) => index -= child.len,
                            None => return,
                        }
                    };
                    self.above.push(children);
                    node = &child.node;
                }
            }
        }
    }
}

impl<'a, E: Element> Iterator for Iter<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<&'a E> {
        loop {
            if let Some(element) = self.leaf.next() {
                return Some(element);
            }
            match self.above.last_mut()?.next() {
                Some(child) => self.descend(&child.node, 0),
                None => {
                    self.above.pop();
                }
            }
        }
    }
}

#[cfg(test)]
impl<E: Element> Sequence<E> {
    /// Number of nodes that the two sequences do not share.
    pub fn nodes_apart(&self, other: &Self) -> usize {
        fn collect<E: Element>(tree: &Subtree<E>, into: &mut std::collections::BTreeSet<usize>) {
            into.insert(Arc::as_ptr(&tree.node) as usize);
            if let Slots::Children(children) = &tree.node.slots {
                children.iter().for_each(|child| collect(child, into));
            }
        }
        let (mut mine, mut theirs) = Default::default();
        collect(&self.root, &mut mine);
        collect(&other.root, &mut theirs);
        mine.symmetric_difference(&theirs).count()
    }

    /// Height of the tree; asserts that it is uniform and that nodes are neither too full nor needlessly small.
    pub fn checked_height(&self) -> usize {
        fn height<E: Element>(tree: &Subtree<E>, root: bool) -> usize {
            assert!(tree.slots() <= SLOTS_MAX);
            assert!(root || tree.slots() >= SLOTS_MIN, "{} slots", tree.slots());
            match &tree.node.slots {
                Slots::Elements(elements) => {
                    assert_eq!(tree.len, elements.len());
                    1
                }
                Slots::Children(children) => {
                    assert_eq!(tree.len, children.iter().map(|child| child.len).sum::<usize>());
                    let heights: Vec<_> = children.iter().map(|child| height(child, false)).collect();
                    assert!(heights.iter().all(|h| *h == heights[0]));
                    heights[0] + 1
                }
            }
        }
        height(&self.root, true)
    }
}
