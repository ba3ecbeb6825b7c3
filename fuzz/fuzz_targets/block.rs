//! A block that decodes has total accessors; one in order also survives being built again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cmp::Ordering;
use terrace::format::block::{Block, BlockBuilder};
use terrace::types::Stamp;

fuzz_target!(|bytes: &[u8]| {
    let Ok(block) = Block::decode(bytes.to_vec()) else { return };
    assert_eq!(block.bytes(), bytes);
    let ordered = block.check_order().is_ok();
    let mut builder = BlockBuilder::new();
    let mut key = Vec::new();
    for index in 0..block.len() {
        block.key_into(index, &mut key);
        let stamp = block.stamp(index);
        assert_eq!(block.value(index), &bytes[block.value_span(index)]);
        assert_eq!(block.compare(index, &key, stamp), Ordering::Equal);
        assert!(block.seek(&key, Stamp::MAX) <= block.len());
        if ordered {
            assert_eq!(block.seek(&key, stamp), index);
            builder.add(&key, stamp, block.value(index));
        }
    }
    if ordered {
        rebuilds(&block, &mut builder);
    }
});

fn rebuilds(block: &Block, builder: &mut BlockBuilder) {
    let mut out = Vec::new();
    builder.finish(&mut out);
    let again = Block::decode(out).expect("own block decodes");
    assert_eq!(again.len(), block.len());
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for index in 0..block.len() {
        block.key_into(index, &mut left);
        again.key_into(index, &mut right);
        assert_eq!(left, right);
        assert_eq!(block.stamp(index), again.stamp(index));
        assert_eq!(block.value(index), again.value(index));
    }
}
