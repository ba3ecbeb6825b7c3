//! The manifest: the log of catalog edits.
//!
//! A manifest file starts with the id of its store and a snapshot of the catalog. Edits follow, one frame each. The
//! file `CURRENT` names the manifest in force. When the edits have outgrown the snapshot, the store writes a new manifest and switches to it:
//!
//! 1. It writes the new file with a snapshot, and syncs it.
//! 2. It makes the new file's name durable.
//! 3. It replaces `CURRENT`: writes a file aside, syncs it, renames it and syncs the directory.
//! 4. Only then it removes the old file.
//!
//! # Invariants
//!
//! * A manifest counts only beside the `IDENTITY` of its store: one that was copied in from another store is refused.
//! * After a power cut at any step, `CURRENT` names one whole manifest.
//! * An append is a write and then a sync. Every earlier frame is durable before the next one is written.
//! * A write that fails is cut off again, durably, before the caller gets its error. So on a full disk the caller
//!   knows that the edit is not there. After any other failure the outcome is unknown, and the caller must stop
//!   writing.

use crate::env::Access;
use crate::error::{Error, Result};
use crate::format::current;
use crate::format::edit::Edit;
use crate::format::identity::StoreId;
use crate::format::log::{FRAME_HEADER_BYTES, FrameReader, FrameWriter, Tail, first_prev};
use crate::format::manifest::{EDIT_FRAME, ManifestStart, START_FRAME};
use crate::format::names::{self, FileName};
use crate::store::files::device::Device;
use crate::store::files::file::StoreFile;
use crate::store::files::meter::{ReadCause, WriteCause};
use crate::store::identity;

/// A manifest is rewritten once its edits take this many bytes and more than its snapshot does.
const REWRITE_BYTES_MIN: u64 = 256 * 1024;

/// The manifest in force, open for appending.
#[derive(Debug)]
pub(crate) struct Manifest {
    store: StoreId,
    number: u64,
    file: StoreFile,
    frames: FrameWriter,
    /// The number that the next attempt at a rewrite takes.
    next_number: u64,
    /// File length from which [`Manifest::outgrown`] asks for a rewrite, in bytes.
    rewrite_at: u64,
}

/// What [`Manifest::load`] found.
pub(crate) struct Loaded {
    /// The snapshot, then the edits in their order.
    pub(crate) edits: Vec<Edit>,
    /// The file that was read, for messages.
    pub(crate) path: std::path::PathBuf,
}

impl Manifest {
    /// Reads the manifest that CURRENT names. A torn last frame is an edit that was never acknowledged; it is left
    /// out. Any other damage is an error, and so is a manifest of another store than that of IDENTITY.
    pub(crate) fn load(device: &Device) -> Result<Loaded> {
        Self::load_of(device, Some(identity::read(device)?.store))
    }

    /// As [`Manifest::load`], of `store`, or of any if that is not known.
    fn load_of(device: &Device, store: Option<StoreId>) -> Result<Loaded> {
        let pointer = device.open(FileName::Current, Access::Read)?;
        let text =
            pointer.read(ReadCause::Open, 0, usize::try_from(pointer.len()?.min(4096)).unwrap_or(4096))?;
        let number = current::decode(&text).map_err(|e| pointer.malformed(0, &e))?;
        let file = device.open(FileName::Manifest(number), Access::Read)?;
        let len =
            usize::try_from(file.len()?).map_err(|_| file.corruption(0, "the manifest is too large"))?;
        let bytes = file.read(ReadCause::Open, 0, len)?;

        let mut frames = FrameReader::new(names::log_id_of_manifest(number), &bytes);
        let mut edits = Vec::new();
        if let Some(start) = frames.next() {
            let Some(ManifestStart { store: found }) = ManifestStart::of(&start) else {
                return Err(file.corruption(start.offset, "the manifest does not start with a start record"));
            };
            let is_blind = planted!("manifest-of-another-store-taken");
            if let Some(store) = store.filter(|store| *store != found && !is_blind) {
                return Err(foreign(device, &file, found, store));
            }
        }
        for frame in frames.by_ref() {
            if frame.kind != EDIT_FRAME {
                return Err(file.corruption(frame.offset, "unknown kind of manifest record"));
            }
            let edit = Edit::decode(frame.payload)
                .map_err(|e| file.malformed(frame.offset + FRAME_HEADER_BYTES as u64, &e))?;
            edits.push(edit);
        }
        match frames.tail() {
            Tail::Damaged { offset } => Err(file.corruption(offset, "a manifest record fails its checksum")),
            Tail::Torn { offset } if edits.is_empty() => {
                Err(file.corruption(offset, "the manifest's snapshot fails its checksum"))
            }
            Tail::Clean { offset } if edits.is_empty() => {
                Err(file.corruption(offset, "the manifest is empty"))
            }
            _ => Ok(Loaded { edits, path: file.path().to_path_buf() }),
        }
    }

    /// The edits of the manifest in force. If that one is damaged: the error, and the edits that can be read of the
    /// newest manifest of which any can be read.
    pub(crate) fn repair_scan(device: &Device) -> Result<(Vec<Edit>, Option<Error>)> {
        // Without IDENTITY any manifest is taken for that of the store.
        let store = identity::read(device).ok().map(|identity| identity.store);
        let damage = match Self::load_of(device, store) {
            Ok(loaded) => return Ok((loaded.edits, None)),
            Err(error) => error,
        };
        let manifest = |name| if let FileName::Manifest(number) = name { Some(number) } else { None };
        let mut numbers: Vec<u64> = device.list()?.into_iter().filter_map(manifest).collect();
        numbers.sort_unstable();
        let read = |number| {
            let file = device.open(FileName::Manifest(number), Access::Read)?;
            let bytes = file.read(ReadCause::Open, 0, usize::try_from(file.len()?).unwrap_or(0))?;
            let mut frames = FrameReader::new(names::log_id_of_manifest(number), &bytes);
            let start = frames.next().and_then(|frame| ManifestStart::of(&frame));
            if !start.is_some_and(|start| store.is_none_or(|store| start.store == store)) {
                return Ok(Vec::new());
            }
            Ok(frames.map_while(|frame| Edit::decode(frame.payload).ok()).collect())
        };
        let mut edits =
            numbers.into_iter().rev().map(|number| read(number).unwrap_or_else(|_: Error| Vec::new()));
        Ok((edits.find(|edits| !edits.is_empty()).unwrap_or_default(), Some(damage)))
    }

    /// Writes a manifest of `store` that starts with `snapshot` and makes it the one in force.
    pub(crate) fn create(device: &Device, store: StoreId, number: u64, snapshot: &Edit) -> Result<Self> {
        let staged = Self::stage(device, store, number, snapshot)?;
        device.switch(FileName::CurrentTemp, FileName::Current)?;
        Ok(staged)
    }

    /// Steps 1 and 2, and step 3 up to the rename. The old manifest is still in force afterwards.
    fn stage(device: &Device, store: StoreId, number: u64, snapshot: &Edit) -> Result<Self> {
        let log_id = names::log_id_of_manifest(number);
        let file = device.create(FileName::Manifest(number))?;
        let mut frames = FrameWriter::new(log_id, 0, first_prev(log_id));
        let (mut payload, mut bytes) = (Vec::new(), Vec::new());
        frames.append(START_FRAME, &[&ManifestStart { store }.encode()], 0, &mut bytes);
        snapshot.encode(&mut payload);
        frames.append(EDIT_FRAME, &[&payload], 0, &mut bytes);
        file.write(WriteCause::Manifest, 0, &bytes)?;
        file.sync(WriteCause::Manifest)?;
        device.sync_names()?;
        device.stage(FileName::CurrentTemp, &current::encode(number))?;
        let snapshot_bytes = bytes.len() as u64;
        let rewrite_at = rewrite_at(snapshot_bytes);
        Ok(Self { store, number, next_number: number + 1, file, frames, rewrite_at })
    }

    /// Switches to a manifest that starts with `snapshot`. Where that is not possible now (on a full disk, say), the
    /// old manifest stays in use. After an error it is unknown which of the two is in force.
    pub(crate) fn rewrite(&mut self, device: &Device, snapshot: &Edit) -> Result<()> {
        let number = self.next_number;
        self.next_number += 1;
        match Self::stage(device, self.store, number, snapshot) {
            Ok(staged) => {
                if planted!("old-manifest-removed-too-early") {
                    device.remove(FileName::Manifest(self.number))?;
                }
                device.switch(FileName::CurrentTemp, FileName::Current)?;
                let old = std::mem::replace(self, staged).number;
                // A manifest that CURRENT does not name is removed at the next open at the latest.
                let _ = device.remove(FileName::Manifest(old));
            }
            // Nobody refers to the new file. (If the sync of the directory failed, every later sync of it fails too,
            // so nobody relies on a name that is not durable.)
            Err(_) => {
                let _ = device.remove(FileName::Manifest(number));
                self.rewrite_at = rewrite_at(self.frames.offset());
            }
        }
        Ok(())
    }

    /// Makes `edit` durable. On a full disk ([`ErrorKind::DiskFull`](crate::error::ErrorKind::DiskFull)) nothing of it is
    /// left, durably; after any other failure the outcome is unknown.
    pub(crate) fn append(&mut self, edit: &Edit) -> Result<()> {
        let (mut payload, mut bytes) = (Vec::new(), Vec::new());
        edit.encode(&mut payload);
        let before = self.frames.clone();
        let offset = before.offset();
        // Every earlier frame was synced before this one is written.
        self.frames.append(EDIT_FRAME, &[&payload], offset, &mut bytes);
        if let Err(error) = self.file.write(WriteCause::Manifest, offset, &bytes) {
            if !planted!("failed-edit-leaves-a-gap") {
                self.frames = before;
            }
            self.file.set_len(offset)?;
            self.file.sync(WriteCause::Manifest)?;
            return Err(error);
        }
        if planted!("edit-not-synced") { Ok(()) } else { self.file.sync(WriteCause::Manifest) }
    }

    /// Whether the edits have outgrown the snapshot, so that the manifest should be rewritten.
    pub(crate) fn outgrown(&self) -> bool {
        self.frames.offset() > self.rewrite_at
    }

    /// Number of the file, from a counter of its own.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// The manifest `file` is of the store `found` and lies in the directory of `store`.
fn foreign(device: &Device, file: &StoreFile, found: StoreId, store: StoreId) -> Error {
    let identity = device.path(FileName::Identity);
    let what = format!("the manifest is of store {found}, but {} names store {store}", identity.display());
    file.corruption(0, what)
}

/// Length up to which a manifest that begins with `bytes` may grow.
fn rewrite_at(bytes: u64) -> u64 {
    bytes + bytes.max(REWRITE_BYTES_MIN)
}
