//! `terrace delete-range`.

use crate::common::Workplace;

#[test]
fn ranges_go_and_their_neighbours_stay() {
    let place = Workplace::new();
    let letters: String = ('a'..='h').map(|letter| format!("{letter}\t1\n")).collect();
    assert_eq!(place.run_with("load db --format tsv", letters).status, 0);
    place.succeed("put db --keyspace more a 1");
    let left = || place.succeed("scan db --keys-only").replace('\n', "");
    for (range, expected) in [
        ("--from b --to d", "adefgh"),
        ("--prefix e --sync", "adfgh"),
        ("--hex --from 68", "adfg"),
        ("--from g --to a", "adfg"),
        ("--to d", "dfg"),
        ("--all", ""),
    ] {
        assert_eq!(place.succeed(&format!("delete-range db {range}")), "");
        assert_eq!(left(), expected, "{range}");
    }
    assert_eq!(place.succeed("count db --keyspace more"), "1\n");
}

#[test]
fn everything_goes_only_if_it_is_said() {
    let place = Workplace::new();
    place.succeed("put db a 1");
    let ran = place.run("delete-range db");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("terrace: no range is given"), "{}", ran.stderr);
    assert_eq!(place.run("delete-range db --all --from a").status, 2);
    assert_eq!(place.run("delete-range none --all").status, 2);
    assert_eq!(place.succeed("count db"), "1\n");
}
