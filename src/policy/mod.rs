//! Decisions as pure functions of plain values: no clock, file, lock, thread or randomness.
//!
//! There are six kinds. [`Layout`]: how is a level built, and when is it too large? [`Picker`]: what is compacted or
//! moved next? [`Cutter`](cutter::Cutter): where do outputs end? [`Retainer`](retainer::Retainer): what becomes of a compaction's inputs?
//! [`Pacer`](pacer::Pacer): when does a job run, and how long does a writer wait? [`Placer`](placer::Placer): which device
//! gets which bytes? Each is an enum; its variants carry their parameters. [`PolicyConfig`] names one of each, as the
//! options have it. [`decide`] asks them in order of precedence.
//!
//! A decision depends on a view ([`TreeView`], [`LoadState`], ..) and on the prices of the machine ([`Costs`]). Its
//! outcome is a plain value. So decisions can be tested as text (`tests/policy/`) and replayed from a log.

mod closure;
mod clusters;
mod collector;
mod config;
mod costs;
mod cutter;
mod deleted;
mod devices;
mod expiry;
mod hidden;
mod layout;
mod level0;
mod load;
mod pacer;
mod picker;
mod placer;
mod plan;
mod planner;
mod prefixes;
mod release;
mod relocation;
mod retainer;
mod rewriter;
mod view;

pub use collector::{HoleBytes, STUCK_PARTS, next_collection};
pub use config::PolicyConfig;
pub use costs::{BlocksAsked, Costs, Measured};
pub use cutter::{CutState, CutView};
pub use deleted::is_over_tables;
pub use devices::DeviceView;
pub use layout::Layout;
pub use load::{JobClass, LevelLoad, LoadClass, LoadState, Pace, Round, RunningJobs, UserLoad};
pub use pacer::{Admission, Budget, Deferral, Pressure, Slowdown, Verdict, WriterVerdict, flushed_and_parts};
pub use picker::{Picker, RangePick};
pub use placer::{FastView, PlaceView, moved_level};
pub use plan::{OutputAge, Plan, PlanInput, PlanKind, Reason};
pub use planner::{Planned, Rest, decide, rest};
pub use prefixes::prefix_length;
pub use release::is_released;
pub use relocation::stays_hot;
pub use retainer::BufferConfig;
pub use rewriter::{next_departure, next_rewrite};
pub use view::{
    Claims, Collection, Expiring, PackView, ReadView, SEARCHED_MAX, SpaceTotals, SpaceView, TreeShape,
    TreeView,
};

/// What only tests name.
#[cfg(test)]
mod for_tests {
    pub use super::closure::{convex, downward};
    pub use super::cutter::{Cutter, SizeConfig};
    pub use super::layout::{GearedConfig, GuardedConfig, Level0Width, LeveledConfig, TieredConfig};
    pub use super::level0::LEVEL0_SHARE_MAX;
    pub use super::pacer::{GovernorConfig, Pacer};
    pub use super::picker::{ComponentsConfig, Evenness, PickerConfig, WindowConfig};
    pub use super::planner::next_plan;
    pub use super::retainer::Retainer;
}

#[cfg(test)]
pub use for_tests::*;

#[cfg(test)]
mod tests;
