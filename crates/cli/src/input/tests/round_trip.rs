//! Tests that records with any bytes are read back as they were written.

use proptest::prelude::*;

use super::*;
use crate::input::start::{MARK, Text};

/// Bytes that mean something in one of the notations, often, and any others.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "\r", "\n", "\t", "\\", "\\x", "\\x41", "0x", " ==> ", "\"", ",", "{", "\u{FEFF}", "a", "\u{e9}",
        "\0",
    ];
    let marks = [&b"\xFF\xFE"[..], b"\xFE\xFF", b"\xEF", b"\xBB\xBF"].map(<[u8]>::to_vec);
    let piece = prop_oneof![
        4 => prop::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::sample::select(marks.to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn records() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    prop::collection::vec((bytes(), bytes()), 0..5)
}

/// Reads what was written as `terrace load` does. The format is given, or guessed.
fn read_back(
    written: &[u8],
    told: Option<Format>,
    line_ends: LineEnds,
    bytes: ByteFormat,
) -> Option<Vec<Item>> {
    let text = Text::begin(written, "written").unwrap();
    let guessed = if written.is_empty() { Some(Format::Tsv) } else { Format::of_start(text.first_line()) };
    let format = told.or(guessed)?;
    Some(all(text.into_reader(), Notation { format, header: Header::Absent, line_ends, bytes }))
}

fn same(found: &[Item], records: &[(Vec<u8>, Vec<u8>)]) {
    let found: Vec<_> = found
        .iter()
        .map(|item| match item {
            Item::Record { key, value, .. } => (key.clone(), value.clone()),
            Item::Bad { line, reason } => panic!("line {line}: {reason}"),
        })
        .collect();
    assert_eq!(found, records);
}

fn written(records: &[(Vec<u8>, Vec<u8>)], mut write: impl FnMut(&[u8], &[u8], &mut Vec<u8>)) -> Vec<u8> {
    let mut text = Vec::new();
    records.iter().for_each(|(key, value)| write(key, value, &mut text));
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tab_separated_lines_come_back(records in records(), hex: bool) {
        let format = ByteFormat { hex };
        let text = written(&records, |key, value, out| tab::write((key, Some(value)), format, out).unwrap());
        for line_ends in [LineEnds::LfOrCrlf, LineEnds::Lf] {
            same(&read_back(&text, Some(Format::Tsv), line_ends, format).unwrap(), &records);
            // A guess is right, or refused.
            if let Some(found) = read_back(&text, None, line_ends, format) {
                same(&found, &records);
            }
        }
        // So it does when it has gone by way of a program that writes lines as Windows does.
        let windows: Vec<u8> = text.split_inclusive(|&byte| byte == b'\n').fold(MARK.to_vec(), |mut text, line| {
            text.extend_from_slice(&line[..line.len() - 1]);
            text.extend_from_slice(b"\r\n");
            text
        });
        same(&read_back(&windows, Some(Format::Tsv), LineEnds::LfOrCrlf, format).unwrap(), &records);
    }

    #[test]
    fn json_lines_come_back(records in records(), hex: bool) {
        let format = ByteFormat { hex };
        let text = written(&records, |key, value, out| {
            out.extend_from_slice(format.json_record(key, Some(value)).to_string().as_bytes());
            out.push(b'\n');
        });
        for line_ends in [LineEnds::LfOrCrlf, LineEnds::Lf] {
            for told in [Some(Format::Jsonl), None] {
                same(&read_back(&text, told, line_ends, TEXT).unwrap(), &records);
            }
        }
    }

    #[test]
    fn quoted_columns_come_back(records in records(), crlf: bool) {
        let ends = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut writer =
            csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).terminator(ends).from_writer(Vec::new());
        records.iter().for_each(|(key, value)| writer.write_record([key, value]).unwrap());
        let text = writer.into_inner().unwrap();
        same(&read_back(&text, Some(Format::Csv), LineEnds::LfOrCrlf, TEXT).unwrap(), &records);
    }
}
