//! The alarm: poisons the store when the outcome of an operation is unknown.
//!
//! From then on nothing is written, and nobody waits for what will not come. [`Alarm`] holds exactly what must hear
//! of it: the health, the listener, and all who may be waiting.

use std::sync::Arc;

use super::events::{Event, Events};
use super::health::Health;
use crate::engine::schedule::scheduler::Scheduler;
use crate::engine::write::pressure::Pressure;
use crate::engine::write::tickets::Tickets;
use crate::engine::write::visibility::Visibility;
use crate::error::Error;

/// Who hears that the store is poisoned.
#[derive(Debug)]
pub(crate) struct Alarm {
    pub(in crate::engine) health: Arc<Health>,
    pub(in crate::engine) events: Arc<Events>,
    pub(in crate::engine) scheduler: Arc<Scheduler>,
    pub(in crate::engine) pressure: Arc<Pressure>,
    pub(in crate::engine) visibility: Arc<Visibility>,
    pub(in crate::engine) tickets: Arc<Tickets>,
}

impl Alarm {
    /// The outcome of an operation is unknown: nothing is written any more, and nobody waits for it. Returns `cause`.
    ///
    /// A writer that waits for room is woken for sure only if the caller holds the writer's lock; others call
    /// [`Background::wake_writers`](crate::engine::schedule::background::Background) when they hold no lock.
    pub(in crate::engine) fn poison(&self, cause: Error) -> Error {
        if self.health.poison(&cause) {
            self.events.notify(|| Event::Poisoned(cause.clone()));
        }
        self.scheduler.wake_all();
        self.pressure.wake();
        self.visibility.give_up();
        self.tickets.end(&Error::poisoned(&cause));
        cause
    }
}
