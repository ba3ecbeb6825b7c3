//! Which device gets a new pack.

use crate::types::DeviceId;

/// The placers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placer {
    /// Everything goes to the home device.
    Single,
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
            Self::Single => view.home,
        }
    }
}
