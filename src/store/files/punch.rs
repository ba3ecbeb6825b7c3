//! Hole punching: returns dead byte ranges of a live pack to the file system.
//!
//! A hole reads as zeros, at once and for everybody who has the file open. So the caller must be sure of two things:
//! nothing that a crash can bring back names the bytes, and nobody in this process reads them. This module checks for
//! others who may read them:
//!
//! * a reader beside the writer, by its hold on the pack ([`Device::hold`]);
//! * a copy by hard links, which is the same file.
//!
//! Between the check and the hole a reader may take hold of the pack in vain. It finds out when it reads its manifest
//! again (`store/files/recycled.rs` has the argument). Whoever links the file at that moment gets a copy whose damage
//! the checksums of its blocks show.
//!
//! No barrier follows a hole. If a power cut undoes it, the next open finds the space again ([`stored`]), and nothing
//! durable depends on it. Where space is promised at once, the caller syncs the file that it gets.

use std::io;
use std::ops::Range;

use super::device::Device;
use super::file::StoreFile;
use crate::env::Access;
use crate::error::Result;
use crate::format::names::FileName;
use crate::types::PackId;

/// Why dead bytes were not punched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Obstacle {
    /// Somebody beside the writer reads the pack.
    Held,
    /// The file has a second name (a hard link), under which the hole would show.
    Linked,
    /// The file system does not support holes.
    Unsupported,
    /// The operating system refused.
    Refused,
}

/// The result of an attempt to punch a pack.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Number of byte ranges, from the first on, that are holes now.
    pub(crate) punched: usize,
    /// What stood in the way of the others.
    pub(crate) obstacle: Option<Obstacle>,
    /// The file, if anything was punched.
    pub(crate) file: Option<StoreFile>,
}

impl Attempt {
    fn refused(obstacle: Obstacle) -> Self {
        Self { punched: 0, obstacle: Some(obstacle), file: None }
    }
}

/// Punches `byte_ranges` out of a pack, in this order. Only the thread that may give up the pack may call this, so
/// its name means the same file all the time.
pub(crate) fn punch(device: &Device, pack: PackId, byte_ranges: &[Range<u64>]) -> Attempt {
    let name = FileName::Pack(pack);
    if device.is_held(name) && !planted!("held-pack-punched") {
        return Attempt::refused(Obstacle::Held);
    }
    let Ok(file) = device.open(name, Access::ReadWrite) else { return Attempt::refused(Obstacle::Refused) };
    match file.links() {
        Ok(1) => {}
        Ok(_) if planted!("linked-pack-punched") => {}
        Ok(_) => return Attempt::refused(Obstacle::Linked),
        Err(_) => return Attempt::refused(Obstacle::Refused),
    }
    let mut attempt = Attempt { punched: 0, obstacle: None, file: None };
    for byte_range in byte_ranges {
        if let Err(error) = file.punch(byte_range) {
            let unsupported = error.kind() == io::ErrorKind::Unsupported;
            attempt.obstacle = Some(if unsupported { Obstacle::Unsupported } else { Obstacle::Refused });
            break;
        }
        attempt.punched += 1;
    }
    attempt.file = (attempt.punched > 0).then_some(file);
    attempt
}

/// Whether a pack has a second name: a copy by hard links. `true` if that cannot be found out.
pub(crate) fn is_linked(device: &Device, pack: PackId) -> bool {
    let file = device.open(FileName::Pack(pack), Access::Read);
    !file.and_then(|file| file.links()).is_ok_and(|links| links == 1)
}

/// Whether the space of a pack would stay in use even if this process gave the pack up: a reader beside the writer
/// holds it, or it has a second name.
pub(crate) fn is_kept(device: &Device, pack: PackId) -> bool {
    device.is_held(FileName::Pack(pack)) || is_linked(device, pack)
}

/// The parts of `byte_ranges`, which are in order, that have storage.
pub(crate) fn stored(file: &StoreFile, byte_ranges: &[Range<u64>]) -> Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    let mut data = 0..0;
    for byte_range in byte_ranges {
        let mut at = byte_range.start;
        while at < byte_range.end {
            if data.end <= at {
                match file.next_data(at)? {
                    Some(next) if next.end > at => data = next,
                    _ => return Ok(found),
                }
            }
            let part = at.max(data.start)..byte_range.end.min(data.end);
            if part.is_empty() {
                break;
            }
            at = part.end;
            found.push(part);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::env::simulated::{SimConfig, SimEnv};
    use crate::store::files::meter::{Meter, WriteCause};

    const PAGE: u64 = 4096;

    fn pack(env: &Arc<SimEnv>, pages: u64) -> (Device, StoreFile) {
        let device = Device::new(env.clone(), "/".into(), Arc::new(Meter::default()));
        let file = device.create(FileName::Pack(PackId(1))).unwrap();
        file.write(WriteCause::Compaction, 0, &vec![7; (pages * PAGE) as usize]).unwrap();
        (device, file)
    }

    #[test]
    fn what_is_a_hole_already_is_not_stored() {
        let env = SimEnv::new(SimConfig::default());
        let (device, file) = pack(&env, 20);
        let pages = |from: u64, to: u64| from * PAGE..to * PAGE;
        assert_eq!(stored(&file, &[pages(2, 5), pages(8, 9)]).unwrap(), [pages(2, 5), pages(8, 9)]);
        let attempt = punch(&device, PackId(1), &[pages(3, 6), pages(8, 12)]);
        assert_eq!((attempt.punched, attempt.obstacle), (2, None));
        let gaps = [pages(0, 4), pages(5, 7), pages(8, 9), pages(10, 14), pages(18, 20)];
        let left = [pages(0, 3), pages(6, 7), pages(12, 14), pages(18, 20)];
        assert_eq!(stored(&file, &gaps).unwrap(), left);
        assert_eq!(stored(&file, &[pages(3, 6), pages(8, 9)]).unwrap(), []);
        assert_eq!(stored(&file, &[pages(19, 30)]).unwrap(), [pages(19, 20)]);
    }

    #[test]
    fn whoever_else_has_the_file_stands_in_the_way() {
        let env = SimEnv::new(SimConfig::default());
        let (device, file) = pack(&env, 4);
        let attempt = |device: &Device| {
            let attempt = punch(device, PackId(1), std::slice::from_ref(&(0..PAGE)));
            assert_eq!(attempt.file.is_some(), attempt.obstacle.is_none());
            attempt.obstacle
        };
        let held = device.hold(FileName::Pack(PackId(1))).unwrap();
        assert_eq!(attempt(&device), Some(Obstacle::Held));
        drop(held);
        crate::env::Env::create_dir(&*env, "/backup".as_ref()).unwrap();
        let (name, copy) = (device.path(FileName::Pack(PackId(1))), std::path::Path::new("/backup/copy"));
        env.link(&name, copy).unwrap();
        assert!(is_linked(&device, PackId(1)));
        assert_eq!(attempt(&device), Some(Obstacle::Linked));
        assert_eq!(file.allocated().unwrap(), 4 * PAGE);
        crate::env::Env::remove(&*env, copy).unwrap();
        assert!(!is_linked(&device, PackId(1)));
        assert_eq!(attempt(&device), None);
        assert_eq!(file.allocated().unwrap(), 3 * PAGE);
    }
}
