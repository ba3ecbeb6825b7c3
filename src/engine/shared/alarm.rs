//! The alarm: poisons the store when the outcome of an operation is unknown.
//!
//! From then on nothing is written, and nobody waits for what will not come. [`Alarm`] holds exactly what must hear
//! of it: the health, the listener, and all who may be waiting.

use std::sync::Arc;

use super::events::{Event, Events};
use super::health::Health;
use super::wake::Waiters;
use crate::error::Error;

/// Who hears that the store is poisoned.
#[derive(Debug)]
pub(crate) struct Alarm {
    pub(in crate::engine) health: Arc<Health>,
    pub(in crate::engine) events: Arc<Events>,
    /// In the order in which they hear of it.
    pub(in crate::engine) waiters: Vec<Arc<dyn Waiters>>,
}

impl Alarm {
    /// The outcome of an operation is unknown: nothing is written any more, and nobody waits for it. Returns `cause`.
    ///
    /// A writer that waits for room is woken for sure only if the caller holds the writer's lock; others wake writers
    /// once more when they hold no lock (`Background::wake_writers`).
    pub(in crate::engine) fn poison(&self, cause: Error) -> Error {
        if self.health.poison(&cause) {
            self.events.notify(|| Event::Poisoned(cause.clone()));
        }
        self.waiters.iter().for_each(|waiters| waiters.give_up(&cause));
        cause
    }
}
