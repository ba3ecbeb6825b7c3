//! The whole catalog: keyspaces, packs and counters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::inconsistent::ensure;
use super::sequence::{Change, Element, Sequence};
use super::version::Nothing;
use super::{ExtentSink, Inconsistent, Lease, TableMeta, Version, check};
use crate::format::edit::{
    Counters, Deaths, Edit, KeyspaceChange, KeyspaceRecord, PackRecord, TableRecord, TreeEdit,
};
use crate::types::{ChunkMap, EditNo, Extent, KeyspaceId, PackId, Seq, TableId};

/// Everything that the manifest says, up to one edit. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The last edit applied; 0 before the first.
    pub number: EditNo,
    /// The next free value of every counter.
    pub counters: Counters,
    /// The living keyspaces.
    pub keyspaces: ChunkMap<KeyspaceId, KeyspaceState>,
    /// Their names.
    names: ChunkMap<Arc<str>, KeyspaceId>,
    packs: Sequence<PackState>,
}

/// One keyspace.
#[derive(Clone, Debug)]
pub struct KeyspaceState {
    /// Name and settings.
    pub record: Arc<KeyspaceRecord>,
    /// The tree.
    pub version: Arc<Version>,
    /// Every entry up to this sequence number is in a table.
    pub flushed: Seq,
}

/// A pack with at least one live table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackState {
    /// Id, device and length.
    pub record: PackRecord,
    /// Number of live tables.
    pub live_tables: u64,
    /// Length of the live tables together, in bytes; the rest of the pack is dead or padding.
    pub live_bytes: u64,
}

impl Element for PackState {
    type Key = PackId;
    type Total = Nothing;

    fn key(&self) -> PackId {
        self.record.id
    }

    fn total(&self) -> Nothing {
        Nothing
    }
}

impl Catalog {
    /// The catalog before the first edit.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Applies `edit` and returns the new catalog. `adopt` gives the lease for each table whose extent is new.
    ///
    /// When the edit is refused, the leases that were given by then end.
    ///
    /// # Errors
    ///
    /// When the edit does not follow this catalog (its number does not rise, a counter falls, an id lies beyond its
    /// counter), when it names a keyspace, table or pack that is not there, or one that is there already, when a table
    /// reaches beyond its pack, and when [`Version::apply`] refuses one of its tree edits.
    pub fn apply(
        &self,
        edit: &Edit,
        adopt: &mut dyn FnMut(&TableRecord) -> Lease,
    ) -> Result<Self, Inconsistent> {
        ensure!(edit.number > self.number, "edit {} comes after edit {}", edit.number, self.number);
        ensure_grown(&self.counters, &edit.counters)?;
        ensure_counted(edit)?;
        let mut next = Self { number: edit.number, counters: edit.counters, ..self.clone() };
        let mut usage = PackUsage::new(self, &edit.packs)?;
        for change in &edit.keyspaces {
            next.change_keyspace(change, &mut usage)?;
        }
        let mut changed = BTreeSet::new();
        for tree in &edit.trees {
            let twice = !changed.insert(tree.keyspace);
            ensure!(!twice, "edit {} changes keyspace {} twice", edit.number, tree.keyspace);
            next.change_tree(tree, &mut usage, adopt)?;
        }
        next.packs = usage.into_packs()?;
        if cfg!(debug_assertions) && !edit.packs.is_empty() {
            check::check_extents(next.extents())?;
        }
        Ok(next)
    }

    /// Lets go of what `edit`, which is durable, has made of this catalog to get `next`: values that are dead go to `sink` when
    /// nobody needs them any more.
    pub fn end(&self, edit: &Edit, next: &Self, sink: &Arc<dyn ExtentSink>) {
        for change in &edit.keyspaces {
            if let KeyspaceChange::Drop(id) = change
                && let Some(dropped) = self.keyspaces.get(id)
            {
                dropped.version.values().end_all(sink);
            }
        }
        for tree in &edit.trees {
            let states = (self.keyspaces.get(&tree.keyspace), next.keyspaces.get(&tree.keyspace));
            if let (Some(before), Some(after)) = states {
                before.version.values().end(after.version.values(), tree, sink);
            }
        }
    }

    /// Checks I2 and I3 for the step that `edit` makes from this catalog to `next`. A job calls it before its edit is
    /// written. Debug builds also check each changed tree as a whole.
    ///
    /// Edits that are read back are not checked: a store must open, if only to be verified and compacted.
    ///
    /// # Errors
    ///
    /// The first violation found, with its keyspace.
    pub fn check_step(&self, edit: &Edit, next: &Self) -> Result<(), Inconsistent> {
        for tree in &edit.trees {
            let (before, after) = (self.keyspaces.get(&tree.keyspace), next.keyspaces.get(&tree.keyspace));
            let (Some(before), Some(after)) = (before, after) else { continue };
            let name = &before.record.name;
            let in_keyspace = |error| Inconsistent::new(format!("keyspace {name:?}: {error}"));
            check::check_edit(&before.version, tree).map_err(in_keyspace)?;
            if cfg!(debug_assertions) {
                check::check_version(&after.version).map_err(in_keyspace)?;
            }
        }
        Ok(())
    }

    /// Checks that the step that `edit` makes from this catalog puts no table on top of another one of a level below
    /// level 0. A job calls it before its edit is written, unless its layout stacks.
    ///
    /// # Errors
    ///
    /// The first violation found, with its keyspace.
    pub fn check_merged(&self, edit: &Edit) -> Result<(), Inconsistent> {
        for tree in &edit.trees {
            let Some(before) = self.keyspaces.get(&tree.keyspace) else { continue };
            let name = &before.record.name;
            let in_keyspace = |error| Inconsistent::new(format!("keyspace {name:?}: {error}"));
            check::check_merged(&before.version, tree).map_err(in_keyspace)?;
        }
        Ok(())
    }

    /// The edit that turns the empty catalog into this one.
    #[must_use]
    pub fn snapshot(&self) -> Edit {
        Edit {
            number: self.number,
            keyspaces: self
                .keyspaces
                .values()
                .flat_map(|keyspace| KeyspaceChange::creating(&keyspace.record))
                .collect(),
            packs: self.packs().map(|pack| pack.record).collect(),
            trees: self.keyspaces.values().map(KeyspaceState::snapshot).collect(),
            counters: self.counters,
        }
    }

    /// The packs with live tables, by id.
    pub fn packs(&self) -> impl Iterator<Item = &PackState> {
        self.packs.iter_from(0)
    }

    /// The pack with `id`, as long as it has a live table.
    #[must_use]
    pub fn pack(&self, id: PackId) -> Option<&PackState> {
        self.packs.find(|other| *other < id).filter(|pack| pack.record.id == id)
    }

    /// Where every table lies, value tables included.
    pub fn extents(&self) -> impl Iterator<Item = (Extent, TableId)> {
        let tables = self.tables().map(|table| (table.extent, table.id));
        let values = self.keyspaces.values().flat_map(|keyspace| keyspace.version.values().iter());
        tables.chain(values.map(|table| (table.record.extent, table.record.id)))
    }

    /// Where everything that lives lies: tables, and the live parts of value tables.
    pub fn live_extents(&self) -> impl Iterator<Item = Extent> {
        let values = self.keyspaces.values().flat_map(|keyspace| keyspace.version.values().live_extents());
        self.tables().map(|table| table.extent).chain(values)
    }

    /// Every table of every keyspace, value tables left out.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableMeta>> {
        self.keyspaces.values().flat_map(|keyspace| keyspace.version.tables().map(|(_, table)| table))
    }

    fn change_keyspace(
        &mut self,
        change: &KeyspaceChange,
        usage: &mut PackUsage<'_>,
    ) -> Result<(), Inconsistent> {
        match change {
            KeyspaceChange::Create(record) => {
                let named = (1..=255).contains(&record.name.len());
                ensure!(named, "keyspace {} has no name, or too long a one", record.id);
                let taken = self.names.insert(record.name.as_str().into(), record.id);
                ensure!(taken.is_none(), "there is a keyspace named {:?} already", record.name);
                let state = KeyspaceState {
                    record: Arc::new(record.clone()),
                    version: Arc::new(Version::empty()),
                    flushed: Seq::ZERO,
                };
                let twice = self.keyspaces.insert(record.id, state);
                ensure!(twice.is_none(), "there is a keyspace {} already", record.id);
            }
            KeyspaceChange::Drop(id) => {
                let Some(dropped) = self.keyspaces.remove(id) else { return Err(no_keyspace(*id)) };
                self.names.remove(&Arc::from(dropped.record.name.as_str()));
                dropped.version.tables().for_each(|(_, table)| usage.leave(&table.extent));
                dropped.version.values().iter().for_each(|table| usage.leave(&table.record.extent));
            }
            &KeyspaceChange::Alter { keyspace: id, lz4, filter_bits } => {
                let Some(altered) = self.keyspaces.get_mut(&id) else { return Err(no_keyspace(id)) };
                let record = KeyspaceRecord { lz4, filter_bits, ..(*altered.record).clone() };
                altered.record = Arc::new(record);
            }
            &KeyspaceChange::SetSeparation { keyspace: id, from } => {
                let Some(altered) = self.keyspaces.get_mut(&id) else { return Err(no_keyspace(id)) };
                altered.record =
                    Arc::new(KeyspaceRecord { separate_from: from, ..(*altered.record).clone() });
            }
            &KeyspaceChange::SetTtl { keyspace: id, ttl } => {
                let Some(altered) = self.keyspaces.get_mut(&id) else { return Err(no_keyspace(id)) };
                let Some(before) = altered.record.ttl else {
                    return Err(Inconsistent::new(format!("values of keyspace {id} live for ever")));
                };
                let grown = ttl.alive_from >= before.alive_from;
                ensure!(grown, "I17: expired values of keyspace {id} would be alive");
                altered.record = Arc::new(KeyspaceRecord { ttl: Some(ttl), ..(*altered.record).clone() });
            }
        }
        Ok(())
    }

    fn change_tree(
        &mut self,
        edit: &TreeEdit,
        usage: &mut PackUsage<'_>,
        adopt: &mut dyn FnMut(&TableRecord) -> Lease,
    ) -> Result<(), Inconsistent> {
        let id = edit.keyspace;
        let keyspace = self.keyspaces.get_mut(&id).ok_or_else(|| no_keyspace(id))?;
        for (_, table) in edit.drop.iter().filter_map(|(_, table)| keyspace.version.table(*table)) {
            usage.leave(&table.extent);
        }
        for (_, record) in &edit.add {
            usage.enter(record.id, &record.extent)?;
        }
        for record in &edit.values {
            usage.enter(record.id, &record.extent)?;
        }
        let in_keyspace = |error| Inconsistent::new(format!("keyspace {id}: {error}"));
        let version = keyspace.version.apply(edit, adopt).map_err(in_keyspace)?;
        let was_there = |id: TableId| {
            let new = edit.values.iter().find(|record| record.id == id).map(|record| record.extent);
            new.or_else(|| Some(keyspace.version.values().get(id)?.record.extent))
        };
        for deaths in edit.deaths.iter().filter(|deaths| version.values().get(deaths.table).is_none()) {
            was_there(deaths.table).iter().for_each(|extent| usage.leave(extent));
        }
        keyspace.version = Arc::new(version);
        if let Some(flushed) = edit.flushed {
            ensure!(flushed >= keyspace.flushed, "keyspace {id} would be less flushed than it was");
            keyspace.flushed = flushed;
        }
        Ok(())
    }
}

impl KeyspaceState {
    fn snapshot(&self) -> TreeEdit {
        TreeEdit {
            keyspace: self.record.id,
            drop: Vec::new(),
            add: self.version.tables().map(|(level, table)| (level, table.record())).collect(),
            cursors: (self.version.levels())
                .filter_map(|(level, state)| Some((level, state.cursor.clone()?)))
                .collect(),
            flushed: Some(self.flushed),
            values: self.version.values().iter().map(|table| table.record.clone()).collect(),
            deaths: (self.version.values().iter().filter(|table| !table.dead.is_empty()))
                .map(|table| Deaths {
                    table: table.record.id,
                    count: table.dead_count,
                    spans: table.dead.clone(),
                })
                .collect(),
        }
    }
}

/// The packs that an edit touches, with the tables that come and go.
struct PackUsage<'a> {
    catalog: &'a Catalog,
    touched: BTreeMap<PackId, Touched>,
}

struct Touched {
    /// State before the edit; a pack that the edit adds has no tables then.
    before: PackState,
    entered: PackCounts,
    left: PackCounts,
}

#[derive(Default)]
struct PackCounts {
    tables: u64,
    bytes: u64,
}

impl PackCounts {
    fn count(&mut self, extent: &Extent) {
        self.tables += 1;
        self.bytes += extent.length;
    }
}

impl Touched {
    fn new(before: PackState) -> Self {
        Self { before, entered: PackCounts::default(), left: PackCounts::default() }
    }

    fn after(&self) -> Option<PackState> {
        let live_tables = (self.before.live_tables + self.entered.tables).checked_sub(self.left.tables)?;
        let live_bytes = (self.before.live_bytes + self.entered.bytes).checked_sub(self.left.bytes)?;
        Some(PackState { live_tables, live_bytes, ..self.before })
    }
}

impl<'a> PackUsage<'a> {
    fn new(catalog: &'a Catalog, new: &[PackRecord]) -> Result<Self, Inconsistent> {
        let mut touched = BTreeMap::new();
        for record in new {
            let pack = PackState { record: *record, live_tables: 0, live_bytes: 0 };
            let twice = touched.insert(record.id, Touched::new(pack)).is_some();
            ensure!(!twice && catalog.pack(record.id).is_none(), "there is a pack {} already", record.id);
        }
        Ok(Self { catalog, touched })
    }

    fn touch(&mut self, pack: PackId) -> Option<&mut Touched> {
        if !self.touched.contains_key(&pack) {
            self.touched.insert(pack, Touched::new(*self.catalog.pack(pack)?));
        }
        self.touched.get_mut(&pack)
    }

    fn leave(&mut self, extent: &Extent) {
        let pack = self.touch(extent.pack).expect("invariant: a live table lies in a pack of the catalog");
        pack.left.count(extent);
    }

    fn enter(&mut self, id: TableId, extent: &Extent) -> Result<(), Inconsistent> {
        let Some(pack) = self.touch(extent.pack) else {
            return Err(Inconsistent::new(format!("I7: table {id} lies in unknown pack {}", extent.pack)));
        };
        let PackRecord { device, length, .. } = pack.before.record;
        ensure!(extent.device == device, "I7: table {id} and its pack are on different devices");
        let end = extent.offset.checked_add(extent.length);
        ensure!(end.is_some_and(|end| end <= length), "I7: table {id} ends beyond pack {}", extent.pack);
        pack.entered.count(extent);
        Ok(())
    }

    /// The catalog's packs after the edit: those without tables are gone.
    fn into_packs(self) -> Result<Sequence<PackState>, Inconsistent> {
        let mut changes = Vec::with_capacity(self.touched.len());
        for (id, touched) in self.touched {
            let after = touched.after();
            let after = after.ok_or_else(|| Inconsistent::new(format!("pack {id} loses what it has not")))?;
            if touched.before.live_tables > 0 {
                changes.push((id, Change::Remove));
            }
            if after.live_tables > 0 {
                changes.push((id, Change::Insert(after)));
            }
        }
        (self.catalog.packs.with(&changes))
            .map_err(|id| Inconsistent::new(format!("pack {id} is there twice or not at all")))
    }
}

/// Counters only grow.
fn ensure_grown(old: &Counters, new: &Counters) -> Result<(), Inconsistent> {
    let grown = old.table <= new.table
        && old.pack <= new.pack
        && old.epoch <= new.epoch
        && old.segment <= new.segment
        && old.clock <= new.clock
        && old.wal_floor <= new.wal_floor
        && old.keyspace <= new.keyspace
        && old.seq <= new.seq;
    ensure!(grown, "I9: a counter falls from {old:?} to {new:?}");
    Ok(())
}

/// Every id lies below the next free one, so that no id is ever used again.
fn ensure_counted(edit: &Edit) -> Result<(), Inconsistent> {
    let counters = &edit.counters;
    for change in &edit.keyspaces {
        if let KeyspaceChange::Create(KeyspaceRecord { id, .. }) = change {
            ensure!(*id < counters.keyspace, "I9: keyspace {id} lies beyond its counter");
        }
    }
    for PackRecord { id, .. } in &edit.packs {
        ensure!(*id < counters.pack, "I9: pack {id} lies beyond its counter");
    }
    for table in edit.trees.iter().flat_map(|tree| &tree.values) {
        let id = table.id;
        ensure!(id < counters.table, "I9: value table {id} lies beyond its counter");
    }
    for (_, table) in edit.trees.iter().flat_map(|tree| &tree.add) {
        let TableRecord { id, epoch, max_seq, .. } = table;
        ensure!(*id < counters.table, "I9: table {id} lies beyond its counter");
        ensure!(*epoch < counters.epoch, "I9: epoch {epoch} of table {id} lies beyond its counter");
        ensure!(*max_seq <= counters.seq, "table {id} has entries beyond sequence number {}", counters.seq);
    }
    Ok(())
}

fn no_keyspace(id: KeyspaceId) -> Inconsistent {
    Inconsistent::new(format!("there is no keyspace {id}"))
}

#[cfg(test)]
mod tests;
