//! One line of a dump: its subject, and its figures by name.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use terrace::format::Malformed;

use crate::bytes::{ByteFormat, to_hex};

/// One line.
pub struct Line {
    depth: usize,
    what: &'static str,
    fields: Vec<(&'static str, Field)>,
}

enum Field {
    Plain(Value),
    Bytes(Vec<u8>),
}

impl Line {
    /// A line about `what`, which is part of the subject of the last line with less `depth`.
    pub fn new(depth: usize, what: &'static str) -> Self {
        Self { depth, what, fields: Vec::new() }
    }

    /// Adds a number, a word or a truth.
    pub fn field(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((name, Field::Plain(value.into())));
        self
    }

    /// Adds a key, a value or another string of bytes.
    pub fn bytes(mut self, name: &'static str, bytes: &[u8]) -> Self {
        self.fields.push((name, Field::Bytes(bytes.to_vec())));
        self
    }
}

/// Prints lines, as text or as JSON objects, and keeps count of the damage.
pub struct Printer<W> {
    out: W,
    json: bool,
    format: ByteFormat,
    damages: u64,
}

impl<W: Write> Printer<W> {
    /// Prints to `out`; `json` asks for objects, `format` says how bytes are written.
    pub fn new(out: W, json: bool, format: ByteFormat) -> Self {
        Self { out, json, format, damages: 0 }
    }

    /// Prints a line.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        if self.json {
            return writeln!(self.out, "{}", self.object(line));
        }
        write!(self.out, "{:indent$}{}", "", line.what, indent = 2 * line.depth)?;
        for (name, field) in &line.fields {
            write!(self.out, " {name}=")?;
            match field {
                Field::Plain(Value::String(text)) => write!(self.out, "{}", quoted(text.as_bytes()))?,
                Field::Plain(value) => write!(self.out, "{value}")?,
                Field::Bytes(bytes) if self.format.hex => write!(self.out, "0x{}", to_hex(bytes))?,
                Field::Bytes(bytes) => write!(self.out, "{}", quoted(bytes))?,
            }
        }
        writeln!(self.out)
    }

    /// Prints that the bytes at `offset` of the file are not right.
    pub fn damage(&mut self, depth: usize, offset: u64, what: &str) -> io::Result<()> {
        self.damages += 1;
        self.line(&Line::new(depth, "damage").field("offset", offset).field("problem", what))
    }

    /// As [`Printer::damage`], of something that begins at `offset` of the file.
    pub fn malformed(&mut self, depth: usize, offset: u64, error: &Malformed) -> io::Result<()> {
        self.damage(depth, offset.saturating_add(error.offset), error.what)
    }

    /// Ends the output; whether there was damage.
    pub fn finish(mut self) -> io::Result<bool> {
        self.out.flush()?;
        Ok(self.damages > 0)
    }

    fn object(&self, line: &Line) -> Value {
        let mut object = Map::from_iter([("what".to_owned(), json!(line.what))]);
        for (name, field) in &line.fields {
            match field {
                Field::Plain(value) => object.insert((*name).to_owned(), value.clone()),
                Field::Bytes(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) if !self.format.hex => object.insert((*name).to_owned(), text.into()),
                    _ => object.insert(format!("{name}_hex"), to_hex(bytes).into()),
                },
            };
        }
        Value::Object(object)
    }
}

/// `bytes` between quotes, those that do not print escaped.
fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(json: bool, hex: bool) -> String {
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, json, ByteFormat { hex });
        let line =
            Line::new(1, "put").field("seq", 7).field("to", "a b").bytes("key", b"k").bytes("value", &[255]);
        printer.line(&line).unwrap();
        printer.damage(0, 9, "gone").unwrap();
        assert!(printer.finish().unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_text_or_objects() {
        let text = "  put seq=7 to=\"a b\" key=\"k\" value=\"\\xff\"\ndamage offset=9 problem=\"gone\"\n";
        assert_eq!(printed(false, false), text);
        assert!(printed(false, true).contains("key=0x6b value=0xff"));
        let objects = "{\"key\":\"k\",\"seq\":7,\"to\":\"a b\",\"value_hex\":\"ff\",\"what\":\"put\"}\n\
                       {\"offset\":9,\"problem\":\"gone\",\"what\":\"damage\"}\n";
        assert_eq!(printed(true, false), objects);
    }
}
