//! Filters: decoding is total, and what was added is found.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::filter::{Filter, FilterBuilder, hash};

fuzz_target!(|bytes: &[u8]| {
    let probe = hash(bytes);
    let _ = Filter::decode(bytes).map(|filter| filter.may_contain(probe));
    let Some((&bits_per_key, keys)) = bytes.split_first() else { return };
    let mut builder = FilterBuilder::new();
    keys.chunks(3).for_each(|key| builder.add(hash(key)));
    let mut out = Vec::new();
    builder.finish(bits_per_key, &mut out);
    let filter = Filter::decode(&out).expect("own filter decodes");
    assert!(keys.chunks(3).all(|key| filter.may_contain(hash(key))));
});
