//! The placer: decides which device gets a new table.
//!
//! *Dynamic* is the future work that "Improving Performance in LSM-Tree based Key-Value Stores using NVMe" (section 6) names:
//! placement by measured load. A device costs the time until it will have written what it has been given, at the speed that it has
//! shown lately. So a slow device gets tables only as fast as it writes them, and a job at the end of which all devices are synced
//! waits for none of them alone.

mod adapt;

pub use adapt::{FastView, moved_level};

use crate::options::{Placer, Unit};
use crate::policy::devices::{DeviceView, nearest};
use crate::types::DeviceId;

/// Divisor: this part of the device for which reads wait least is left to tables that are read much.
const KEPT_FOR_HOT: u64 = 8;

/// What a placement depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaceView<'a> {
    /// Level that the table goes to.
    pub level: u8,
    /// Bytes that it will take, about.
    pub bytes: u64,
    /// Whether it takes the place of what users read much.
    pub is_hot: bool,
    /// So many were placed before.
    pub placed: u64,
    /// The last level for the fast device at present, where [`Placer::Level`] adapts it; below 0 there is none.
    pub moved_upto: i8,
    /// The devices, at least one. The first one holds log and manifest.
    pub devices: &'a [DeviceView],
}

impl Placer {
    /// Whether all tables of a job go to one device.
    #[must_use]
    pub fn places_jobs(&self) -> bool {
        match self {
            Self::Home | Self::Level { .. } => true,
            Self::Mod { unit, .. } | Self::Weighted { unit, .. } => *unit == Unit::Job,
            Self::Dynamic { unit } | Self::Heat { unit } => *unit == Unit::Job,
        }
    }

    /// The device for the next table. One that has no room is passed over for one that has; if none has, the first one gets it.
    ///
    /// # Panics
    ///
    /// When the view has no device.
    #[must_use]
    pub fn place(&self, view: &PlaceView<'_>) -> DeviceId {
        let PlaceView { level, bytes, is_hot, placed, moved_upto, devices } = *view;
        let home = &devices[0];
        let fast = devices.iter().rev().max_by_key(|device| device.rated_bandwidth).unwrap_or(home);
        let slow = devices.iter().rev().min_by_key(|device| device.rated_bandwidth).unwrap_or(home);
        let quickest_but = |left_out: Option<DeviceId>| {
            let with_room = devices.iter().filter(|device| device.has_room(bytes));
            let with_room = with_room.filter(|device| Some(device.id) != left_out);
            with_room.min_by_key(|device| device.cost(bytes))
        };
        let quickest = || quickest_but(None).unwrap_or(home);
        let chosen = match *self {
            Self::Home => home,
            Self::Mod { n, .. } => {
                if (placed + 1).is_multiple_of(u64::from(n)) {
                    slow
                } else {
                    fast
                }
            }
            Self::Weighted { slow_percent, .. } => {
                let all = u128::from(fast.given_bytes) + u128::from(slow.given_bytes) + u128::from(bytes);
                let is_owed = u128::from(slow.given_bytes + bytes) * 100 <= all * u128::from(slow_percent);
                if is_owed { slow } else { fast }
            }
            Self::Level { upto, adapt } => {
                if i16::from(level) <= if adapt { i16::from(moved_upto) } else { i16::from(upto) } {
                    fast
                } else {
                    slow
                }
            }
            Self::Dynamic { .. } => quickest(),
            Self::Heat { .. } => match nearest(devices) {
                Some((near, _)) if is_hot && near.has_room(bytes) => near,
                Some((near, _)) if near.free_bytes < near.total_bytes / KEPT_FOR_HOT => {
                    quickest_but(Some(near.id)).unwrap_or_else(quickest)
                }
                _ => quickest(),
            },
        };
        if chosen.has_room(bytes) { chosen.id } else { quickest().id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const UNIT: Unit = Unit::Table;

    /// Devices of 450 and 100 MB/s.
    fn devices() -> [DeviceView; 2] {
        [450, 100].map(|bandwidth: u64| DeviceView {
            id: DeviceId(if bandwidth == 450 { 0 } else { 1 }),
            rated_bandwidth: bandwidth * 1_000_000,
            bandwidth: bandwidth * 1_000_000,
            pending_bytes: 0,
            given_bytes: 0,
            free_bytes: u64::MAX,
            total_bytes: u64::MAX,
            readers_wait: false,
            read_nanos: 0,
            least_read_nanos: 0,
        })
    }

    /// Places `tables` of 1 MiB at `level` while nothing is written, and draws where they go.
    fn placed(placer: Placer, level: u8, tables: u64, mut devices: [DeviceView; 2]) -> String {
        let (mut drawn, is_hot) = (String::new(), false);
        for placed in 0..tables {
            let view = PlaceView { level, bytes: MIB, is_hot, placed, moved_upto: 1, devices: &devices };
            let id = placer.place(&view);
            let device = &mut devices[usize::from(id.0)];
            device.pending_bytes += MIB;
            device.given_bytes += MIB;
            device.free_bytes = device.free_bytes.saturating_sub(MIB);
            drawn.push(if id.0 == 0 { 'f' } else { 's' });
        }
        drawn
    }

    #[test]
    fn each_placer_deals_tables_as_it_says() {
        let drawn = |placer, level| placed(placer, level, 12, devices());
        assert_eq!(drawn(Placer::Home, 1), "ffffffffffff");
        assert_eq!(drawn(Placer::Mod { n: 2, unit: UNIT }, 1), "fsfsfsfsfsfs");
        assert_eq!(drawn(Placer::Mod { n: 6, unit: UNIT }, 1), "fffffsfffffs");
        assert_eq!(drawn(Placer::Weighted { slow_percent: 25, unit: UNIT }, 1), "fffsfffsfffs");
        assert_eq!(drawn(Placer::Weighted { slow_percent: 0, unit: UNIT }, 1), "ffffffffffff");
        assert_eq!(drawn(Placer::Level { upto: 2, adapt: false }, 2), "ffffffffffff");
        assert_eq!(drawn(Placer::Level { upto: 2, adapt: false }, 3), "ssssssssssss");
        assert_eq!(drawn(Placer::Level { upto: 3, adapt: true }, 1), "ffffffffffff");
        assert_eq!(drawn(Placer::Level { upto: 3, adapt: true }, 2), "ssssssssssss");
    }

    #[test]
    fn dynamic_gives_each_device_as_much_as_it_can_write() {
        let dynamic = Placer::default();
        let drawn = placed(dynamic, 1, 55, devices());
        assert_eq!(drawn.matches('s').count(), 10, "{drawn}");
        assert!(drawn.starts_with("ffff"), "{drawn}");
        let mut slowed = devices();
        slowed[0].bandwidth /= 9;
        let drawn = placed(dynamic, 1, 30, slowed);
        assert_eq!(drawn.matches('s').count(), 20, "half as fast as the other: {drawn}");
        let mut read = devices();
        read[0].readers_wait = true;
        let drawn = placed(dynamic, 1, 34, read);
        assert_eq!(drawn.matches('s').count(), 16, "{drawn}");
    }

    #[test]
    fn what_is_read_much_goes_where_reads_wait_least_and_the_last_part_there_is_left_to_it() {
        let mut devices = devices();
        (devices[0].total_bytes, devices[0].free_bytes) = (800 * MIB, 102 * MIB);
        let placer = Placer::default();
        let to = |devices: &[DeviceView], is_hot| {
            placer.place(&PlaceView { level: 1, bytes: MIB, is_hot, placed: 0, moved_upto: 0, devices }).0
        };
        let both = |devices: &[DeviceView]| [to(devices, true), to(devices, false)];
        assert_eq!(both(&devices), [0, 0], "nobody reads");
        let wait = |device: &mut DeviceView, nanos| {
            (device.read_nanos, device.least_read_nanos) = (nanos, nanos);
        };
        wait(&mut devices[0], 90_000);
        wait(&mut devices[1], 100_000);
        devices[0].pending_bytes = 100 * MIB;
        assert_eq!(both(&devices), [1, 1], "it makes no difference to readers");
        wait(&mut devices[1], 200_000);
        assert_eq!(both(&devices), [0, 1]);
        (devices[0].pending_bytes, devices[0].free_bytes) = (0, 99 * MIB);
        assert_eq!(both(&devices), [0, 1]);
        devices[1].free_bytes = 0;
        assert_eq!(both(&devices), [0, 0], "there is no room elsewhere");
    }

    #[test]
    fn a_full_device_is_passed_over_and_none_is_no_reason_to_stop() {
        for placer in [
            Placer::Home,
            Placer::Mod { n: 2, unit: UNIT },
            Placer::Level { upto: 6, adapt: false },
            Placer::default(),
        ] {
            let mut fast_full = devices();
            fast_full[0].free_bytes = 2 * MIB;
            let drawn = placed(placer, 1, 20, fast_full);
            assert_eq!(drawn.matches('f').count(), 2, "{drawn}");
            let all_full = devices().map(|device| DeviceView { free_bytes: 0, ..device });
            assert!(placed(placer, 1, 5, all_full).starts_with("fffff"));
        }
    }
}
