//! Write batches: LevelDB's can be read again and appended to each other, so they keep their operations as they came.

use std::ffi::{c_char, c_void};

use engine::WriteBatch;

use crate::border::{bytes, caught_or, handle, release};

/// A group of writes that take effect together: see leveldb_writebatch_create().
pub struct leveldb_writebatch_t {
    ops: Ops,
}

/// Operations, one behind the other: the length of the key, that of the value and one (0 for a delete), then both.
#[derive(Clone, Debug, Default)]
struct Ops(Vec<u8>);

/// Bytes of the two lengths before key and value.
const LENGTHS: usize = 16;

impl Ops {
    fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.0.extend_from_slice(&(key.len() as u64).to_le_bytes());
        self.0.extend_from_slice(&value.map_or(0, |value| value.len() as u64 + 1).to_le_bytes());
        self.0.extend_from_slice(key);
        self.0.extend_from_slice(value.unwrap_or_default());
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (lengths, behind) = rest.split_at_checked(LENGTHS)?;
            let length = |at: usize| {
                let bytes = lengths.get(at..at + 8)?.try_into().ok()?;
                usize::try_from(u64::from_le_bytes(bytes)).ok()
            };
            let (key, behind) = behind.split_at_checked(length(0)?)?;
            let (value, behind) = behind.split_at_checked(length(8)?.saturating_sub(1))?;
            rest = behind;
            Some((key, (length(8)? > 0).then_some(value)))
        })
    }
}

impl leveldb_writebatch_t {
    /// The same for Terrace.
    pub(super) fn batch(&self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for (key, value) in self.ops.iter() {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            };
        }
        batch
    }
}

/// Makes an empty batch. Release it with leveldb_writebatch_destroy().
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_create() -> *mut leveldb_writebatch_t {
    handle(leveldb_writebatch_t { ops: Ops::default() })
}

/// Releases a batch.
///
/// # Safety
/// It is from leveldb_writebatch_create(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_destroy(batch: *mut leveldb_writebatch_t) {
    // SAFETY: the caller's contract.
    unsafe { release(batch) };
}

/// Empties a batch.
///
/// # Safety
/// The batch is valid, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_clear(batch: *mut leveldb_writebatch_t) {
    // SAFETY: the caller's contract.
    caught_or((), || unsafe { &mut *batch }.ops.0.clear());
}

/// Appends: `key` gets the value `val`. A key or value that is too long fails the write of the batch.
///
/// # Safety
/// The batch is valid, and no other thread uses it; key and value have as many bytes as is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_put(
    batch: *mut leveldb_writebatch_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    // SAFETY: the caller's contract.
    let (batch, key, value) = unsafe { (&mut *batch, bytes(key, klen), bytes(val, vlen)) };
    caught_or((), || batch.ops.push(key, Some(value)));
}

/// Appends: `key` is removed.
///
/// # Safety
/// The batch is valid, and no other thread uses it; the key has as many bytes as is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_delete(
    batch: *mut leveldb_writebatch_t,
    key: *const c_char,
    klen: usize,
) {
    // SAFETY: the caller's contract.
    let (batch, key) = unsafe { (&mut *batch, bytes(key, klen)) };
    caught_or((), || batch.ops.push(key, None));
}

/// Calls `put` or `deleted` for each operation, in their order. What they are passed is theirs during the call.
///
/// # Safety
/// The batch is valid and does not change meanwhile; the functions may be called with `state`, and return to their caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_iterate(
    batch: *const leveldb_writebatch_t,
    state: *mut c_void,
    put: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            k: *const c_char,
            klen: usize,
            v: *const c_char,
            vlen: usize,
        ),
    >,
    deleted: Option<unsafe extern "C" fn(state: *mut c_void, k: *const c_char, klen: usize)>,
) {
    // SAFETY: the caller's contract.
    let batch = unsafe { &*batch };
    caught_or((), || {
        for (key, value) in batch.ops.iter() {
            let (k, klen) = (key.as_ptr().cast(), key.len());
            match (value, put, deleted) {
                // SAFETY: the caller's contract; key and value live as long as the call.
                (Some(value), Some(put), _) => unsafe {
                    put(state, k, klen, value.as_ptr().cast(), value.len());
                },
                // SAFETY: as above.
                (None, _, Some(deleted)) => unsafe { deleted(state, k, klen) },
                _ => {}
            }
        }
    });
}

/// Appends all operations of `source`, which stays as it is.
///
/// # Safety
/// The batches are valid; no other thread uses `destination`, and none changes `source`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_append(
    destination: *mut leveldb_writebatch_t,
    source: *const leveldb_writebatch_t,
) {
    caught_or((), || {
        // SAFETY: the caller's contract. They may be one and the same, so the copy comes first.
        let source = unsafe { &*source }.ops.0.clone();
        // SAFETY: as above.
        unsafe { &mut *destination }.ops.0.extend(source);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_back_as_they_were_pushed() {
        let all = [
            (&b"a"[..], Some(&b"1"[..])),
            (b"", Some(b"")),
            (b"gone", None),
            (&[0; 300], Some(&[255; 70_000])),
        ];
        let mut ops = Ops::default();
        all.iter().for_each(|(key, value)| ops.push(key, *value));
        assert!(ops.iter().eq(all));
        let batch = leveldb_writebatch_t { ops }.batch();
        assert_eq!(batch.len(), all.len());
    }
}
