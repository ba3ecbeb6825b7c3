//! Optimistic transactions, and their iterators.

use engine::{Isolation, Slice, Transaction, TransactionIter, TransactionOptions};

use super::bytes::{terrace_range, terrace_slice, terrace_value};
use super::cursor::terrace_entry;
use super::db::terrace_db;
use super::error::{call, terrace_error};
use super::keyspace::terrace_keyspace;
use super::options;
use super::ticket::terrace_ticket;
use crate::border::{exclusive, hand_over, release, shared, store, take};
use crate::failure::Failure;

/// Which writes by others make the commit of a transaction fail.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum terrace_isolation {
    /// Those of keys that it writes, too: the first to commit wins.
    Snapshot = 0,
    /// Those, and those of anything that it has read: keys, and ranges that it has asked for.
    Serializable = 1,
}

/// Reads and writes that take effect together, or conflict: see terrace_transaction_begin().
pub struct terrace_transaction {
    transaction: Transaction,
}

/// The entries of a range, as a transaction sees them: see terrace_transaction_iter().
pub struct terrace_transaction_iterator {
    iter: TransactionIter,
    /// The entry that is lent.
    entry: Option<(Slice, Slice)>,
}

impl terrace_transaction_iterator {
    fn show(&mut self, next: Option<engine::Result<(Slice, Slice)>>) -> Result<terrace_entry, Failure> {
        self.entry = next.transpose()?;
        let entry = self.entry.as_ref().map(|(key, value)| (&key[..], &value[..]));
        Ok(entry.map_or(terrace_entry::NONE, terrace_entry::of))
    }
}

/// Begins a transaction: it sees the store as it is now, and its own writes. `isolation` is a terrace_isolation. It ends with
/// terrace_transaction_commit(), terrace_transaction_commit_ticket() or terrace_transaction_free().
///
/// # Safety
/// The handle is valid; `transaction` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_begin(
    db: *const terrace_db,
    isolation: u32,
    transaction: *mut *mut terrace_transaction,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let db = unsafe { shared(db, "db") }?;
        let isolation = match isolation {
            0 => Isolation::Snapshot,
            1 => Isolation::Serializable,
            other => {
                return Err(Failure::argument(format!(
                    "isolation is {other}, which is no terrace_isolation"
                )));
            }
        };
        let begun =
            terrace_transaction { transaction: db.db.transaction_with(TransactionOptions { isolation }) };
        // SAFETY: the caller's contract.
        unsafe { hand_over(transaction, begun, "transaction") }
    })
}

/// Ends a transaction without writing anything; nothing if it is NULL.
///
/// # Safety
/// It is NULL or from terrace_transaction_begin(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_free(transaction: *mut terrace_transaction) {
    // SAFETY: the caller's contract.
    unsafe { release(transaction) };
}

/// The value of `key`, as terrace_get() has it.
///
/// # Safety
/// Transaction and keyspace are valid, and no other thread uses the transaction; the key has as many bytes as it says; `value`
/// may be written, and what is there is not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_get(
    transaction: *mut terrace_transaction,
    keyspace: *const terrace_keyspace,
    key: terrace_slice,
    value: *mut terrace_value,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (transaction, keyspace, key) = unsafe {
            (exclusive(transaction, "transaction")?, &shared(keyspace, "keyspace")?.keyspace, key.get())
        };
        // SAFETY: the caller's contract.
        unsafe { terrace_value::clear(value) }?;
        let found = terrace_value::of(transaction.transaction.get_in(keyspace, key)?);
        // SAFETY: the caller's contract.
        unsafe { store(value, found, "value") }
    })
}

/// Gives `key` the value `value`, when the transaction commits.
///
/// # Safety
/// Transaction and keyspace are valid, and no other thread uses the transaction; key and value have as many bytes as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_put(
    transaction: *mut terrace_transaction,
    keyspace: *const terrace_keyspace,
    key: terrace_slice,
    value: terrace_slice,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (transaction, keyspace) =
            unsafe { (exclusive(transaction, "transaction")?, &shared(keyspace, "keyspace")?.keyspace) };
        // SAFETY: the caller's contract.
        let (key, value) = unsafe { (key.get(), value.get()) };
        transaction.transaction.put_in(keyspace, key, value);
        Ok(())
    })
}

/// Removes `key`, when the transaction commits.
///
/// # Safety
/// Transaction and keyspace are valid, and no other thread uses the transaction; the key has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_delete(
    transaction: *mut terrace_transaction,
    keyspace: *const terrace_keyspace,
    key: terrace_slice,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (transaction, keyspace) =
            unsafe { (exclusive(transaction, "transaction")?, &shared(keyspace, "keyspace")?.keyspace) };
        // SAFETY: the caller's contract.
        transaction.transaction.delete_in(keyspace, unsafe { key.get() });
        Ok(())
    })
}

/// Removes all keys of `range`, when the transaction commits. It counts as a write of the whole range.
///
/// # Safety
/// Transaction and keyspace are valid, and no other thread uses the transaction; the range's keys have as many bytes as it
/// says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_delete_range(
    transaction: *mut terrace_transaction,
    keyspace: *const terrace_keyspace,
    range: terrace_range,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (transaction, keyspace) =
            unsafe { (exclusive(transaction, "transaction")?, &shared(keyspace, "keyspace")?.keyspace) };
        // SAFETY: the caller's contract.
        transaction.transaction.delete_range_in(keyspace, unsafe { range.bounds() });
        Ok(())
    })
}

/// The entries of `range`, with the transaction's own writes so far. For a serialisable transaction this counts as a read of
/// the whole range. Release it with terrace_transaction_iterator_free(); it may outlive the transaction.
///
/// # Safety
/// Transaction and keyspace are valid, and no other thread uses the transaction; the range's keys have as many bytes as it
/// says; `iterator` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_iter(
    transaction: *mut terrace_transaction,
    keyspace: *const terrace_keyspace,
    range: terrace_range,
    iterator: *mut *mut terrace_transaction_iterator,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (transaction, keyspace, bounds) = unsafe {
            let keyspace = &shared(keyspace, "keyspace")?.keyspace;
            (exclusive(transaction, "transaction")?, keyspace, range.bounds())
        };
        let iter = transaction.transaction.range_in(keyspace, bounds)?;
        let made = terrace_transaction_iterator { iter, entry: None };
        // SAFETY: the caller's contract.
        unsafe { hand_over(iterator, made, "iterator") }
    })
}

/// The next entry from the front, which is the iterator's and valid until the next call; with a key of NULL at the end.
///
/// # Safety
/// The iterator is valid, and no other thread uses it; `entry` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_iterator_next(
    iterator: *mut terrace_transaction_iterator,
    entry: *mut terrace_entry,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let iterator = unsafe { exclusive(iterator, "iterator") }?;
        let next = iterator.iter.next();
        // SAFETY: the caller's contract.
        unsafe { store(entry, iterator.show(next)?, "entry") }
    })
}

/// The next entry from the back, as terrace_transaction_iterator_next() has it. The two ends meet.
///
/// # Safety
/// The iterator is valid, and no other thread uses it; `entry` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_iterator_next_back(
    iterator: *mut terrace_transaction_iterator,
    entry: *mut terrace_entry,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let iterator = unsafe { exclusive(iterator, "iterator") }?;
        let next = iterator.iter.next_back();
        // SAFETY: the caller's contract.
        unsafe { store(entry, iterator.show(next)?, "entry") }
    })
}

/// Releases an iterator; nothing if it is NULL.
///
/// # Safety
/// It is NULL or from terrace_transaction_iter(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_iterator_free(iterator: *mut terrace_transaction_iterator) {
    // SAFETY: the caller's contract.
    unsafe { release(iterator) };
}

/// Applies all writes of the transaction, or none of them, and releases it in any case. `durability` is a terrace_durability.
/// With an error of TERRACE_ERROR_KIND_CONFLICT nothing was written: run the transaction again.
///
/// # Safety
/// The transaction is from terrace_transaction_begin(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_commit(
    transaction: *mut terrace_transaction,
    durability: u32,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let transaction = unsafe { take(transaction, "transaction") }?.transaction;
        match options::durability(durability)? {
            Some(durability) => transaction.commit_with(durability)?,
            None => transaction.commit()?,
        }
        Ok(())
    })
}

/// As terrace_transaction_commit(), buffered; the ticket says when the writes have become durable. Release it with
/// terrace_ticket_free().
///
/// # Safety
/// The transaction is from terrace_transaction_begin(), and is not used again; `ticket` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_transaction_commit_ticket(
    transaction: *mut terrace_transaction,
    ticket: *mut *mut terrace_ticket,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let transaction = unsafe { take(transaction, "transaction") }?.transaction;
        // SAFETY: the caller's contract.
        unsafe { store(ticket, std::ptr::null_mut(), "ticket") }?;
        let given = transaction.commit_ticket()?;
        // SAFETY: the caller's contract.
        unsafe { hand_over(ticket, terrace_ticket { ticket: given }, "ticket") }
    })
}
