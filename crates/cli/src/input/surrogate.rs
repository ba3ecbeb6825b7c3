//! Halves of UTF-16 surrogate pairs in JSON.
//!
//! Programs that cut UTF-16 text at any place write one half without the other. It stands for no character, so there
//! are no bytes to store for it.

/// The first escape in `json` that is one half of a surrogate pair without the other, and its column, from 1.
pub fn find_lone(json: &[u8]) -> Option<(&str, usize)> {
    let mut at = 0;
    while at < json.len() {
        at += match unit(&json[at..]) {
            Some(0xD800..=0xDBFF) if matches!(unit(&json[at + ESCAPE_BYTES..]), Some(0xDC00..=0xDFFF)) => {
                2 * ESCAPE_BYTES
            }
            Some(0xD800..=0xDFFF) => {
                return Some((str::from_utf8(&json[at..at + ESCAPE_BYTES]).ok()?, at + 1));
            }
            Some(_) => ESCAPE_BYTES,
            // An escape of another kind, such as `\\`, is two bytes.
            None if json[at] == b'\\' => 2,
            None => 1,
        };
    }
    None
}

/// Bytes of an escape: `\u` and four hexadecimal digits.
const ESCAPE_BYTES: usize = 6;

/// The UTF-16 code unit that the escape at the beginning of `json` stands for.
fn unit(json: &[u8]) -> Option<u16> {
    let digits = json.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)? as u16))
}
