//! Relocation: decides which tables are copied as they are to another device, for those who read them.
//!
//! Reads wait longer for one device than for another. A table goes to the device where they wait least, once users have read as
//! many bytes of it lately as it has: by then the reads have cost what the copy costs. If that device has no room, tables there
//! make some that are read less. Both are copied then, so the reads that come nearer must pay for two copies.
//!
//! The load of the devices is in how long reads take. So tables stop moving when the device that was near is as busy as the others.
//!
//! The idea is that of Qiu et al., "HotRAP: Hot Record Retention and Promotion for LSM-trees with Tiered Storage" (2024), with
//! tables in the place of records: nothing is decoded, and a block stays in the cache under the same key.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::catalog::TableMeta;
use crate::policy::expiry::within_level;
use crate::policy::placer::DeviceView;
use crate::policy::plan::{Plan, PlanKind, Reason};
use crate::policy::view::{ReadView, TreeView};
use crate::types::DeviceId;

/// Tables leave a device for which reads wait at least so many percent of the time that they wait for another.
const FARTHER_PERCENT: u64 = 150;

/// Bytes read for each byte of a table, from which on the reads pay for a copy.
const PAYS: u64 = 1;

/// The same for what compactions make of hot tables, in parts of [`PAYS`]: it was hot as a whole, and its parts differ by chance.
const STAYS_HOT_PARTS: u64 = 2;

/// A plan takes further tables up to this many bytes, so that a compaction that meets them does not wait for long.
const BYTES_MAX: u64 = 32 << 20;

/// How long reads take on `device`, in nanoseconds. One that was never read is taken to be as much faster than another as it writes
/// faster. 0 if nothing was read anywhere.
fn read_nanos(device: &DeviceView, devices: &[DeviceView]) -> u64 {
    if device.read_nanos > 0 {
        return device.read_nanos;
    }
    let by_bandwidth = |known: &DeviceView| {
        let nanos = u128::from(known.read_nanos) * u128::from(known.rated_bandwidth);
        u64::try_from(nanos / u128::from(device.rated_bandwidth.max(1))).unwrap_or(u64::MAX)
    };
    devices.iter().filter(|known| known.read_nanos > 0).map(by_bandwidth).min().unwrap_or(0)
}

/// The device for which reads wait least, and those for which they wait so much longer that tables should leave them. `None` if there
/// are none of these.
pub(super) fn nearest(devices: &[DeviceView]) -> Option<(&DeviceView, Vec<DeviceId>)> {
    let nearest = devices.iter().min_by_key(|device| read_nanos(device, devices))?;
    let limit = u128::from(read_nanos(nearest, devices)) * u128::from(FARTHER_PERCENT);
    let is_far = |device: &&DeviceView| {
        let nanos = read_nanos(device, devices);
        nanos > 0 && u128::from(nanos) * 100 >= limit && device.id != nearest.id
    };
    let far: Vec<DeviceId> = devices.iter().filter(is_far).map(|device| device.id).collect();
    (!far.is_empty()).then_some((nearest, far))
}

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
    /// Bytes of it that users have read lately.
    read_bytes: u64,
}

impl Candidate<'_> {
    /// Compares the bytes read for each byte of the table; of equals, the older table is less.
    fn cmp_heat(&self, other: &Self) -> Ordering {
        let product = |one: &Self, other: &Self| u128::from(one.read_bytes) * u128::from(other.table.bytes());
        product(self, other).cmp(&product(other, self)).then(self.table.id.cmp(&other.table.id))
    }

    /// Whether so many bytes more are read for each byte of it than of `other`.
    fn is_hotter_by(&self, more: u64, other: &Self) -> bool {
        let heat = |one: &Self| one.read_bytes as f64 / one.table.bytes().max(1) as f64;
        heat(self) >= heat(other) + more as f64
    }

    fn is_beside(&self, other: &Self) -> bool {
        self.level == other.level && self.view.keyspace == other.view.keyspace
    }
}

/// The tables below level 0 on `devices` that no running job has claimed. Level 0 is left to its compactions.
fn candidates<'a>(
    views: &'a [TreeView<'a>],
    age: u16,
    devices: &'a [DeviceId],
) -> impl Iterator<Item = Candidate<'a>> {
    let levels = views.iter().flat_map(|view| view.version.levels().skip(1).map(move |level| (view, level)));
    levels.flat_map(move |(view, (level, state))| {
        let may = move |table: &&Arc<TableMeta>| {
            devices.contains(&table.extent.device) && !view.busy.conflicts(level, &table.range)
        };
        state.tables().filter(may).map(move |table| {
            let read_bytes = table.heat.read_bytes(age);
            Candidate { view, level, table, read_bytes }
        })
    })
}

/// The plan that copies the first of `candidates` to `to`, and others beside it up to `bytes_max` together.
fn relocating(
    candidates: &[Candidate<'_>],
    (to, bytes_max): (DeviceId, u64),
    reason: Reason,
) -> Option<Plan> {
    let first = candidates.first()?;
    let mut bytes = 0;
    let fits = |candidate: &&Candidate<'_>| {
        bytes += candidate.table.bytes();
        bytes <= bytes_max
    };
    let beside = candidates.iter().filter(|candidate| candidate.is_beside(first));
    let mut tables: Vec<&TableMeta> = beside.take_while(fits).map(|candidate| &**candidate.table).collect();
    tables.sort_by(|a, b| a.range.start.cmp(&b.range.start));
    let claims = tables.iter().map(|table| table.range.clone()).collect();
    let plan = within_level(first.view, first.level, PlanKind::Relocate(to), &tables, claims)?;
    Some(Plan { reason, ..plan })
}

/// The next tables that move, of one level.
#[must_use]
pub fn next_relocation(views: &[TreeView<'_>], reads: &ReadView) -> Option<Plan> {
    let (near, far) = nearest(&reads.devices)?;
    let pays = |hot: &Candidate<'_>| hot.read_bytes >= hot.table.bytes().saturating_mul(PAYS);
    let mut hot: Vec<_> = candidates(views, reads.age, &far).filter(pays).collect();
    hot.sort_by(|a, b| b.cmp_heat(a));
    let hottest = *hot.first()?;
    if hottest.table.bytes() <= near.free_bytes {
        return relocating(&hot, (near.id, near.free_bytes.min(BYTES_MAX)), Reason::Read);
    }
    let wanted: u64 = hot.iter().map(|candidate| candidate.table.bytes()).sum();
    let others = reads.devices.iter().filter(|device| device.id != near.id);
    let other = others.max_by_key(|device| device.free_bytes)?;
    let bytes_max = wanted.min(BYTES_MAX).max(hottest.table.bytes()).min(other.free_bytes);
    let near = [near.id];
    let is_worth = |cold: &Candidate<'_>| hottest.is_hotter_by(2 * PAYS, cold);
    let mut cold: Vec<_> = candidates(views, reads.age, &near).filter(is_worth).collect();
    cold.sort_by(Candidate::cmp_heat);
    relocating(&cold, (other.id, bytes_max), Reason::Room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Version;
    use crate::catalog::testing::{record, version};
    use crate::format::edit::TableRecord;
    use crate::policy::{Claims, TreeShape};
    use crate::types::{KeyRange, KeyspaceId, TableId};

    const AGE: u16 = 3;
    const TABLE: u64 = 4096;

    /// Home, for which reads wait 70 us, and another device, for which they wait 300.
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
        };
        vec![device(0, 70_000, near_free), device(1, 300_000, 1 << 30)]
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
        let view = TreeView { keyspace: KeyspaceId(0), version, busy, shape: &shape, pins: &[] };
        let plan = next_relocation(&[view], &ReadView { devices, age: AGE });
        plan.map_or("nothing".to_owned(), |plan| {
            let PlanKind::Relocate(to) = plan.kind else { panic!("{plan}") };
            let ids: Vec<_> = plan.inputs.iter().map(|input| input.table.0).collect();
            format!("{ids:?} of level {} to {} ({})", plan.source, to.0, plan.reason)
        })
    }

    #[test]
    fn a_table_comes_near_once_reads_have_paid_for_it() {
        let (version, free) = (tree(), Claims::default());
        read(&version, 1, TABLE - 1);
        read(&version, 6, 100 * TABLE);
        assert_eq!(planned(&version, devices(1 << 20), &free), "nothing");
        read(&version, 1, 1);
        read(&version, 2, 9 * TABLE);
        assert_eq!(planned(&version, devices(1 << 20), &free), "[1] of level 1 to 0 (read)");
        read(&version, 3, 2 * TABLE);
        assert_eq!(planned(&version, devices(1 << 20), &free), "[1, 3] of level 1 to 0 (read)");
        assert_eq!(planned(&version, devices(TABLE), &free), "[3] of level 1 to 0 (read)", "the hotter one");
        read(&version, 5, 8 * TABLE);
        assert_eq!(planned(&version, devices(1 << 20), &free), "[5] of level 2 to 0 (read)");
    }

    #[test]
    fn nothing_moves_where_reads_wait_as_long_or_nobody_reads_or_a_job_works() {
        let version = tree();
        read(&version, 1, 2 * TABLE);
        let mut alike = devices(1 << 20);
        alike[0].read_nanos = 250_000;
        assert_eq!(planned(&version, alike, &Claims::default()), "nothing");
        let mut unread = devices(1 << 20);
        (unread[0].read_nanos, unread[1].read_nanos) = (0, 0);
        assert_eq!(planned(&version, unread, &Claims::default()), "nothing");
        let mut new = devices(1 << 20);
        (new[0].read_nanos, new[0].rated_bandwidth) = (0, 400);
        assert_eq!(planned(&version, new, &Claims::default()), "[1] of level 1 to 0 (read)");
        let shape = TreeShape::default();
        let none = Claims::default();
        let view =
            TreeView { keyspace: KeyspaceId(0), version: &version, busy: &none, shape: &shape, pins: &[] };
        let range = KeyRange::new(*b"a", *b"b");
        let mut busy = Claims::default();
        busy.claim(&within_level(&view, 1, PlanKind::Rewrite, &[], vec![range]).unwrap());
        assert_eq!(planned(&version, devices(1 << 20), &busy), "nothing");
    }

    #[test]
    fn a_full_device_gives_up_what_is_read_so_much_less_that_both_copies_pay() {
        let (version, free) = (tree(), Claims::default());
        read(&version, 1, 3 * TABLE);
        read(&version, 2, TABLE);
        read(&version, 4, 3 * TABLE / 2);
        assert_eq!(planned(&version, devices(0), &free), "[2] of level 1 to 1 (room)");
        read(&version, 2, TABLE);
        assert_eq!(planned(&version, devices(0), &free), "nothing");
        read(&version, 1, TABLE);
        read(&version, 3, 2 * TABLE);
        assert_eq!(planned(&version, devices(0), &free), "[2, 4] of level 1 to 1 (room)");
        let mut full = devices(0);
        full[1].free_bytes = 0;
        assert_eq!(planned(&version, full, &free), "nothing");
    }
}
