//! The separator: the shortest key between two blocks.

use crate::types::{Kind, Seq, Stamp};

/// Behind every other entry of its key.
fn lowest_stamp() -> Stamp {
    Stamp::new(Seq::ZERO, Kind::Delete)
}

/// Replaces the contents of `out` with the separator of a block whose last entry is (`last_key`, `last_stamp`), the
/// next block beginning with `next_key`, and returns its stamp.
///
/// If the user keys differ, it is the shortest key that is at or above `last_key` and below `next_key`, with the lowest
/// stamp; if the next block goes on with the same key, it is the last entry's own key and stamp. Without a next block
/// it is `last_key`: a shorter one would save a few bytes, and rob the index of the prefix that its keys share.
pub fn separator(last_key: &[u8], last_stamp: Stamp, next_key: Option<&[u8]>, out: &mut Vec<u8>) -> Stamp {
    out.clear();
    let Some(next_key) = next_key else {
        out.extend_from_slice(last_key);
        return lowest_stamp();
    };
    if next_key == last_key {
        out.extend_from_slice(last_key);
        return last_stamp;
    }
    debug_assert!(last_key < next_key, "blocks come in order");
    let shared = last_key.iter().zip(next_key).take_while(|(a, b)| a == b).count();
    match last_key.get(shared) {
        // The next key continues the last one, or nothing shorter than the last key is above it.
        None => out.extend_from_slice(last_key),
        Some(_) if last_key.len() == shared + 1 => out.extend_from_slice(last_key),
        Some(&byte) => {
            let above = if planted!("separator-below-the-last-key") { byte } else { byte.saturating_add(1) };
            if above < next_key[shared] || next_key.len() > shared + 1 {
                out.extend_from_slice(&last_key[..shared]);
                out.push(above);
            } else {
                push_successor(last_key, shared + 1, out);
            }
        }
    }
    lowest_stamp()
}

/// Appends the shortest string at or above `key` that has its first `kept` bytes; `key` itself if they are all 0xff.
fn push_successor(key: &[u8], kept: usize, out: &mut Vec<u8>) {
    match key.iter().skip(kept).position(|&byte| byte != 0xff) {
        Some(index) if kept + index + 1 < key.len() => {
            out.extend_from_slice(&key[..kept + index]);
            out.push(key[kept + index] + 1);
        }
        _ => out.extend_from_slice(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every string of at most `length` letters.
    fn strings(letters: &[u8], length: usize) -> Vec<Vec<u8>> {
        let mut all = vec![vec![]];
        let mut from = 0;
        for _ in 0..length {
            let until = all.len();
            for index in from..until {
                all.extend(
                    letters.iter().map(|&letter| [&all[index][..], &[letter]].concat()).collect::<Vec<_>>(),
                );
            }
            from = until;
        }
        all
    }

    #[test]
    fn separator_is_the_shortest_between() {
        let letters = [0, 1, 2, 254, 255];
        let keys = strings(&letters, 3);
        let mut out = Vec::new();
        for last in &keys {
            for next in keys.iter().filter(|next| *next > last) {
                let stamp = separator(last, Stamp::MAX, Some(next), &mut out);
                assert_eq!(stamp, lowest_stamp());
                assert!(last <= &out && &out < next, "{out:?} is not within {last:?} .. {next:?}");
                let shortest = keys.iter().filter(|key| last <= key && key < &next).map(Vec::len).min();
                assert!(
                    shortest.is_some_and(|length| out.len() <= length),
                    "{out:?} for {last:?} .. {next:?}"
                );
            }
        }
    }

    #[test]
    fn same_key_keeps_the_stamp() {
        let mut out = b"old".to_vec();
        let stamp = Stamp::new(Seq(5), Kind::Put);
        assert_eq!(separator(b"key", stamp, Some(b"key"), &mut out), stamp);
        assert_eq!(out, b"key");
    }

    #[test]
    fn last_block_keeps_its_last_key() {
        let mut out = b"old".to_vec();
        for last in [&b"abc"[..], b"\xff", b""] {
            assert_eq!(separator(last, Stamp::MAX, None, &mut out), lowest_stamp());
            assert_eq!(out, last);
        }
    }
}
