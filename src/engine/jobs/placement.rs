//! Placement: which device of the store gets the next table of a job.
//!
//! The policy decides ([`Placer`](crate::options::Placer)); this tells it how the devices are.

use std::sync::atomic::Ordering::Relaxed;

use super::context::JobContext;
use crate::policy::{DeviceView, PlaceView};
use crate::store::files::devices::Member;
use crate::types::DeviceId;

impl JobContext {
    /// The device for a table of about `bytes` at `level`.
    pub(in crate::engine) fn place(&self, level: u8, bytes: u64) -> DeviceId {
        let members = self.cache.packs().devices().members();
        if let [home] = &members[..] {
            return home.id;
        }
        let view = |member: &Member| DeviceView {
            id: member.id,
            rated_bandwidth: member.rated_bandwidth,
            bandwidth: member.bandwidth(),
            pending_bytes: member.pending_bytes(),
            given_bytes: member.given_bytes(),
            free_bytes: member.free_bytes(&*self.env),
            readers_wait: member.readers_wait(),
        };
        let devices: Vec<DeviceView> = members.iter().map(|member| view(member)).collect();
        let placed = self.placed.fetch_add(1, Relaxed);
        self.settings.load().policy.placer.place(&PlaceView { level, bytes, placed, devices: &devices })
    }
}
