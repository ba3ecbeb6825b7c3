//! The catalog: immutable metadata of all trees, the edits that change it, and a checker of its invariants.
//!
//! A [`Catalog`] is what the manifest says: keyspaces, each with the [`Version`] of its tree, and the packs that hold
//! their tables. Nothing in it changes. An [`Edit`](crate::format::edit::Edit) makes a new catalog that shares
//! everything that the edit did not touch. So readers keep a consistent catalog for as long as they hold one, and an
//! edit of k tables among n costs about k log n.
//!
//! A table is shared as `Arc<TableMeta>`. Its [`Lease`] notifies an [`ExtentSink`] when the last holder is gone.
//!
//! The catalog knows no file, path, cache or open table, and decides nothing.

mod apply;
mod attachment;
mod buffer;
mod check;
mod heat;
mod inconsistent;
mod lease;
mod placement;
mod run;
mod searches;
mod sequence;
mod state;
mod table_meta;
#[cfg(test)]
pub mod testing;
mod values;
mod version;

pub use attachment::Attachment;
pub use buffer::{BufferList, CompactionBuffer, Descent};
pub use check::check_version;
#[cfg(test)]
pub use check::{check_edit, check_merged};
pub use heat::{Heat, Warm};
pub use inconsistent::Inconsistent;
pub use lease::{ExtentSink, Lease};
pub use run::Run;
pub use searches::Searches;
pub use state::Catalog;
pub use table_meta::TableMeta;
pub use values::{ValueTable, Values};
pub use version::{LevelState, Version};
