//! Bytes that cross the border: keys and ranges that C lends, values that the store lends.

use std::ffi::{c_char, c_void};
use std::ops::Bound;

use engine::Slice;

use crate::border::{bytes, caught_or, free};
use crate::failure::Failure;

/// Bytes that somebody else has. Where `data` is NULL there are none: no key, no entry, no bound. The empty key has a `data`
/// that is not NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct terrace_slice {
    /// The first byte.
    pub data: *const c_char,
    /// How many there are.
    pub len: usize,
}

impl terrace_slice {
    pub(super) const NONE: Self = Self { data: std::ptr::null(), len: 0 };

    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), len: bytes.len() }
    }

    /// The bytes.
    ///
    /// # Safety
    /// There are as many, and they do not change for `'a`.
    pub(super) unsafe fn get<'a>(self) -> &'a [u8] {
        // SAFETY: as this function's.
        unsafe { bytes(self.data, self.len) }
    }
}

/// A range of keys, in bytewise order. All zeros stand for all keys.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct terrace_range {
    /// Where it begins; with a `data` that is NULL, at the first key.
    pub from: terrace_slice,
    /// Where it ends; with a `data` that is NULL, behind the last key.
    pub to: terrace_slice,
    /// Whether `from` itself is left out.
    pub from_excluded: bool,
    /// Whether `to` itself is in the range.
    pub to_included: bool,
}

impl terrace_range {
    /// The bounds.
    ///
    /// # Safety
    /// As for [`terrace_slice::get`].
    pub(super) unsafe fn bounds<'a>(self) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
        // SAFETY: as this function's.
        let (from, to) = unsafe { (self.from.get(), self.to.get()) };
        let from = match (self.from.data.is_null(), self.from_excluded) {
            (true, _) => Bound::Unbounded,
            (false, true) => Bound::Excluded(from),
            (false, false) => Bound::Included(from),
        };
        let to = match (self.to.data.is_null(), self.to_included) {
            (true, _) => Bound::Unbounded,
            (false, true) => Bound::Included(to),
            (false, false) => Bound::Excluded(to),
        };
        (from, to)
    }
}

/// A value, where it lies: nothing is copied. It keeps the block or memtable that has it in memory until
/// terrace_value_free(). It may be moved, but not be copied and released twice.
#[repr(C)]
pub struct terrace_value {
    /// The first byte; NULL if there is no value.
    pub data: *const c_char,
    /// How many there are.
    pub len: usize,
    /// The library's own.
    pub owner: [usize; 6],
}

// INVARIANT: where `data` is not null, `owner` holds a slice, whose bytes are elsewhere and stay when it moves.
const _: () =
    assert!(size_of::<Slice>() <= size_of::<[usize; 6]>() && align_of::<Slice>() <= align_of::<usize>());

impl terrace_value {
    pub(super) const NONE: Self = Self { data: std::ptr::null(), len: 0, owner: [0; 6] };

    /// Has `place` hold no value; a failure if it is null.
    ///
    /// # Safety
    /// It is null or may be written; what is there is not released.
    pub(super) unsafe fn clear(place: *mut Self) -> Result<(), Failure> {
        if place.is_null() {
            return Err(Failure::argument("value is NULL"));
        }
        // SAFETY: as this function's. The rest means nothing without it.
        unsafe { (&raw mut (*place).data).write(std::ptr::null()) };
        Ok(())
    }

    /// The value in the form for C; none, if there is none.
    pub(super) fn of(slice: Option<Slice>) -> Self {
        let Some(slice) = slice else { return Self::NONE };
        let mut value = Self { data: slice.as_ptr().cast(), len: slice.len(), ..Self::NONE };
        // SAFETY: a slice fits there.
        unsafe { value.owner.as_mut_ptr().cast::<Slice>().write(slice) };
        value
    }
}

/// Releases a value, which has none afterwards; nothing if it has none.
///
/// # Safety
/// The value is from a function of this header, or has a `data` of NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_value_free(value: *mut terrace_value) {
    // SAFETY: the caller's contract.
    let Some(value) = (unsafe { value.as_mut() }) else { return };
    if !value.data.is_null() {
        // SAFETY: `owner` holds a slice, and from here on none.
        let slice = unsafe { value.owner.as_ptr().cast::<Slice>().read() };
        value.data = std::ptr::null();
        caught_or((), || drop(slice));
    }
}

/// Releases a text that a function of this header has returned for that.
///
/// # Safety
/// It is NULL or such a text, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_free(text: *mut c_void) {
    // SAFETY: the caller's contract.
    unsafe { free(text) };
}

/// The version of the library, such as "0.1.0"; never released.
#[unsafe(no_mangle)]
pub extern "C" fn terrace_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// As many slices as C says there are.
///
/// # Safety
/// There are as many, and neither they nor their bytes change for `'a`.
pub(super) unsafe fn keys<'a>(keys: *const terrace_slice, count: usize) -> Result<Vec<&'a [u8]>, Failure> {
    if keys.is_null() && count > 0 {
        return Err(Failure::argument("keys is NULL"));
    }
    // SAFETY: as this function's.
    Ok((0..count).map(|at| unsafe { (*keys.add(at)).get() }).collect())
}
