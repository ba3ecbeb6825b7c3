//! JSON Lines: one JSON object per line, with the names that `terrace scan --json` and `terrace dump` print.

use std::io::{self, BufRead};

use anyhow::{Result, anyhow, bail};
use serde::Deserialize;

use super::lines::Lines;
use super::{Item, RecordReader, surrogate};
use crate::bytes::{ByteFormat, from_hex};

pub struct JsonReader<R> {
    lines: Lines<R>,
    bytes: ByteFormat,
}

impl<R: BufRead> JsonReader<R> {
    pub fn new(lines: Lines<R>, bytes: ByteFormat) -> Self {
        Self { lines, bytes }
    }
}

impl<R: BufRead> RecordReader for JsonReader<R> {
    fn next_item(&mut self) -> io::Result<Option<Item>> {
        let Some((number, line)) = self.lines.next_line()? else { return Ok(None) };
        Ok(Some(match parse(number, line, self.bytes) {
            Ok(record) => record,
            Err(error) => Item::Bad { line: number, reason: error.to_string() },
        }))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    keyspace: Option<String>,
    key: Option<String>,
    key_hex: Option<String>,
    value: Option<String>,
    value_hex: Option<String>,
}

fn parse(number: u64, line: &[u8], bytes: ByteFormat) -> Result<Item> {
    let text = str::from_utf8(line).map_err(|error| {
        anyhow!(
            "not UTF-8 (column {}); other bytes can be given as key_hex and value_hex",
            error.valid_up_to() + 1
        )
    })?;
    let object: Object = serde_json::from_str(text).map_err(|error| refusal(line, &error))?;
    let of = |name: &str, text: Option<String>, hex: Option<String>| match (text, hex) {
        (Some(text), None) => bytes.parse_bytes(text.as_bytes()),
        (None, Some(hex)) => from_hex(hex.as_bytes()),
        (None, None) => bail!("neither {name} nor {name}_hex"),
        (Some(_), Some(_)) => bail!("both {name} and {name}_hex"),
    };
    Ok(Item::Record {
        line: number,
        keyspace: object.keyspace,
        key: of("key", object.key, object.key_hex)?,
        value: of("value", object.value, object.value_hex)?,
    })
}

/// Why `line` is no record. The position within the line is the column alone.
fn refusal(line: &[u8], error: &serde_json::Error) -> anyhow::Error {
    if let Some((escape, column)) = surrogate::find_lone(line) {
        return anyhow!(
            "{escape} is a lone surrogate, which stands for no character (column {column}); bytes can be given as key_hex and \
             value_hex"
        );
    }
    match error.classify() {
        serde_json::error::Category::Eof => anyhow!("the object is incomplete"),
        _ => anyhow!("{} (column {})", without_position(error), error.column()),
    }
}

fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}
