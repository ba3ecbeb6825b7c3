//! Keys and values as people write and read them: raw text, hexadecimal, or JSON.

use std::ffi::OsStr;
use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Map, Value};

/// How keys and values are written on the command line and in text output.
#[derive(Args, Clone, Copy, Debug)]
pub struct ByteFormat {
    /// Read and write keys and values as hexadecimal digits (0x in front is accepted); the safe form for binary data
    #[arg(long)]
    pub hex: bool,
}

impl ByteFormat {
    /// The bytes that an argument stands for.
    pub fn parse(self, argument: &OsStr) -> Result<Vec<u8>> {
        self.parse_bytes(argument.as_encoded_bytes())
    }

    /// The bytes that `text` stands for.
    pub fn parse_bytes(self, text: &[u8]) -> Result<Vec<u8>> {
        if self.hex { from_hex(text) } else { Ok(text.to_vec()) }
    }

    /// Writes `bytes`.
    pub fn write(self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        if self.hex { out.write_all(to_hex(bytes).as_bytes()) } else { out.write_all(bytes) }
    }

    /// A JSON object of the key and, if given, the value: `key` and `value` as strings where they are UTF-8 and
    /// hexadecimal is not asked for, otherwise `key_hex` and `value_hex`.
    pub fn json_record(self, key: &[u8], value: Option<&[u8]>) -> Value {
        let mut object = Map::new();
        for (name, bytes) in [("key", Some(key)), ("value", value)] {
            let Some(bytes) = bytes else { continue };
            match std::str::from_utf8(bytes) {
                Ok(text) if !self.hex => object.insert(name.to_owned(), text.into()),
                _ => object.insert(format!("{name}_hex"), to_hex(bytes).into()),
            };
        }
        Value::Object(object)
    }
}

/// The bytes that hexadecimal digits stand for, with or without `0x` in front.
pub fn from_hex(text: &[u8]) -> Result<Vec<u8>> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    let wrong = || anyhow::anyhow!("not hexadecimal: {}", text.escape_ascii());
    if !digits.len().is_multiple_of(2) {
        bail!("odd number of hexadecimal digits: {}", text.escape_ascii());
    }
    let nibble = |digit: u8| char::from(digit).to_digit(16).ok_or_else(wrong);
    digits.chunks(2).map(|pair| Ok((nibble(pair[0])? << 4 | nibble(pair[1])?) as u8)).collect()
}

/// Lower-case hexadecimal digits of `bytes`.
pub fn to_hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_goes_both_ways() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(to_hex(&all).as_bytes()).unwrap(), all);
        assert_eq!(from_hex(b"0xAbcD").unwrap(), [0xAB, 0xCD]);
        assert!(from_hex(b"0x").unwrap().is_empty());
        assert!(from_hex(b"abc").is_err() && from_hex(b"zz").is_err());
    }

    #[test]
    fn json_falls_back_to_hex_for_what_is_no_text() {
        let text = ByteFormat { hex: false };
        assert_eq!(text.json_record(b"k", Some(b"v")).to_string(), r#"{"key":"k","value":"v"}"#);
        assert_eq!(text.json_record(b"k", Some(&[255])).to_string(), r#"{"key":"k","value_hex":"ff"}"#);
        assert_eq!(ByteFormat { hex: true }.json_record(b"k", None).to_string(), r#"{"key_hex":"6b"}"#);
    }
}
