//! Golden files: hex bytes, 16 to a line, `#` before a comment.

use std::fmt::Write;
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "format", "v1", &format!("{name}.hex")].iter().collect()
}

/// The bytes of the golden file `name`.
pub fn read(name: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(path(name)).expect("golden file; UPDATE=1 writes it");
    text.lines().filter(|line| !line.starts_with('#')).flat_map(parse).collect()
}

/// The hex bytes with which `line` begins, one space between them.
pub fn parse(line: &str) -> Vec<u8> {
    let byte = |word: &str| if word.len() == 2 { u8::from_str_radix(word, 16).ok() } else { None };
    line.split(' ').map_while(byte).collect()
}

/// Compares `bytes` with the golden file `name`.
pub fn check(name: &str, bytes: &[u8]) {
    write_if_asked(name, bytes);
    assert_eq!(bytes, read(name), "the format of {name} has changed");
}

/// Rewrites the golden file `name` if the environment says `UPDATE=1`.
pub fn write_if_asked(name: &str, bytes: &[u8]) {
    if std::env::var("UPDATE").is_ok_and(|value| value == "1") {
        let mut text = format!("# {name}: format version 1, {} bytes\n", bytes.len());
        for line in bytes.chunks(16) {
            let words: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "{}", words.join(" ")).expect("a string takes all");
        }
        std::fs::write(path(name), text).expect("write golden file");
    }
}
