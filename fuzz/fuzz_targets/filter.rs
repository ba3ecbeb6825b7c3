//! Filters: decoding is total, and what was added is found, prefixes included.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terrace::format::coding::Decoder;
use terrace::format::filter::{Filter, FilterBuilder, PrefixProbe, hash};
use terrace::format::prefix;

fuzz_target!(|bytes: &[u8]| {
    let probe = hash(bytes);
    let _ = Filter::decode(bytes).map(|filter| filter.may_contain(probe));
    let Some((&bits_per_key, rest)) = bytes.split_first() else { return };
    let mut decoder = Decoder::new(rest);
    let Ok(rule) = prefix::read(&mut decoder) else { return };
    assert_eq!(prefix::encode(rule), rest[..decoder.offset()]);
    let keys = &rest[decoder.offset()..];
    let mut builder = FilterBuilder::new(rule);
    keys.chunks(3).for_each(|key| builder.add(key));
    let mut out = Vec::new();
    builder.finish(bits_per_key, &mut out);
    let filter = Filter::decode(&out).expect("own filter decodes");
    assert_eq!(filter.prefix(), rule);
    assert!(keys.chunks(3).all(|key| filter.may_contain(hash(key))));
    let probe = |key| rule.and_then(|rule| Some(PrefixProbe::new(rule, rule.of(key)?)));
    assert!(keys.chunks(3).filter_map(probe).all(|probe| filter.may_contain_prefix(&probe)));
});
