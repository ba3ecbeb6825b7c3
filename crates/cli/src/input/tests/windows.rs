//! Tests with text from Windows: byte-order marks, CRLF, UTF-16, halves of surrogate pairs.

use std::io::{BufReader, Read};

use super::*;
use crate::input::start::Text;

const FORMATS: [(Format, &str); 4] = [
    (Format::Tsv, "a\t1\nb\t2\n"),
    (Format::Csv, "a,1\nb,2\n"),
    (Format::Jsonl, "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"2\"}\n"),
    (Format::LdbHex, "0x61 ==> 0x31\n0x62 ==> 0x32\nKeys in range: 2\n"),
];

/// Gives its bytes in pieces of at most `.1`.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.1.min(buffer.len());
        self.0.read(&mut buffer[..most])
    }
}

fn notation(format: Format, line_ends: LineEnds) -> Notation {
    Notation { format, header: Header::Absent, line_ends, bytes: TEXT }
}

/// What `terrace load` reads of `text`, which comes in pieces of `bytes`.
fn load(text: &[u8], bytes: usize, notation: Notation) -> Vec<Item> {
    let text = Text::begin(BufReader::new(Pieces(text, bytes)), "pieces").unwrap();
    all(text.into_reader(), notation)
}

#[test]
fn mark_and_crlf_are_no_part_of_records_wherever_reads_end() {
    for (format, text) in FORMATS {
        for mark in ["", "\u{FEFF}"] {
            for text in [text.to_owned(), text.replace('\n', "\r\n"), text.trim_end().replace('\n', "\r\n")] {
                let text = format!("{mark}{text}");
                for bytes in 1..=text.len() {
                    let found = load(text.as_bytes(), bytes, notation(format, LineEnds::LfOrCrlf));
                    assert_eq!(
                        found,
                        [record(1, "a", "1"), record(2, "b", "2")],
                        "{text:?} in pieces of {bytes}"
                    );
                    let begun =
                        Text::begin(BufReader::new(Pieces(text.as_bytes(), bytes)), "pieces").unwrap();
                    assert_eq!(
                        Format::of_start(begun.first_line()),
                        Some(format),
                        "{text:?} in pieces of {bytes}"
                    );
                }
            }
        }
    }
}

#[test]
fn cr_is_kept_where_it_is_meant() {
    for (format, text) in FORMATS {
        let found = load(text.replace('\n', "\r\n").as_bytes(), 7, notation(format, LineEnds::Lf));
        let value = |value: &str| match format {
            Format::Tsv | Format::Csv => format!("{value}\r"),
            // White space there, and no part of a value.
            Format::Jsonl | Format::LdbHex => value.to_owned(),
        };
        assert_eq!(found, [record(1, "a", &value("1")), record(2, "b", &value("2"))], "{format:?}");
    }
}

#[test]
fn cr_within_a_value_and_mark_behind_the_beginning_stay() {
    for line_ends in [LineEnds::LfOrCrlf, LineEnds::Lf] {
        let found =
            load("a\r\t1\r2\n\u{FEFF}b\t\u{FEFF}\nc\t\r\r".as_bytes(), 3, notation(Format::Tsv, line_ends));
        assert_eq!(
            found,
            [record(1, "a\r", "1\r2"), record(2, "\u{FEFF}b", "\u{FEFF}"), record(3, "c", "\r\r")]
        );
        let found = load(b"a,\"1\r\n2\r3\"\nb,\"\xEF\xBB\xBF\"\n", 3, notation(Format::Csv, line_ends));
        assert_eq!(found, [record(1, "a", "1\r\n2\r3"), record(3, "b", "\u{FEFF}")]);
    }
    let found = load(b"c\t1\r\r\n", 2, notation(Format::Tsv, LineEnds::LfOrCrlf));
    assert_eq!(found, [record(1, "c", "1\r")]);
    let found = load("\u{FEFF}\u{FEFF}a\t1\n".as_bytes(), 2, notation(Format::Tsv, LineEnds::LfOrCrlf));
    assert_eq!(found, [record(1, "\u{FEFF}a", "1")]);
}

#[test]
fn empty_lines_at_the_end_are_no_lines() {
    for (format, text) in FORMATS {
        for end in ["\n", "\r\n", "\r\n\r\n\n"] {
            let found = load(format!("{text}{end}").as_bytes(), 5, notation(format, LineEnds::LfOrCrlf));
            assert_eq!(found, [record(1, "a", "1"), record(2, "b", "2")], "{format:?}, {end:?}");
        }
    }
    for format in [Format::Tsv, Format::Jsonl, Format::LdbHex] {
        let found = load(b"\r\n\n", 1, notation(format, LineEnds::LfOrCrlf));
        assert_eq!(found, [], "{format:?}");
        let lines: Vec<u64> = bad(load(b"\r\n\nx\n\n", 1, notation(format, LineEnds::LfOrCrlf)))
            .iter()
            .map(|bad| bad.0)
            .collect();
        assert_eq!(lines, [1, 2, 3], "{format:?}");
    }
}

#[test]
fn bad_lines_are_numbered_whatever_ends_them() {
    let text = "key,value\n\na,\"1\n2\"\nb\nc,3\nd,4,5";
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        for bytes in 1..=text.len() {
            let notation = Notation { header: Header::Present, ..notation(Format::Csv, LineEnds::LfOrCrlf) };
            let found = load(text.as_bytes(), bytes, notation);
            let lines: Vec<u64> = found
                .iter()
                .map(|item| match item {
                    Item::Record { line, .. } | Item::Bad { line, .. } => *line,
                })
                .collect();
            assert_eq!(lines, [3, 5, 6, 7], "{text:?} in pieces of {bytes}");
            assert_eq!(bad(found).len(), 2);
        }
    }
}

#[test]
fn utf_16_is_refused_with_what_to_do() {
    for (text, mark) in
        [(&b"\xFF\xFEa\0\t\0"[..], "FF FE"), (b"\xFE\xFF\0a\0\t", "FE FF"), (b"\xFF\xFE", "FF FE")]
    {
        let error = Text::begin(BufReader::new(Pieces(text, 1)), "r.tsv").err().unwrap().to_string();
        assert!(
            error.starts_with(&format!("r.tsv is UTF-16: it begins with the byte-order mark {mark};")),
            "{error}"
        );
        assert!(error.contains("save it as UTF-8"), "{error}");
    }
    assert!(Text::begin(&b"\xFF"[..], "r.tsv").is_ok());
}

#[test]
fn lone_surrogates_are_refused_by_name() {
    for (value, escape, column) in [
        (r"\ud800", r"\ud800", 21),
        (r"ab\uDFFFc", r"\uDFFF", 23),
        (r"\ud83d\ude00\ud83d", r"\ud83d", 33),
        (r"\ud83d\ud83d\ude00", r"\ud83d", 21),
        (r"\\\ud83dude00", r"\ud83d", 23),
        (r"\ud83d\n", r"\ud83d", 21),
    ] {
        let text = format!("{{\"key\":\"\",\"value\":\"\"}}\r\n{{\"key\":\"a\",\"value\":\"{value}\"}}\r\n");
        let found = bad(items(&text, Format::Jsonl, Header::Absent, TEXT));
        let reason = format!("{escape} is a lone surrogate, which stands for no character (column {column})");
        assert_eq!(found.len(), 1, "{value}: {found:?}");
        assert!(found[0].0 == 2 && found[0].1.starts_with(&reason), "{value}: {found:?}");
    }
    let pair = items(r#"{"key":"\ud83d\uDE00","value":"\\ud800"}"#, Format::Jsonl, Header::Absent, TEXT);
    assert_eq!(pair, [record(1, "\u{1F600}", r"\ud800")]);
}

#[test]
fn json_in_another_encoding_is_refused_by_name() {
    let found =
        bad(all(&b"{\"key\":\"caf\xE9\",\"value\":\"\"}\n"[..], notation(Format::Jsonl, LineEnds::LfOrCrlf)));
    assert!(found[0].1.starts_with("not UTF-8 (column 12)"), "{found:?}");
}
