//! A pointer to a value has one form, and leads to nothing that its checksum does not fit. A footer, as it comes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::value_table::{ValueFooter, ValuePointer};
use terrace::types::Buffer;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(footer) = ValueFooter::decode(bytes) {
        assert_eq!(footer.encode(), bytes);
    }
    let Ok((pointer, behind)) = ValuePointer::decode(bytes) else { return };
    let mut again = Vec::new();
    pointer.encode(&mut again);
    again.extend_from_slice(behind);
    assert_eq!(again, bytes);
    // What follows is taken for the value.
    let forged = ValuePointer::to(pointer.table, pointer.offset, pointer.codec, pointer.length, behind);
    if let Ok(Some(value)) = forged.open(behind, |bytes| Buffer::from(vec![0; bytes])) {
        assert_eq!(value.len(), pointer.length as usize);
    }
});
