//! What all rooms of the engine share: what they go by, what they tell, and what they count.
//!
//! Nothing here knows trees, jobs or threads. Whoever must wake somebody of a room above does it through [`wake`].

pub(in crate::engine) mod alarm;
pub(in crate::engine) mod costs;
pub(in crate::engine) mod events;
pub(in crate::engine) mod health;
pub(in crate::engine) mod ids;
pub(in crate::engine) mod job;
pub(in crate::engine) mod load_sample;
pub(in crate::engine) mod pressure;
pub(in crate::engine) mod reads;
pub(crate) mod settings;
pub(in crate::engine) mod statistics;
pub(in crate::engine) mod visibility;
pub(in crate::engine) mod wake;
