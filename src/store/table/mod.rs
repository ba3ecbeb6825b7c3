//! Tables: written once by a job, then read at random ([`TableReader`]) or in key order ([`TableCursor`]).

mod builder;
mod copy;
mod cursor;
mod fence_pointers;
mod list_cursor;
mod read_ahead;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use builder::{TableBuilder, TableSettings, WrittenBlock};
pub(crate) use copy::copy_table;
pub(crate) use cursor::{Fetch, TableCursor, Towards};
pub(crate) use list_cursor::TablesCursor;
pub(crate) use read_ahead::ReadAhead;
pub(crate) use reader::{TablePlace, TableReader};
