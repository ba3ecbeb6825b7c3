//! Relocation: decides which tables are copied as they are to another device, for those who read them.
//!
//! Reads wait longer for one device than for another. A table goes to the device where they wait least, once what they would have
//! saved there lately is what the copy costs: a copy costs about as much as to read as many bytes. If that device has no room,
//! tables there make some that are read less. Both are copied then, so the reads that come nearer must pay for two copies.
//!
//! The load of the devices is in how long reads take. So tables stop moving when the device that was near is as busy as the others. And
//! what a read takes with nothing in the way bounds what it is taken to save: otherwise copies, which keep a device busy, would
//! seem to be reasons for more of them.
//!
//! The idea is that of Qiu et al., "HotRAP: Hot Record Retention and Promotion for LSM-trees with Tiered Storage" (2024), with
//! tables in the place of records: nothing is decoded, and a block stays in the cache under the same key.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::catalog::TableMeta;
use crate::policy::devices::{DeviceView, Far, nearest};
use crate::policy::expiry::within_level;
use crate::policy::plan::{Plan, PlanKind, Reason};
use crate::policy::view::{ReadView, TreeView};
use crate::types::DeviceId;

/// Bytes that reads have saved for each byte of a table, from which on they pay for a copy.
const PAYS: u64 = 1;

/// The same for what compactions make of hot tables, in parts of [`PAYS`]: it was hot as a whole, and its parts differ by chance.
const STAYS_HOT_PARTS: u64 = 2;

/// A plan takes further tables up to this many bytes, so that a compaction that meets them does not wait for long.
const BYTES_MAX: u64 = 32 << 20;

/// Whether what a compaction makes of `table` will be read much.
#[must_use]
pub fn stays_hot(table: &TableMeta, age: u16) -> bool {
    table.heat.read_bytes(age).saturating_mul(STAYS_HOT_PARTS) >= table.bytes().saturating_mul(PAYS)
}

/// A table that may move.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    view: &'a TreeView<'a>,
    level: u8,
    table: &'a Arc<TableMeta>,
    /// Bytes that those who have read it lately would have saved at the nearest device, or have saved there.
    saved_bytes: f64,
}

impl Candidate<'_> {
    /// Bytes saved for each byte of the table.
    fn heat(&self) -> f64 {
        self.saved_bytes / self.table.bytes().max(1) as f64
    }

    /// Compares the heat; of equals, the older table is less.
    fn cmp_heat(&self, other: &Self) -> Ordering {
        self.heat().total_cmp(&other.heat()).then(self.table.id.cmp(&other.table.id))
    }

    fn is_beside(&self, other: &Self) -> bool {
        self.level == other.level && self.view.keyspace == other.view.keyspace
    }
}

/// The tables below level 0 on `devices`. Level 0 is left to its compactions.
fn candidates<'a>(
    views: &'a [TreeView<'a>],
    reads: &'a ReadView,
    devices: &'a [Far],
) -> impl Iterator<Item = Candidate<'a>> {
    let levels = views.iter().flat_map(|view| view.version.levels().skip(1).map(move |level| (view, level)));
    levels.flat_map(move |(view, (level, state))| {
        state.tables().filter_map(move |table| {
            let device = devices.iter().find(|device| device.id == table.extent.device)?;
            let saved_bytes = table.heat.read_bytes(reads.age) as f64 * device.saves;
            (!reads.blocked.contains(&table.extent.pack)).then_some(Candidate {
                view,
                level,
                table,
                saved_bytes,
            })
        })
    })
}

/// The plan that copies the first of `candidates` to `to`, however large it is, and others beside it up to `bytes_max` together.
fn relocating(
    candidates: &[Candidate<'_>],
    (to, bytes_max): (DeviceId, u64),
    reason: Reason,
) -> Option<Plan> {
    let first = candidates.first()?;
    let mut bytes = 0;
    let fits = |candidate: &&Candidate<'_>| {
        let is_first = bytes == 0;
        bytes += candidate.table.bytes();
        is_first || bytes <= bytes_max
    };
    let beside = candidates.iter().filter(|candidate| candidate.is_beside(first));
    let mut tables: Vec<&TableMeta> = beside.take_while(fits).map(|candidate| &**candidate.table).collect();
    tables.sort_by(|a, b| a.range.start.cmp(&b.range.start));
    let claims = tables.iter().map(|table| table.range.clone()).collect();
    let plan = within_level(first.view, first.level, PlanKind::Relocate(to), &tables, claims)?;
    Some(Plan { reason, ..plan })
}

/// The next tables that move, of one level, if no job runs: while compactions do, they bring what they make of hot tables near.
#[must_use]
pub fn next_relocation(views: &[TreeView<'_>], reads: &ReadView) -> Option<Plan> {
    if views.iter().any(|view| !view.busy.is_empty()) {
        return None;
    }
    let mut devices = reads.devices.clone();
    // Where the nearest one has no room and nothing makes any, the next one.
    while let Some((near, far)) = nearest(&devices) {
        let (near, plan) = (near.id, relocation_to(views, reads, near, &far));
        if plan.is_some() {
            return plan;
        }
        devices.retain(|device| device.id != near);
    }
    None
}

/// The next tables that come to `near` from `far`, or that make room for them.
fn relocation_to(views: &[TreeView<'_>], reads: &ReadView, near: &DeviceView, far: &[Far]) -> Option<Plan> {
    let pays = |hot: &Candidate<'_>| hot.heat() >= PAYS as f64 && hot.table.bytes() <= reads.bytes_max;
    let mut hot: Vec<_> = candidates(views, reads, far).filter(pays).collect();
    hot.sort_by(|a, b| b.cmp_heat(a));
    let bytes_max = BYTES_MAX.min(reads.bytes_max);
    if hot.first()?.table.bytes() <= near.free_bytes {
        return relocating(&hot, (near.id, near.free_bytes.min(bytes_max)), Reason::Read);
    }
    let others = reads.devices.iter().filter(|device| device.id != near.id);
    let other = others.max_by_key(|device| device.free_bytes)?;
    // There they would wait as for the device that they go to.
    let saves = far.iter().find(|far| far.id == other.id).map_or(0.0, |far| far.saves);
    let near = [Far { id: near.id, saves }];
    let fits = |cold: &Candidate<'_>| cold.table.bytes() <= other.free_bytes.min(reads.bytes_max);
    let mut cold: Vec<_> = candidates(views, reads, &near).filter(fits).collect();
    cold.sort_by(Candidate::cmp_heat);
    // One after the other, as long as the next hot one is worth the place of the next cold one.
    let (mut wanted, mut given, mut count) = (0, 0, 0);
    let mut next = hot.iter();
    for candidate in &cold {
        if given >= wanted {
            let Some(hot) = next.next() else { break };
            if hot.heat() < candidate.heat() + (2 * PAYS) as f64 {
                break;
            }
            wanted += hot.table.bytes();
        }
        given += candidate.table.bytes();
        count += 1;
    }
    relocating(&cold[..count], (other.id, bytes_max.min(other.free_bytes)), Reason::Room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Version;
    use crate::catalog::testing::{record, version};
    use crate::format::edit::TableRecord;
    use crate::policy::{Claims, TreeShape};
    use crate::types::{KeyRange, PackId, TableId};

    const AGE: u16 = 3;
    const TABLE: u64 = 4096;

    /// Home, for which reads wait 100 us, and another device, for which they wait 200: a read saves half.
    fn devices(near_free: u64) -> Vec<DeviceView> {
        let device = |id, read_nanos, free_bytes| DeviceView {
            id: DeviceId(id),
            rated_bandwidth: 100,
            bandwidth: 100,
            pending_bytes: 0,
            given_bytes: 0,
            free_bytes,
            total_bytes: 1 << 30,
            readers_wait: false,
            read_nanos,
            least_read_nanos: read_nanos,
        };
        vec![device(0, 100_000, near_free), device(1, 200_000, 1 << 30)]
    }

    fn on(device: u16, record: TableRecord) -> TableRecord {
        let mut record = record;
        record.extent.device = DeviceId(device);
        record
    }

    /// Tables 1 to 4 in level 1, at home those with even ids; 5 in level 2 and 6 in level 0 are not.
    fn tree() -> Version {
        let tables = (1..=4).zip(["a", "c", "e", "g"]);
        let mut tables: Vec<_> =
            tables.map(|(id, key)| (1, on((id % 2) as u16, record(id, key, key)))).collect();
        tables.push((2, on(1, record(5, "a", "b"))));
        tables.push((0, on(1, record(6, "a", "z"))));
        version(tables)
    }

    fn read(version: &Version, id: u64, bytes: u64) {
        let (_, table) = version.table(TableId(id)).unwrap();
        table.heat.read(bytes, AGE);
    }

    /// Where which tables go, and why.
    fn planned(version: &Version, devices: Vec<DeviceView>, busy: &Claims) -> String {
        let shape = TreeShape::default();
        let view = TreeView::of(version, busy, &shape);
        let reads = ReadView { devices, bytes_max: u64::MAX, blocked: [PackId(77)].into(), age: AGE };
        let plan = next_relocation(&[view], &reads);
        plan.map_or("nothing".to_owned(), |plan| {
            let PlanKind::Relocate(to) = plan.kind else { panic!("{plan}") };
            let ids: Vec<_> = plan.inputs.iter().map(|input| input.table.0).collect();
            format!("{ids:?} of level {} to {} ({})", plan.source, to.0, plan.reason)
        })
    }

    #[test]
    fn a_table_comes_near_once_reads_have_paid_for_it() {
        let (version, free) = (tree(), Claims::default());
        read(&version, 1, 2 * TABLE - 2);
        read(&version, 6, 100 * TABLE);
        assert_eq!(planned(&version, devices(1 << 20), &free), "nothing");
        read(&version, 1, 2);
        read(&version, 2, 9 * TABLE);
        assert_eq!(planned(&version, devices(1 << 20), &free), "[1] of level 1 to 0 (read)");
        read(&version, 3, 3 * TABLE);
        assert_eq!(planned(&version, devices(1 << 20), &free), "[1, 3] of level 1 to 0 (read)");
        assert_eq!(planned(&version, devices(TABLE), &free), "[3] of level 1 to 0 (read)", "the hotter one");
        read(&version, 5, 8 * TABLE);
        assert_eq!(planned(&version, devices(1 << 20), &free), "[5] of level 2 to 0 (read)");
    }

    #[test]
    fn nothing_moves_where_reads_wait_as_long_or_nobody_reads_or_a_job_works() {
        let version = tree();
        read(&version, 1, 3 * TABLE);
        let mut alike = devices(1 << 20);
        alike[0].read_nanos = 170_000;
        assert_eq!(planned(&version, alike, &Claims::default()), "nothing");
        let mut busy = devices(1 << 20);
        busy[1].least_read_nanos = 110_000;
        assert_eq!(planned(&version, busy, &Claims::default()), "nothing", "the far one is busy");
        let mut alike = devices(1 << 20);
        alike[0].least_read_nanos = 170_000;
        assert_eq!(planned(&version, alike, &Claims::default()), "nothing");
        let mut unread = devices(1 << 20);
        (unread[0].read_nanos, unread[1].read_nanos) = (0, 0);
        assert_eq!(planned(&version, unread, &Claims::default()), "nothing");
        let mut new = devices(1 << 20);
        (new[0].read_nanos, new[0].rated_bandwidth) = (0, 400);
        assert_eq!(planned(&version, new, &Claims::default()), "[1] of level 1 to 0 (read)");
        let shape = TreeShape::default();
        let none = Claims::default();
        let view = TreeView::of(&version, &none, &shape);
        let range = KeyRange::new(*b"x", *b"y");
        let mut busy = Claims::default();
        busy.claim(&within_level(&view, 1, PlanKind::Rewrite, &[], vec![range]).unwrap());
        assert_eq!(planned(&version, devices(1 << 20), &busy), "nothing");
    }

    #[test]
    fn a_full_device_gives_up_what_is_read_so_much_less_that_both_copies_pay() {
        let (version, free) = (tree(), Claims::default());
        read(&version, 1, 6 * TABLE);
        read(&version, 2, 2 * TABLE);
        read(&version, 4, 3 * TABLE);
        assert_eq!(planned(&version, devices(0), &free), "[2] of level 1 to 1 (room)");
        read(&version, 2, 2 * TABLE);
        assert_eq!(planned(&version, devices(0), &free), "nothing");
        read(&version, 1, 2 * TABLE);
        read(&version, 3, 4 * TABLE);
        assert_eq!(
            planned(&version, devices(0), &free),
            "[4] of level 1 to 1 (room)",
            "3 is not worth the place of 2"
        );
        read(&version, 3, 8 * TABLE);
        assert_eq!(planned(&version, devices(0), &free), "[2, 4] of level 1 to 1 (room)");
        let mut full = devices(0);
        full[1].free_bytes = 0;
        assert_eq!(planned(&version, full, &free), "nothing");
    }

    #[test]
    fn a_large_table_moves_and_a_blocked_one_is_in_nobodys_way() {
        let mut large = on(1, record(1, "a", "a"));
        large.extent.length = 64 << 20;
        let mut blocked = on(1, record(77, "c", "c"));
        blocked.extent.length = TABLE;
        let version = version(vec![(1, large), (1, blocked)]);
        read(&version, 1, 5 * (64 << 20));
        read(&version, 77, 100 * TABLE);
        assert_eq!(planned(&version, devices(1 << 30), &Claims::default()), "[1] of level 1 to 0 (read)");
    }

    #[test]
    fn no_more_gives_way_than_what_is_worth_its_place() {
        // Near: 2, 4 and 6 of heat 2. Far: 1 of heat 5, and 3, 5 of heat 1, which are worth the place of none.
        let tables = (1..=6).zip(["a", "c", "e", "g", "i", "k"]);
        let tables = tables.map(|(id, key)| (1, on((id % 2) as u16, record(id, key, key))));
        let version = version(tables.collect());
        for (id, heat) in [(1, 5), (2, 2), (3, 1), (4, 2), (5, 1), (6, 2)] {
            read(&version, id, 2 * heat * TABLE);
        }
        assert_eq!(planned(&version, devices(0), &Claims::default()), "[2] of level 1 to 1 (room)");
    }

    #[test]
    fn past_a_device_that_takes_nothing_to_the_next_one() {
        let (version, free) = (tree(), Claims::default());
        read(&version, 1, 6 * TABLE);
        let mut three = devices(1 << 20);
        let full = DeviceView { id: DeviceId(2), read_nanos: 90_000, least_read_nanos: 90_000, ..three[0] };
        three.push(DeviceView { free_bytes: 0, ..full });
        assert_eq!(planned(&version, three, &free), "[1] of level 1 to 0 (read)");
    }
}
