//! A batch that decodes is the one form of its operations.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::batch::{Ops, encode_header, put_op};

fuzz_target!(|bytes: &[u8]| {
    assert!(Ops::raw(bytes, u32::MAX).take_while(Result::is_ok).count() <= bytes.len());
    let Ok((first, ops)) = Ops::decode(bytes) else { return };
    let count = ops.remaining();
    let Ok(ops) = ops.collect::<Result<Vec<_>, _>>() else { return };
    assert_eq!(ops.len(), count as usize);
    let mut again = encode_header(first, count).to_vec();
    ops.iter().for_each(|op| put_op(&mut again, op));
    assert_eq!(again, bytes);
});
