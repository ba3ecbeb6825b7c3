//! What is in the files of a store, line by line, for people and for programs.
//!
//! A dump reads one file by the public formats, with no store open around it, and goes on as far as it can: what does not
//! check becomes a line of its own, `damage`, and the dump goes on behind it.

mod line;
mod log;
mod manifest;
mod table;
mod wal;

pub use line::{Line, Printer};
pub use manifest::dump_manifest;
pub use table::{Depth, dump_pack};
pub use wal::dump_wal;
