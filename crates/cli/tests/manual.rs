//! Manual pages and completions.

use crate::common::Workplace;

const COMMANDS: &[&str] = &[
    "put",
    "get",
    "multi-get",
    "delete",
    "delete-range",
    "scan",
    "count",
    "dump",
    "load",
    "ingest",
    "checkpoint",
    "stats",
    "properties",
    "shape",
    "verify",
    "repair",
    "compact",
    "keyspace",
    "manifest-dump",
    "wal-dump",
    "table-dump",
    "bench",
    "man",
    "completions",
];

#[test]
fn manual_names_every_command_and_has_a_page_for_each() {
    let place = Workplace::new();
    let page = place.succeed("man");
    assert!(page.contains(".TH terrace 1"), "{page}");
    std::fs::create_dir(place.path("man1")).unwrap();
    place.succeed("man --all man1");
    for command in COMMANDS {
        // Pages write a hyphen as \-.
        let name = command.replace('-', "\\-");
        assert!(page.contains(&format!("terrace\\-{name}(1)")), "{command}: {page}");
        let own = place.succeed(&format!("man {command}"));
        assert!(own.contains(&format!(".TH terrace-{command} 1")), "{own}");
        assert!(place.path(&format!("man1/terrace-{command}.1")).exists(), "{command}");
    }
    assert!(place.succeed("man bench db").contains("\\-\\-use_existing_db"));
    assert!(place.succeed("man bench calm").contains("\\-\\-capacity\\-seconds"));
    assert_eq!(place.run("man nothing").status, 2);
}

#[test]
fn completions_know_every_command() {
    let place = Workplace::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.succeed(&format!("completions {shell}"));
        let missing: Vec<_> = COMMANDS.iter().filter(|command| !script.contains(**command)).collect();
        assert!(missing.is_empty(), "{shell}: {missing:?}");
    }
    assert_eq!(place.run("completions csh").status, 2);
}
