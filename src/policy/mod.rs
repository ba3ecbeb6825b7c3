//! Decisions as pure functions of plain values: no clock, file, lock, thread or randomness.
//!
//! Six seams, one per decision: [`Layout`] (how a level is built, when it is too large), [`Picker`] (what to compact or
//! move next), [`Cutter`] (where outputs are cut), [`Retainer`] (what becomes of compaction inputs), [`Pacer`] (when a job
//! runs, how long a writer waits), [`Placer`] (which device gets which bytes). Each is an enum of its variants, which
//! carry their parameters; [`PolicyConfig`] names one of each, as the options have it. [`next_plan`] puts them in order of precedence.
//!
//! What a decision depends on comes in a view ([`TreeView`], [`LoadState`], ..), what the machine takes for it in [`Costs`]; what comes out is a plain value, so
//! that decisions can be tested as text (`tests/policy/`) and replayed from a log.

mod clusters;
mod config;
mod costs;
mod cutter;
mod expiry;
mod layout;
mod level0;
mod pacer;
mod picker;
mod placer;
mod plan;
mod planner;
mod release;
mod retainer;
mod rewriter;
mod view;

pub use config::PolicyConfig;
pub use costs::{BlocksAsked, Costs, Measured};
pub use cutter::{CutState, CutView, Cutter, SizeConfig};
pub use expiry::Expiring;
pub use layout::{Layout, LeveledConfig, TreeShape};
pub use pacer::{Admission, GovernorConfig, Pacer, Pressure, UserLoad, WriterVerdict};
pub use picker::{Evenness, Picker, PickerConfig, RangePick};
pub use placer::{PlaceView, Placer};
pub use plan::{Plan, PlanInput, PlanKind, Reason};
pub use planner::next_plan;
pub use release::is_released;
pub use retainer::{Fate, Retainer};
pub use rewriter::next_rewrite;
pub use view::{Claims, LoadState, PackView, SpaceTotals, SpaceView, TreeView};

#[cfg(test)]
mod tests;
