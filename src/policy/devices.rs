//! Devices, as policies see them: how fast they write, how long reads wait for them, and which one is nearest to readers.

use crate::types::DeviceId;

/// A device that readers wait for is taken to be so many times as slow.
const READERS_WAIT: u128 = 4;

/// Tables leave a device where a read takes so much longer than at the nearest one that this part of it would be saved.
const SAVES_MIN: f64 = 1.0 / 6.0;

/// A device, as policies see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceView {
    /// Which.
    pub id: DeviceId,
    /// Bytes per second that it was measured to write when it was added.
    pub rated_bandwidth: u64,
    /// Bytes per second that it has written lately.
    pub bandwidth: u64,
    /// Bytes that it has been given and has not written.
    pub pending_bytes: u64,
    /// Bytes of all tables that it was given.
    pub given_bytes: u64,
    /// Bytes that are left for tables there.
    pub free_bytes: u64,
    /// Size of its file system in bytes.
    pub total_bytes: u64,
    /// Whether readers wait for it longer than they should.
    pub readers_wait: bool,
    /// How long users wait for a block from there of late, in nanoseconds; 0 if none was read.
    pub read_nanos: u64,
    /// The same when nothing is in the way.
    pub least_read_nanos: u64,
}

impl DeviceView {
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.free_bytes >= bytes
    }

    /// Nanoseconds until it has written `bytes` more.
    pub(super) fn cost(&self, bytes: u64) -> u128 {
        let nanos = u128::from(self.pending_bytes.saturating_add(bytes)) * 1_000_000_000
            / u128::from(self.bandwidth.max(1));
        if self.readers_wait { nanos * READERS_WAIT } else { nanos }
    }
}

/// How long reads take on `device` of late, and with nothing in the way, in nanoseconds. One that was never read is taken to be as
/// much faster than another as it writes faster. 0 if nothing was read anywhere.
fn read_nanos(device: &DeviceView, devices: &[DeviceView]) -> [u64; 2] {
    let nanos = |device: &DeviceView| [device.read_nanos, device.least_read_nanos];
    if device.read_nanos > 0 {
        return nanos(device);
    }
    let known = devices.iter().filter(|known| known.read_nanos > 0).min_by_key(|known| known.read_nanos);
    known.map_or([0, 0], |known| {
        nanos(known).map(|nanos| {
            let scaled = u128::from(nanos) * u128::from(known.rated_bandwidth);
            u64::try_from(scaled / u128::from(device.rated_bandwidth.max(1))).unwrap_or(u64::MAX)
        })
    })
}

/// A device that tables should leave.
#[derive(Clone, Copy)]
pub(super) struct Far {
    pub(super) id: DeviceId,
    /// What a read saves at the nearest device, as a part of what it takes here.
    pub(super) saves: f64,
}

/// The device for which reads wait least, and those for which they wait so much longer that tables should leave them. `None` if there
/// are none of these.
pub(super) fn nearest(devices: &[DeviceView]) -> Option<(&DeviceView, Vec<Far>)> {
    let nearest = devices.iter().min_by_key(|device| read_nanos(device, devices))?;
    let near = read_nanos(nearest, devices);
    let far = |device: &DeviceView| {
        let pairs = near.into_iter().zip(read_nanos(device, devices));
        // Nothing, where nothing was read.
        let part = |(near, far): (u64, u64)| if far == 0 { 1.0 } else { near as f64 / far as f64 };
        let saves = 1.0 - pairs.map(part).fold(0.0, f64::max);
        (device.id != nearest.id && saves >= SAVES_MIN).then_some(Far { id: device.id, saves })
    };
    let far: Vec<Far> = devices.iter().filter_map(far).collect();
    (!far.is_empty()).then_some((nearest, far))
}
