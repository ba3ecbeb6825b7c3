//! Compares the sizes, magics and the example that `docs/format.md` quotes with the code.

use super::golden;
use terrace::format::{FORMAT_VERSION, batch, block, coding, devices, filter, identity, log, pack, table};
use terrace::types;

const DOCUMENT: &str = include_str!("../../docs/format.md");

/// Every row of the document's table of constants, as the code has it.
fn constants() -> Vec<(&'static str, String)> {
    let magic = |bytes: [u8; 8]| format!("\"{}\"", bytes.escape_ascii());
    vec![
        ("FORMAT_VERSION", FORMAT_VERSION.to_string()),
        ("PAGE_BYTES", types::PAGE_BYTES.to_string()),
        ("KEY_BYTES_MAX", types::KEY_BYTES_MAX.to_string()),
        ("BOUND_BYTES_MAX", types::BOUND_BYTES_MAX.to_string()),
        ("VALUE_BYTES_MAX", types::VALUE_BYTES_MAX.to_string()),
        ("LEVELS", types::LEVELS.to_string()),
        ("VARINT_BYTES_MAX", coding::VARINT_BYTES_MAX.to_string()),
        ("BLOCK_HEADER_BYTES", block::BLOCK_HEADER_BYTES.to_string()),
        ("TRAILER_BYTES", table::TRAILER_BYTES.to_string()),
        ("HANDLE_BYTES", table::HANDLE_BYTES.to_string()),
        ("PARTITION_HANDLE_BYTES", table::PARTITION_HANDLE_BYTES.to_string()),
        ("FOOTER_BYTES", table::FOOTER_BYTES.to_string()),
        ("TABLE_MAGIC", magic(table::TABLE_MAGIC)),
        ("LINE_BYTES", filter::LINE_BYTES.to_string()),
        ("PACK_TRAILER_BYTES", pack::PACK_TRAILER_BYTES.to_string()),
        ("PACK_MAGIC", magic(pack::PACK_MAGIC)),
        ("FRAME_HEADER_BYTES", log::FRAME_HEADER_BYTES.to_string()),
        ("BATCH_HEADER_BYTES", batch::BATCH_HEADER_BYTES.to_string()),
        ("IDENTITY_BYTES", identity::IDENTITY_BYTES.to_string()),
        ("IDENTITY_MAGIC", magic(identity::IDENTITY_MAGIC)),
        ("DEVICES_MAGIC", magic(devices::DEVICES_MAGIC)),
    ]
}

#[test]
fn quoted_constants_are_those_of_the_code() {
    let cells =
        |line: &'static str| line.split('|').map(|cell| cell.trim().trim_matches('`')).collect::<Vec<_>>();
    let is_constant =
        |name: &str| name.len() > 2 && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let quoted: Vec<(&str, String)> = DOCUMENT
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(cells)
        .filter(|cells| is_constant(cells[1]))
        .map(|cells| (cells[1], cells[2].to_owned()))
        .collect();
    assert_eq!(quoted, constants());
}

#[test]
fn worked_example_is_the_golden_log() {
    let example = DOCUMENT
        .split("```hex\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a worked example");
    let bytes: Vec<u8> = example.lines().flat_map(golden::parse).collect();
    assert_eq!(bytes, golden::read("wal"));
}

#[test]
fn every_codec_is_indexed() {
    for file in
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/format")).expect("source directory")
    {
        let name = file.expect("entry").file_name().into_string().expect("UTF-8");
        let module = name.trim_end_matches(".rs");
        let helper = ["mod", "testing"].contains(&module);
        assert!(helper || DOCUMENT.contains(&format!("`{module}`")), "{module} is not in docs/format.md");
    }
}
