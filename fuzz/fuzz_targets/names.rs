//! The small files and the names: whatever decodes has one form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::current;
use terrace::format::devices::DeviceList;
use terrace::format::identity::{Identity, StoreId};
use terrace::format::manifest::ManifestStart;
use terrace::format::names::FileName;
use terrace::types::DeviceId;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(number) = current::decode(bytes) {
        assert_eq!(current::encode(number), bytes);
    }
    if let Ok(identity) = Identity::decode(bytes) {
        assert_eq!(identity.encode(), bytes);
    }
    if let Ok(devices) = DeviceList::decode(bytes) {
        assert_eq!(devices.encode(), bytes);
    }
    if let Ok(start) = ManifestStart::decode(bytes) {
        assert_eq!(start.encode(), bytes);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Some(name) = FileName::parse(text) {
            assert_eq!(name.to_string(), text);
        }
    }
    let number = bytes.iter().take(10).rev().fold(0, |word: u64, &byte| word << 8 | u64::from(byte));
    // Names have numbers of up to 18 digits.
    let manifest = number % 1_000_000_000_000_000_000;
    assert_eq!(current::decode(&current::encode(manifest)), Ok(manifest));
    let identity = Identity { store: StoreId(number), device: DeviceId(number as u16) };
    assert_eq!(Identity::decode(&identity.encode()), Ok(identity));
});
