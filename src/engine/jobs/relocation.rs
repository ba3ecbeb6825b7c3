//! Relocation: copies tables to another device for those who read them, and tells compactions which of their inputs are read.
//!
//! It is a rewrite whose output goes to one device ([`rewrite`](super::rewrite)): the tables keep their ids, so what the cache has
//! of them stays. A failure concerns nobody else. It, and space that readers still hold where somebody counts on it, puts off all
//! relocations for a while, longer each time. A pack that cannot be copied, or that somebody else holds, is left alone.
//!
//! It touches what [`JobContext`] holds.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::context::JobContext;
use super::rewrite::packs_of;
use crate::catalog::TableMeta;
use crate::engine::keyspace::tree::Tree;
use crate::engine::shared::events::Event;
use crate::env::sync::OrderedMutex;
use crate::error::{ErrorKind, Result};
use crate::format::names::FileName;
use crate::options::Placer;
use crate::policy::{DeviceView, Plan, ReadView, Reason, stays_hot};
use crate::store::files::devices::Member;
use crate::store::files::punch::is_kept;
use crate::types::{DeviceId, KeyRange, KeyRanges, PackId};

/// How long relocations are put off after one that made no space; twice as long after each further one, up to
/// [`DOUBLINGS_MAX`] times: three hours.
const PAUSE: Duration = Duration::from_secs(10);
const DOUBLINGS_MAX: u32 = 10;

/// How long a pack is left alone that somebody else holds, or of which something could not be copied.
const BLOCKED: Duration = Duration::from_secs(600);

/// A move takes at most this part of what is left of the space budget, and of what is free at home: writers come first.
const ROOM_PARTS: u64 = 8;

/// So often somebody looks whether tables are to move.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// When relocations go on.
#[derive(Debug, Default)]
pub(crate) struct Relocations {
    /// Until then there are none, in nanoseconds of the monotonic clock.
    paused_until: AtomicU64,
    /// How many were in vain, one after the other.
    in_vain: AtomicU32,
    /// Packs that are left alone, and until when.
    blocked: OrderedMutex<BTreeMap<PackId, Duration>>,
}

impl Relocations {
    fn is_paused(&self, now: Duration) -> bool {
        now.as_nanos() < u128::from(self.paused_until.load(Relaxed))
    }

    fn pause(&self, now: Duration) {
        let pause = PAUSE * (1 << self.in_vain.fetch_add(1, Relaxed).min(DOUBLINGS_MAX));
        self.paused_until.store(u64::try_from((now + pause).as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    fn succeeded(&self) {
        self.in_vain.store(0, Relaxed);
    }

    fn block(&self, packs: Vec<PackId>, now: Duration) {
        self.blocked.lock().extend(packs.into_iter().map(|pack| (pack, now + BLOCKED)));
    }

    fn blocked(&self, now: Duration) -> HashSet<PackId> {
        let mut blocked = self.blocked.lock();
        blocked.retain(|_, until| *until > now);
        blocked.keys().copied().collect()
    }
}

impl JobContext {
    /// Whether tables move between devices for their readers.
    fn relocates(&self) -> bool {
        let placer = self.settings.load().policy.placer;
        matches!(placer, Placer::Heat { .. }) && self.storage.devices.members().len() > 1
    }

    /// After how long somebody is to look whether tables should move.
    pub(in crate::engine) fn next_relocation_look(&self) -> Option<Duration> {
        self.relocates().then_some(LOOK_AGAIN)
    }

    /// What users read from the devices. What was read before they have read all tables once more counts half.
    fn read_age(&self) -> u16 {
        self.storage.devices.read_age(self.storage.reclaimer.pack_bytes())
    }

    /// What users read, as the planner sees it.
    pub(in crate::engine) fn read_view(&self) -> ReadView {
        let is_paused = self.relocations.is_paused(self.env.now());
        if !self.relocates() || is_paused || self.storage.is_short_of_space() {
            return ReadView::default();
        }
        let members = self.storage.devices.members();
        let (at_home, in_budget) = self.bytes_to_copy_at_leisure();
        let view = |member: &Arc<Member>| {
            let view = self.device_view(member);
            let rest = if member.id == DeviceId(0) { at_home } else { u64::MAX };
            DeviceView { free_bytes: view.free_bytes.min(rest), ..view }
        };
        let staying = members.iter().filter(|member| !member.is_leaving());
        ReadView {
            devices: staying.map(view).collect(),
            bytes_max: in_budget.map_or(u64::MAX, |rest| rest / ROOM_PARTS),
            blocked: self.relocations.blocked(self.env.now()),
            age: self.read_age(),
        }
    }

    /// Whether users read `table` so much that its place matters.
    pub(in crate::engine) fn is_hot(&self, table: &TableMeta) -> bool {
        self.relocates() && stays_hot(table, self.read_age())
    }

    /// Runs `plan`, which copies tables to the device `to`.
    pub(in crate::engine) fn relocate_or_pause(&self, plan: &Plan, to: DeviceId) {
        let Ok(tree) = self.tree(plan.keyspace) else { return };
        let packs = packs_of(&tree.view().version, plan);
        let devices = &self.storage.devices;
        let is_held = |pack: &PackId| is_kept(&devices.of(*pack).device, *pack);
        let held: Vec<PackId> = packs.iter().copied().filter(is_held).collect();
        if !held.is_empty() {
            return self.relocations.block(held, self.env.now());
        }
        match self.relocate((&tree, &packs), plan, to) {
            Ok(true) => self.relocations.succeeded(),
            Ok(false) => self.relocations.pause(self.env.now()),
            // The keyspace was dropped.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                self.relocations.pause(self.env.now());
                let is_named = |pack: &PackId| {
                    error.file() == Some(&*devices.of(*pack).device.path(FileName::Pack(*pack)))
                };
                self.relocations.block(packs.iter().copied().filter(is_named).collect(), self.env.now());
                self.statistics.failed();
                self.events.notify(|| Event::BackgroundError(error.clone()));
            }
        }
    }

    /// Returns whether that was of use: whether the space of the old tables has come back, where somebody counts on it.
    fn relocate(&self, (tree, packs): (&Tree, &BTreeSet<PackId>), plan: &Plan, to: DeviceId) -> Result<bool> {
        let devices = &self.storage.devices;
        if plan.reason != Reason::Room {
            let before = self.storage.reclaimer.pack_bytes();
            self.run_plan(tree, plan)?;
            let version = tree.view().version.clone();
            let has_come = |table: &TableMeta| table.extent.device == to;
            if plan
                .inputs
                .iter()
                .any(|input| version.table(input.table).is_some_and(|(_, table)| has_come(table)))
            {
                devices.member(to).brought(plan.bytes);
            }
            drop(version);
            let is_counted = self.settings.load().options.space_bytes.is_some();
            let is_back = || self.storage.reclaimer.pack_bytes() <= before + plan.bytes / 2;
            return Ok(!is_counted || self.make_room(is_back, plan.bytes));
        }
        let from: BTreeSet<DeviceId> = packs.iter().map(|pack| devices.of(*pack).id).collect();
        let room = || from.iter().map(|id| devices.member(*id).free_bytes(&*self.env)).sum::<u64>();
        let wanted = room().saturating_add(plan.bytes / 2);
        // What is dead there may do.
        if self.make_room(|| room() >= wanted, plan.bytes) {
            return Ok(true);
        }
        self.run_plan(tree, plan)?;
        Ok(self.make_room(|| room() >= wanted, plan.bytes))
    }

    /// Frees what is dead, at least `bytes` at a time, until there is room or nothing is left. Returns whether there is room.
    fn make_room(&self, has_room: impl Fn() -> bool, bytes: u64) -> bool {
        self.storage.wait_reclaimed();
        while !has_room() {
            if !self.storage.free_what_is_dead(bytes) {
                return false;
            }
        }
        true
    }

    /// The keys of those of `inputs` whose place something hot takes.
    pub(in crate::engine) fn hot_keys<'a>(
        &self,
        inputs: impl Iterator<Item = &'a Arc<TableMeta>>,
    ) -> Option<KeyRanges> {
        if !self.relocates() {
            return None;
        }
        let (age, mut keys) = (self.read_age(), KeyRanges::default());
        inputs.filter(|table| stays_hot(table, age)).for_each(|table| keys.add(&table.range));
        (!keys.is_empty()).then_some(keys)
    }

    /// Lets the tables of `version` that overlap no others of `written`, in key order, count what users have read of `inputs`.
    pub(in crate::engine) fn pass_heat<'a>(
        &self,
        inputs: impl Iterator<Item = &'a Arc<TableMeta>>,
        mut written: Vec<&Arc<TableMeta>>,
    ) {
        if !self.relocates() {
            return;
        }
        let age = self.read_age();
        written.sort_by(|a, b| a.range.start.cmp(&b.range.start));
        for input in inputs {
            let read = input.heat.read_bytes(age);
            let heirs = overlapping(&written, &input.range);
            let count = heirs.clone().count() as u64;
            if read > 0 && count > 0 {
                heirs.for_each(|heir| heir.heat.read(read / count, age));
            }
        }
    }
}

/// Those of `tables`, which are disjoint and in key order, that overlap `range`.
fn overlapping<'a>(
    tables: &'a [&'a Arc<TableMeta>],
    range: &'a KeyRange,
) -> impl Iterator<Item = &'a Arc<TableMeta>> + Clone {
    let first =
        tables.partition_point(|table| !table.range.overlaps(range) && table.range.start < range.start);
    tables[first..].iter().copied().take_while(|table| table.range.overlaps(range))
}
