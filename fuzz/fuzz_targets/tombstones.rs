//! Range tombstones that decode are the one form of their list, and fragmented.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::tombstones;

fuzz_target!(|bytes: &[u8]| {
    let Ok(decoded) = tombstones::decode(bytes) else { return };
    let mut again = Vec::new();
    tombstones::encode(&decoded, &mut again);
    assert_eq!(again, bytes);
    for pair in decoded.windows(2) {
        assert!(pair[0].range == pair[1].range || !pair[0].range.overlaps(&pair[1].range));
    }
});
