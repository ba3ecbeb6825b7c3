//! Durability beside the writes: syncs, and tickets that tell when a buffered write has become durable.

use std::ffi::c_void;

use engine::Ticket;

use super::db::terrace_db;
use super::error::{call, terrace_error};
use crate::border::{caught_or, hand_over, release, shared};
use crate::failure::Failure;

/// Says when a buffered write, and all before it, have become durable.
pub struct terrace_ticket {
    pub(super) ticket: Ticket,
}

/// What C wants to have called, on another thread.
struct Callback {
    function: unsafe extern "C" fn(state: *mut c_void, error: *const terrace_error),
    state: *mut c_void,
}

// SAFETY: whoever passes the two promises that the function may be called with the state on another thread.
unsafe impl Send for Callback {}

impl Callback {
    fn call(self, outcome: engine::Result<()>) {
        let error = outcome.err().map(|error| terrace_error::from(Failure::from(error)));
        let error = error.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: as promised; the error lives until the function returns.
        unsafe { (self.function)(self.state, error) };
    }
}

/// Makes all acknowledged writes durable: they survive a power cut.
///
/// # Safety
/// The handle is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_sync(db: *const terrace_db) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    call(|| Ok(unsafe { shared(db, "db") }?.db.sync()?))
}

/// As terrace_sync(), without waiting: the ticket says when everything that is acknowledged by now has become durable.
/// Release it with terrace_ticket_free().
///
/// # Safety
/// The handle is valid; `ticket` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_sync_ticket(
    db: *const terrace_db,
    ticket: *mut *mut terrace_ticket,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let given = unsafe { shared(db, "db") }?.db.sync_ticket()?;
        // SAFETY: the caller's contract.
        unsafe { hand_over(ticket, terrace_ticket { ticket: given }, "ticket") }
    })
}

/// Whether the write is known to be durable. Does not wait.
///
/// # Safety
/// The ticket is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_ticket_is_durable(ticket: *const terrace_ticket) -> bool {
    // SAFETY: the caller's contract.
    let ticket = unsafe { &*ticket };
    caught_or(false, || ticket.ticket.is_durable())
}

/// Waits until the write is durable, or fails if it is unknown whether it survives a power cut.
///
/// # Safety
/// The ticket is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_ticket_wait(ticket: *const terrace_ticket) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    call(|| Ok(unsafe { shared(ticket, "ticket") }?.ticket.wait()?))
}

/// Has `callback` called once, on a thread of the store: with NULL when the write is durable, with an error, which is valid
/// during the call, when it is known that it may not be. It may use the store. The ticket may be released meanwhile.
///
/// # Safety
/// The ticket is valid; the function may be called with `state` on any thread, and returns to its caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_ticket_on_durable(
    ticket: *const terrace_ticket,
    callback: Option<unsafe extern "C" fn(state: *mut c_void, error: *const terrace_error)>,
    state: *mut c_void,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let ticket = unsafe { shared(ticket, "ticket") }?;
        let function = callback.ok_or_else(|| Failure::argument("callback is NULL"))?;
        let callback = Callback { function, state };
        Ok(ticket.ticket.on_durable(move |outcome| callback.call(outcome))?)
    })
}

/// Releases a ticket; nothing if it is NULL. The sync happens all the same.
///
/// # Safety
/// It is NULL or from a function of this header, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_ticket_free(ticket: *mut terrace_ticket) {
    // SAFETY: the caller's contract.
    unsafe { release(ticket) };
}
