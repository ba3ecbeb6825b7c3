//! Write batches, over any number of keyspaces.

use engine::WriteBatch;

use super::bytes::{terrace_range, terrace_slice};
use super::db::terrace_db;
use super::error::{call, terrace_error};
use super::keyspace::terrace_keyspace;
use super::options;
use super::ticket::terrace_ticket;
use crate::border::{caught_or, exclusive, hand_over, handle, release, shared, store};

/// A group of writes that take effect together, or not at all: see terrace_batch_create().
pub struct terrace_batch {
    batch: WriteBatch,
}

/// Makes an empty batch. Release it with terrace_batch_free(). An operation that breaks a limit fails the write of the batch.
#[unsafe(no_mangle)]
pub extern "C" fn terrace_batch_create() -> *mut terrace_batch {
    handle(terrace_batch { batch: WriteBatch::new() })
}

/// Releases a batch; nothing if it is NULL.
///
/// # Safety
/// It is NULL or from terrace_batch_create(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_batch_free(batch: *mut terrace_batch) {
    // SAFETY: the caller's contract.
    unsafe { release(batch) };
}

/// Empties a batch.
///
/// # Safety
/// The batch is valid, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_batch_clear(batch: *mut terrace_batch) {
    // SAFETY: the caller's contract.
    let batch = unsafe { &mut *batch };
    caught_or((), || batch.batch.clear());
}

/// How many operations it has.
///
/// # Safety
/// The batch is valid, and no other thread changes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_batch_len(batch: *const terrace_batch) -> usize {
    // SAFETY: the caller's contract.
    unsafe { &*batch }.batch.len()
}

/// How many bytes it takes.
///
/// # Safety
/// The batch is valid, and no other thread changes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_batch_bytes(batch: *const terrace_batch) -> usize {
    // SAFETY: the caller's contract.
    unsafe { &*batch }.batch.bytes()
}

/// Appends: `key` gets the value `value` in `keyspace`.
///
/// # Safety
/// Batch and keyspace are valid, and no other thread uses the batch; key and value have as many bytes as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_batch_put(
    batch: *mut terrace_batch,
    keyspace: *const terrace_keyspace,
    key: terrace_slice,
    value: terrace_slice,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (batch, keyspace) = unsafe { (exclusive(batch, "batch")?, shared(keyspace, "keyspace")?) };
        // SAFETY: the caller's contract.
        let (key, value) = unsafe { (key.get(), value.get()) };
        batch.batch.put_in(&keyspace.keyspace, key, value);
        Ok(())
    })
}

/// Appends: `key` is removed from `keyspace`.
///
/// # Safety
/// Batch and keyspace are valid, and no other thread uses the batch; the key has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_batch_delete(
    batch: *mut terrace_batch,
    keyspace: *const terrace_keyspace,
    key: terrace_slice,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (batch, keyspace) = unsafe { (exclusive(batch, "batch")?, shared(keyspace, "keyspace")?) };
        // SAFETY: the caller's contract.
        batch.batch.delete_in(&keyspace.keyspace, unsafe { key.get() });
        Ok(())
    })
}

/// Appends: all keys of `range` are removed from `keyspace`, those included that the batch has put before.
///
/// # Safety
/// Batch and keyspace are valid, and no other thread uses the batch; the range's keys have as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_batch_delete_range(
    batch: *mut terrace_batch,
    keyspace: *const terrace_keyspace,
    range: terrace_range,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (batch, keyspace) = unsafe { (exclusive(batch, "batch")?, shared(keyspace, "keyspace")?) };
        // SAFETY: the caller's contract.
        batch.batch.delete_range_in(&keyspace.keyspace, unsafe { range.bounds() });
        Ok(())
    })
}

/// Applies all of the batch, or nothing of it, and empties it, also where that fails. `durability` is a terrace_durability.
///
/// # Safety
/// Handle and batch are valid, and no other thread uses the batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_write(
    db: *const terrace_db,
    batch: *mut terrace_batch,
    durability: u32,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (db, batch) = unsafe { (shared(db, "db")?, exclusive(batch, "batch")?) };
        let durability = options::durability(durability)?;
        let batch = std::mem::take(&mut batch.batch);
        match durability {
            Some(durability) => db.db.write_with(batch, durability)?,
            None => db.db.write(batch)?,
        }
        Ok(())
    })
}

/// Applies the batch as terrace_write() does, buffered, and returns at once. The ticket says when it has become durable.
/// Release it with terrace_ticket_free().
///
/// # Safety
/// Handle and batch are valid, and no other thread uses the batch; `ticket` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_write_ticket(
    db: *const terrace_db,
    batch: *mut terrace_batch,
    ticket: *mut *mut terrace_ticket,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (db, batch) = unsafe { (shared(db, "db")?, exclusive(batch, "batch")?) };
        // SAFETY: the caller's contract.
        unsafe { store(ticket, std::ptr::null_mut(), "ticket") }?;
        let given = db.db.write_ticket(std::mem::take(&mut batch.batch))?;
        // SAFETY: the caller's contract.
        unsafe { hand_over(ticket, terrace_ticket { ticket: given }, "ticket") }
    })
}
