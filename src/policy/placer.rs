//! The placer: decides which device gets a new pack, and how tables share packs and descriptors there.

use crate::options::{Descriptors, OneDevice, PackLayout};
use crate::types::DeviceId;

/// The placers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placer {
    /// Everything goes to the home device.
    OneDevice(OneDevice),
}

/// What a placement depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaceView {
    /// Device that holds log and manifest.
    pub home: DeviceId,
    /// Level that the tables of the pack go to.
    pub level: u8,
}

impl Placer {
    /// The device for a new pack.
    #[must_use]
    pub fn place(&self, view: &PlaceView) -> DeviceId {
        match self {
            Self::OneDevice(_) => view.home,
        }
    }

    /// How tables share the packs of a job.
    #[must_use]
    pub fn packs(&self) -> PackLayout {
        match self {
            Self::OneDevice(device) => device.packs,
        }
    }

    /// What descriptors are kept for.
    #[must_use]
    pub fn descriptors(&self) -> Descriptors {
        match self {
            Self::OneDevice(device) => device.descriptors,
        }
    }
}
