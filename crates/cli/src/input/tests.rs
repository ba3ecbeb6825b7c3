//! Tests with records in every notation, good and bad.

use super::*;

mod round_trip;
mod windows;

const TEXT: ByteFormat = ByteFormat { hex: false };

fn items(text: &str, format: Format, header: Header, bytes: ByteFormat) -> Vec<Item> {
    all(text.as_bytes(), Notation { format, header, line_ends: LineEnds::LfOrCrlf, bytes })
}

/// What is read of `input`.
fn all(input: impl BufRead, notation: Notation) -> Vec<Item> {
    let mut reader = read(input, notation);
    std::iter::from_fn(|| reader.next_item().unwrap()).collect()
}

fn record(line: u64, key: &str, value: &str) -> Item {
    Item::Record { line, keyspace: None, key: key.into(), value: value.into() }
}

/// Number and reason of the bad lines.
fn bad(items: Vec<Item>) -> Vec<(u64, String)> {
    let reasons = items.into_iter().filter_map(|item| match item {
        Item::Bad { line, reason } => Some((line, reason)),
        Item::Record { .. } => None,
    });
    reasons.collect()
}

#[test]
fn value_of_tab_separated_line_may_hold_tabs() {
    let items = items("a\t1\nb\t2\t3\nc\t", Format::Tsv, Header::Absent, TEXT);
    assert_eq!(items, [record(1, "a", "1"), record(2, "b", "2\t3"), record(3, "c", "")]);
}

#[test]
fn tab_separated_line_without_tab_is_bad_and_reading_goes_on() {
    let found = items("a\t1\nb\n\nc\t3\n", Format::Tsv, Header::Absent, TEXT);
    assert_eq!(found[3], record(4, "c", "3"));
    assert_eq!(bad(found).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn hexadecimal_columns_are_decoded() {
    let hex = ByteFormat { hex: true };
    assert_eq!(items("0x61\t62\n", Format::Tsv, Header::Absent, hex), [record(1, "a", "b")]);
    assert_eq!(items("61,0x62\n", Format::Csv, Header::Absent, hex), [record(1, "a", "b")]);
    assert_eq!(bad(items("6\t62\n", Format::Tsv, Header::Absent, hex)).len(), 1);
}

#[test]
fn quoted_columns_keep_commas_quotes_and_line_ends() {
    let text = "key,value\n\"a,b\",\"say \"\"hi\"\"\"\nc,\"two\nlines\"\nd,1,2\n";
    let found = items(text, Format::Csv, Header::Present, TEXT);
    assert_eq!(found[..2], [record(2, "a,b", "say \"hi\""), record(3, "c", "two\nlines")]);
    assert_eq!(bad(found), [(5, "expected 2 columns, found 3".to_owned())]);
    assert_eq!(items("key,value\n", Format::Csv, Header::Absent, TEXT), [record(1, "key", "value")]);
}

#[test]
fn json_lines_take_text_and_hex() {
    let text = "{\"key\":\"a\",\"value\":\"\\u00e9\\t\"}\n{\"key_hex\":\"62\",\"value\":\"x\"}\n";
    let found = items(text, Format::Jsonl, Header::Absent, TEXT);
    assert_eq!(found, [record(1, "a", "\u{e9}\t"), record(2, "b", "x")]);
}

#[test]
fn json_line_may_name_its_keyspace() {
    let found = items(r#"{"keyspace":"more","key":"a","value":"b"}"#, Format::Jsonl, Header::Absent, TEXT);
    let keyspace = Some("more".to_owned());
    assert_eq!(found, [Item::Record { line: 1, keyspace, key: b"a".to_vec(), value: b"b".to_vec() }]);
}

#[test]
fn bad_json_lines_say_why() {
    let text = "{\"key\":\"a\"}\n{\"key\":\n[]\n{\"key\":\"a\",\"key_hex\":\"61\",\"value\":\"\"}\n{\"kee\":\"a\"}\n";
    let found = bad(items(text, Format::Jsonl, Header::Absent, TEXT));
    assert_eq!(found.len(), 5);
    assert_eq!(found[0], (1, "neither value nor value_hex".to_owned()));
    assert_eq!(found[1], (2, "the object is incomplete".to_owned()));
    assert_eq!(found[3], (4, "both key and key_hex".to_owned()));
    assert!(found[4].1.contains("kee") && !found[4].1.contains("line 1"), "{}", found[4].1);
}

#[test]
fn ldb_dump_ends_with_its_trailer() {
    let text = "0x61 ==> 0x6263\n0x62 ==> 0x\nKeys in range: 2\nKeys in disguise\n";
    let found = items(text, Format::LdbHex, Header::Absent, TEXT);
    assert_eq!(found[..2], [record(1, "a", "bc"), record(2, "b", "")]);
    assert_eq!(bad(found), [(4, "expected 0xKEY ==> 0xVALUE".to_owned())]);
}

#[test]
fn formats_are_guessed() {
    assert_eq!(Format::of_name(Path::new("a/b.CSV")), Some(Format::Csv));
    assert_eq!(Format::of_name(Path::new("a/tsv")), None);
    assert_eq!(Format::of_start(b"{\"key\":1, "), Some(Format::Jsonl));
    assert_eq!(Format::of_start(b"0x00 ==> 0x01\n"), Some(Format::LdbHex));
    for either in [&b"{\"key\":1,\t"[..], b"0x00 ==> 0x01\t"] {
        assert_eq!(Format::of_start(either), None, "{}", either.escape_ascii());
    }
    assert_eq!(Format::of_start(b"0x00\t0x01\n"), Some(Format::Tsv));
    assert_eq!(Format::of_start(b"a,b\nc\t"), Some(Format::Csv));
    assert_eq!(Format::of_start(b"alone"), None);
}
