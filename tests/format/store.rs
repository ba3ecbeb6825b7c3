//! A store that an earlier version wrote: opened, written on and compacted, in every layout.

use std::path::Path;

use terrace::{Db, Options};

/// Writes the files of the golden store into `dir`.
fn write_files(dir: &Path) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/v1/store.hex");
    let text = std::fs::read_to_string(path).expect("the golden store");
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["file", name, length] => files.push((name.into(), vec![0; length.parse().expect("a length")])),
            [offset, hex] => {
                let offset: usize = offset.parse().expect("an offset");
                let bytes = (0..hex.len() / 2)
                    .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex digits"));
                let (_, file) = files.last_mut().expect("a file comes first");
                bytes.enumerate().for_each(|(at, byte)| file[offset + at] = byte);
            }
            _ => panic!("{line}"),
        }
    }
    for (name, bytes) in files {
        std::fs::write(dir.join(name), bytes).expect("a file");
    }
}

fn contents(db: &Db) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    db.iter()
        .expect("a scan")
        .map(|entry| entry.expect("an entry"))
        .map(|(key, value)| (text(&key), text(&value)))
        .collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

const WRITTEN: &[(&str, &str)] = &[
    ("ka", "one-a"),
    ("kb", "four"),
    ("kc", "two-c"),
    ("kc5", "three"),
    ("kd", "two-d"),
    ("ke", "three-e"),
    ("kx", "two-x"),
    ("kz1", "1"),
    ("kz2", "2"),
];

#[test]
fn an_old_store_opens_in_every_layout() {
    for profile in Options::profiles() {
        let dir = tempfile::tempdir().unwrap();
        write_files(dir.path());
        let open = || Db::builder(dir.path()).options(Options::profile(profile).unwrap()).open().unwrap();
        // As it was written: no thread of a reader makes other runs of it.
        let reader = Db::open_read_only(dir.path()).unwrap();
        let stats = reader.stats();
        let deep = stats.keyspaces[0].shape.levels.iter().filter(|level| level.level > 0);
        let deep = deep.map(|level| level.runs);
        assert_eq!(deep.max(), Some(1), "{profile}");
        drop(reader);
        let db = open();
        assert_eq!(contents(&db), pairs(WRITTEN), "{profile}");
        assert!(db.verify().unwrap().problems.is_empty(), "{profile}");
        db.put("kb", "five").unwrap();
        db.delete("kc5").unwrap();
        db.compact().unwrap();
        db.close().unwrap();
        let db = open();
        let mut expected = pairs(WRITTEN);
        expected[1].1 = "five".into();
        expected.remove(3);
        assert_eq!(contents(&db), expected, "{profile}");
        assert!(db.verify().unwrap().problems.is_empty(), "{profile}");
        db.close().unwrap();
    }
}
