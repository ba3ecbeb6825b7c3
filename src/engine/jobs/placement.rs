//! Placement: which device of the store gets the next table of a job.
//!
//! The policy decides ([`Placer`](crate::options::Placer)); this tells it how the devices are.

use std::sync::atomic::Ordering::Relaxed;

use super::context::JobContext;
use crate::policy::{DeviceView, PlaceView};
use crate::store::files::devices::Member;
use crate::types::DeviceId;

impl JobContext {
    /// The device for a table of about `bytes` at `level`, which takes the place of what users read much if it `is_hot`.
    pub(in crate::engine) fn place(&self, level: u8, bytes: u64, is_hot: bool) -> DeviceId {
        let members = self.cache.packs().devices().members();
        if let [home] = &members[..] {
            return home.id;
        }
        let devices: Vec<DeviceView> = members.iter().map(|member| self.device_view(member)).collect();
        let placed = self.placed.fetch_add(1, Relaxed);
        let view = PlaceView { level, bytes, is_hot, placed, devices: &devices };
        self.settings.load().policy.placer.place(&view)
    }

    /// A device, as policies see it.
    pub(in crate::engine) fn device_view(&self, member: &Member) -> DeviceView {
        let (room, pending_bytes) = (member.room(&*self.env), member.pending_bytes());
        DeviceView {
            id: member.id,
            rated_bandwidth: member.rated_bandwidth,
            bandwidth: member.bandwidth(),
            pending_bytes,
            given_bytes: member.given_bytes(),
            // What is on its way there takes its part.
            free_bytes: room.free.saturating_sub(pending_bytes),
            total_bytes: room.total,
            readers_wait: member.readers_wait(),
            read_nanos: member.read_nanos(),
        }
    }
}
