//! Value tables: where values lie that are kept apart from their keys. A job writes them; readers follow pointers to them.
//!
//! The format is in [`value_table`](crate::format::value_table).

mod builder;
mod reader;

pub(crate) use builder::ValueTableBuilder;
pub(crate) use reader::pointer_of;
