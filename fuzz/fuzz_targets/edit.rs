//! An edit that decodes means the same when encoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::edit::Edit;

fuzz_target!(|bytes: &[u8]| {
    let Ok(edit) = Edit::decode(bytes) else { return };
    let mut out = Vec::new();
    edit.encode(&mut out);
    assert_eq!(Edit::decode(&out), Ok(edit));
});
