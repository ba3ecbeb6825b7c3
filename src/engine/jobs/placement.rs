//! Placement: which device of the store gets the next table of a job.
//!
//! The policy decides ([`Placer`](crate::options::Placer)); this tells it how the devices are.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::context::JobContext;
use crate::env::Space;
use crate::env::sync::OrderedMutex;
use crate::options::Placer;
use crate::policy::{DeviceView, FastView, PlaceView, moved_level};
use crate::store::files::devices::Member;
use crate::types::DeviceId;

/// The last level for the fast device at present, where the placer adapts it.
#[derive(Debug, Default)]
pub(in crate::engine) struct MovingLevel(OrderedMutex<Option<Moved>>);

/// How the fast device was when the level moved last.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// What the options say it is at first.
    start: u8,
    upto: i8,
    at: Duration,
    /// Bytes that had been written to the device.
    written: u64,
}

/// Seconds without a placement beyond so many move the level no further: it has gone all the way.
const MOVES_MAX: u64 = 8;

impl MovingLevel {
    /// The level at `now`, once for each second that has passed moved by what was written meanwhile. It begins anew where the
    /// options have another one to start from.
    fn at(&self, start: u8, now: Duration, written: u64, fast: FastView) -> i8 {
        let mut state = self.0.lock();
        let first = Moved { start, upto: i8::try_from(start).unwrap_or(i8::MAX), at: now, written };
        let mut moved = state.filter(|moved| moved.start == start).unwrap_or(first);
        let passed = now.saturating_sub(moved.at);
        if passed.as_secs() > 0 {
            let bandwidth = written.saturating_sub(moved.written) as f64 / passed.as_secs_f64();
            let fast = FastView { bandwidth: bandwidth as u64, ..fast };
            for _ in 0..passed.as_secs().min(MOVES_MAX) {
                moved.upto = moved_level(moved.upto, fast);
            }
            (moved.at, moved.written) = (now, written);
        }
        *state = Some(moved);
        moved.upto
    }
}

impl JobContext {
    /// The device for a table of about `bytes` at `level`, which takes the place of what users read much if it `is_hot`.
    pub(in crate::engine) fn place(&self, level: u8, bytes: u64, is_hot: bool) -> DeviceId {
        let members = self.cache.packs().devices().members();
        if let [home] = &members[..] {
            return home.id;
        }
        let devices: Vec<DeviceView> = members.iter().map(|member| self.device_view(member)).collect();
        let placed = self.placed.fetch_add(1, Relaxed);
        let placer = self.settings.load().policy.placer;
        let moved_upto = match placer {
            Placer::Level { upto, adapt: true } => self.moved_upto(upto, &members),
            _ => 0,
        };
        placer.place(&PlaceView { level, bytes, is_hot, placed, moved_upto, devices: &devices })
    }

    /// A device, as policies see it.
    pub(in crate::engine) fn device_view(&self, member: &Member) -> DeviceView {
        let (room, pending_bytes) = (member.room(&*self.env), member.pending_bytes());
        let [read_nanos, least_read_nanos] = member.read_nanos();
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
            read_nanos,
            least_read_nanos,
        }
    }

    /// The last level for the fast device at present: `start` at first. Of what is written, home has the log, too.
    fn moved_upto(&self, start: u8, members: &[Arc<Member>]) -> i8 {
        let fast = members.iter().enumerate().rev().max_by_key(|(_, member)| member.rated_bandwidth);
        let Some((at, fast)) = fast else { return 0 };
        let logged = if at == 0 { fast.device.logged_bytes() } else { 0 };
        let written = (fast.given_bytes() + logged).saturating_sub(fast.pending_bytes());
        let space = self.env.space(fast.device.dir()).unwrap_or(Space { total: 0, free: 0 });
        let view = FastView {
            bandwidth: 0,
            rated_bandwidth: fast.rated_bandwidth,
            free_bytes: space.free,
            total_bytes: space.total,
        };
        self.moving_level.at(start, self.env.now(), written, view)
    }
}
