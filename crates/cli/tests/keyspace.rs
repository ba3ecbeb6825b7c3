//! `terrace keyspace`.

use crate::common::Workplace;

#[test]
fn keyspaces_are_made_shown_changed_and_dropped() {
    let place = Workplace::new();
    place.succeed("put db a 1");
    let default = "default\tcompression=none\tfilter_bits=10\tprefix=none\tseparate_from=16384\tttl=none\n";
    assert_eq!(place.succeed("keyspace db"), default);
    let photos = |compression, bits| {
        format!(
            "photos\tcompression={compression}\tfilter_bits={bits}\tprefix=none\tseparate_from=16384\tttl=none\n"
        )
    };
    assert_eq!(place.succeed("keyspace db photos --compression lz4"), photos("lz4", 10));
    place.succeed("put db --keyspace photos a 1");
    assert_eq!(place.succeed("keyspace db photos --filter-bits 14"), photos("lz4", 14));
    assert_eq!(place.succeed("keyspace db photos --compression none"), photos("none", 14));
    assert_eq!(place.succeed("keyspace db photos"), photos("none", 14));
    assert_eq!(place.succeed("keyspace db"), default.to_owned() + &photos("none", 14));
    assert_eq!(place.succeed("get db --keyspace photos a"), "1\n");
    place.succeed("keyspace db one --ttl 60");
    place.succeed("keyspace db other --ttl 60");
    assert!(place.run("keyspace db --drop one none other").stderr.contains("there is no keyspace"));
    assert_eq!(place.succeed("keyspace db --drop photos one other"), "");
    assert_eq!(place.succeed("keyspace db"), default);
    assert_eq!(
        place.succeed("keyspace db events --prefix-delimiter / --prefix-count 2 --ttl 60"),
        "events\tcompression=none\tfilter_bits=10\tprefix=delimited('/', 2)\tseparate_from=16384\tttl=60\n"
    );
    let longer = place.succeed("keyspace db events --ttl 3600");
    assert_eq!(
        longer,
        "events\tcompression=none\tfilter_bits=10\tprefix=delimited('/', 2)\tseparate_from=16384\tttl=3600\n"
    );
    assert_eq!(place.succeed("keyspace db events"), longer);
    assert!(place.succeed("manifest-dump db").contains("alter_life"));
    assert!(place.succeed("keyspace db users --prefix-bytes 4").contains("\tprefix=fixed(4)\t"));
    assert!(place.succeed("keyspace db users --separate-from 0").contains("\tseparate_from=none\t"));
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let place = Workplace::new();
    place.succeed("put db a 1");
    place.succeed("keyspace db events --ttl 60");
    for (command, reason) in [
        ("keyspace none", "cannot open"),
        ("keyspace none photos --ttl 60", "cannot open"),
        ("keyspace db photos", "there is no keyspace \"photos\": there are default, events"),
        ("keyspace db photos --drop", "there is no keyspace"),
        ("keyspace db default --drop", "cannot be dropped"),
        ("keyspace db default --ttl 61", "option ttl of a keyspace can be changed, but not come"),
        ("keyspace db events --prefix-bytes 3", "option prefix of a keyspace is fixed"),
        ("keyspace db events --filter-bits 21", "filter_bits_per_key"),
        ("keyspace db other --prefix-delimiter \u{fc}", "ASCII"),
        ("keyspace db --ttl 3", "required"),
        ("keyspace db events --drop --ttl 60", "cannot be used with"),
    ] {
        let ran = place.run(command);
        assert!(ran.status == 2 && ran.stderr.contains(reason), "{command}: {}", ran.stderr);
    }
    let events = "events\tcompression=none\tfilter_bits=10\tprefix=none\tseparate_from=16384\tttl=60\n";
    assert!(place.succeed("keyspace db").ends_with(events));
}
