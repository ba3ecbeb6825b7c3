//! Dumps: the contents of a store's files, line by line, for people and for programs.
//!
//! A dump reads one file by the public formats, without opening a store, and goes on as far as it can. Bytes whose
//! checksum is wrong become a line of their own, `damage`, and the dump goes on behind them.

mod line;
mod log;
mod manifest;
mod table;
mod wal;

pub use line::{Line, Printer};
pub use manifest::dump_manifest;
pub use table::{Depth, dump_pack};
pub use wal::dump_wal;
