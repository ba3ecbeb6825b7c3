//! A pack directory, as it comes and with the trailer made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::checksum::Place;
use terrace::format::pack::{PACK_MAGIC, PackDirectory};

fuzz_target!(|bytes: &[u8]| {
    let _ = PackDirectory::decode_trailer(bytes);
    let _ = PackDirectory::decode(bytes);
    let Some(id) = bytes.get(4..12) else { return };
    let id = id.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let mut forged = bytes.to_vec();
    forged.extend(Place { id, offset: u64::MAX - 1 }.checksum(bytes).to_le_bytes());
    forged.extend((bytes.len() as u32 + 16).to_le_bytes());
    forged.extend(PACK_MAGIC);
    if let Ok(directory) = PackDirectory::decode(&forged) {
        assert_eq!(directory.encode(), forged);
    }
});
