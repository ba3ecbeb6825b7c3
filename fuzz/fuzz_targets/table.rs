//! Footer, handles, properties, and sealed blocks - the last also behind a checksum that matches.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::checksum::Place;
use terrace::format::table::{
    BlockHandle, Codec, FOOTER_BYTES, Footer, PartitionHandle, Properties, open_block, seal_block,
};

const PLACE: Place = Place { id: 7, offset: 4096 };

fuzz_target!(|bytes: &[u8]| {
    if let Ok(handle) = BlockHandle::decode(bytes) {
        assert_eq!(handle.encode(), bytes);
    }
    if let Ok(handle) = PartitionHandle::decode(bytes) {
        assert_eq!(handle.encode(), bytes);
    }
    if let Ok(properties) = Properties::decode(bytes) {
        let mut out = Vec::new();
        properties.encode(&mut out);
        assert_eq!(Properties::decode(&out), Ok(properties));
    }
    footer(bytes);
    blocks(bytes);
});

/// Bytes of a footer with the checksum made right.
fn footer(bytes: &[u8]) {
    let Some(bytes) = bytes.get(..FOOTER_BYTES) else { return };
    let mut bytes = bytes.to_vec();
    let table = bytes[12..20].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let covered = FOOTER_BYTES - 4;
    let checksum = Place { id: table, offset: u64::MAX }.checksum(&bytes[..covered]);
    bytes[covered..].copy_from_slice(&checksum.to_le_bytes());
    if let Ok(footer) = Footer::decode(&bytes) {
        assert_eq!(footer.encode(), &bytes[..]);
    }
}

fn blocks(bytes: &[u8]) {
    assert!(open_block(PLACE, bytes).is_err(), "nothing passes without a checksum");
    let mut forged = bytes.to_vec();
    forged.extend(PLACE.checksum(bytes).to_le_bytes());
    if let Ok(payload) = open_block(PLACE, &forged) {
        assert!(payload.len() <= bytes.len() * 256);
    }
    for codec in [Codec::Raw, Codec::Lz4] {
        let mut out = Vec::new();
        seal_block(PLACE, codec, bytes, &mut out);
        assert_eq!(open_block(PLACE, &out).as_deref(), Ok(bytes));
    }
}
