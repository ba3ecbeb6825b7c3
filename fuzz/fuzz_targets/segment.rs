//! A start of a segment that decodes is the one form of what it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::segment::SegmentStart;

fuzz_target!(|bytes: &[u8]| {
    let Ok(start) = SegmentStart::decode(bytes) else { return };
    assert_eq!(start.encode(), bytes);
});
