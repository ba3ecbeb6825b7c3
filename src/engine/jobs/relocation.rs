//! Relocation: copies tables to another device for those who read them, and tells compactions which of their inputs are read.
//!
//! It is a rewrite whose output goes to one device ([`rewrite`](super::rewrite)): the tables keep their ids, so what the cache has
//! of them stays. A failure concerns nobody else. It, and room that was made and is still held by readers, puts off all
//! relocations for a while, longer each time.
//!
//! It touches what [`JobContext`] holds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::context::JobContext;
use super::rewrite::packs_of;
use crate::catalog::TableMeta;
use crate::engine::shared::events::Event;
use crate::error::{ErrorKind, Result};
use crate::options::Placer;
use crate::policy::{DeviceView, Plan, ReadView, Reason, stays_hot};
use crate::store::files::devices::Member;
use crate::store::files::punch::is_kept;
use crate::types::{DeviceId, KeyRange, KeyRanges};

/// How long relocations are put off after one that was in vain; twice as long after each further one, up to
/// [`DOUBLINGS_MAX`] times: three hours.
const PAUSE: Duration = Duration::from_secs(10);
const DOUBLINGS_MAX: u32 = 10;

/// So often somebody looks whether tables are to move.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// When relocations go on.
#[derive(Debug, Default)]
pub(crate) struct Relocations {
    /// Until then there are none, in nanoseconds of the monotonic clock.
    paused_until: AtomicU64,
    /// How many were in vain, one after the other.
    in_vain: AtomicU32,
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
            let rest = if member.id == DeviceId(0) { at_home } else { in_budget };
            DeviceView { free_bytes: view.free_bytes.min(rest), ..view }
        };
        ReadView { devices: members.iter().map(view).collect(), age: self.read_age() }
    }

    /// Runs `plan`, which copies tables to the device `to`.
    pub(in crate::engine) fn relocate_or_pause(&self, plan: &Plan, to: DeviceId) {
        match self.relocate(plan, to) {
            Ok(true) => self.relocations.succeeded(),
            Ok(false) => self.relocations.pause(self.env.now()),
            // The keyspace was dropped.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                self.relocations.pause(self.env.now());
                self.statistics.failed();
                self.events.notify(|| Event::BackgroundError(error.clone()));
            }
        }
    }

    /// Returns whether that was of use: whether there is room where room was to be made.
    fn relocate(&self, plan: &Plan, to: DeviceId) -> Result<bool> {
        let tree = self.tree(plan.keyspace)?;
        let version = tree.view().version.within(std::slice::from_ref(&plan.range));
        let packs = packs_of(&version, plan);
        let devices = &self.storage.devices;
        if packs.iter().any(|pack| is_kept(&devices.of(*pack).device, *pack)) {
            return Ok(false);
        }
        if plan.reason != Reason::Room {
            self.run_plan(&tree, plan)?;
            devices.member(to).brought(plan.bytes);
            return Ok(true);
        }
        let from: BTreeSet<DeviceId> = packs.iter().map(|pack| devices.of(*pack).id).collect();
        let room = || from.iter().map(|id| devices.member(*id).free_bytes(&*self.env)).sum::<u64>();
        let wanted = room().saturating_add(plan.bytes / 2);
        drop(version);
        // What is dead there may do.
        if self.make_room(|| room() >= wanted, plan.bytes) {
            return Ok(true);
        }
        self.run_plan(&tree, plan)?;
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
