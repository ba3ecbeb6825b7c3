//! What the frames of a manifest hold.
//!
//! ```text
//! KIND
//!  1   an edit of the catalog (`edit`); the first one is all of the catalog
//!  2   start of a manifest, its first frame:
//!      OFFSET SIZE FIELD
//!       0     8    store id, as in `IDENTITY` (`identity`)
//! ```

use super::Malformed;
use super::coding::{Decoder, put_u64};
use super::identity::StoreId;
use super::log::Frame;

/// Kind of a frame that holds an edit.
pub const EDIT_FRAME: u8 = 1;

/// Kind of the frame that starts a manifest.
pub const START_FRAME: u8 = 2;

const START_BYTES: usize = 8;

/// Whose manifest it is.
///
/// ```
/// use terrace::format::identity::StoreId;
/// use terrace::format::manifest::ManifestStart;
///
/// let start = ManifestStart { store: StoreId(4711) };
/// assert_eq!(ManifestStart::decode(&start.encode()), Ok(start));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ManifestStart {
    /// The store.
    pub store: StoreId,
}

impl ManifestStart {
    /// The payload of the frame.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(START_BYTES);
        put_u64(&mut payload, self.store.0);
        payload
    }

    /// Reads the payload of the frame.
    ///
    /// # Errors
    /// When it is none of a start.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Decoder::new(payload);
        let start = Self { store: StoreId(fields.u64()?) };
        fields.finish()?;
        Ok(start)
    }

    /// What `frame` says, if it starts a manifest.
    #[must_use]
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        if frame.kind == START_FRAME { Self::decode(frame.payload).ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::refuses_truncations;

    #[test]
    fn a_start_decodes_to_itself_and_from_nothing_else() {
        let start = ManifestStart { store: StoreId(0x0102_0304_0506_0708) };
        let bytes = start.encode();
        assert_eq!((bytes.len(), ManifestStart::decode(&bytes)), (START_BYTES, Ok(start)));
        refuses_truncations(&bytes, ManifestStart::decode);
        assert!(ManifestStart::decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn only_a_frame_of_its_kind_starts_a_manifest() {
        let payload = ManifestStart { store: StoreId(1) }.encode();
        let frame = |kind| Frame { offset: 0, kind, synced: 0, payload: &payload };
        assert!(ManifestStart::of(&frame(START_FRAME)).is_some());
        assert!(ManifestStart::of(&frame(EDIT_FRAME)).is_none());
    }
}
