//! LSbM: the effect of compactions on the cache.
//!
//! The paper keeps 20 GB of records of 1 KB on two disks of 15,000 revolutions, with level 0 of 100 MB, level 1 of 1
//! GB, a cache of 6 GB and 3 GB of it hot; one client writes 1,000 records a second, eight read, for 20,000 seconds.
//!
//! `stores` has the shapes that are compared, `workload` runs them, `swing` judges a hit ratio over time. The figures: `hits` (2, 8,
//! 9, and ours of independent writes), `ranges` (10 to 13), `sizes` (section IV-D),
//! `ours` (the default, with and without what hides compactions from its cache).

mod hits;
mod ours;
mod ranges;
mod sizes;
mod stores;
mod swing;
mod workload;

pub use hits::{figure_2, figure_8a, figure_8b, figure_8c, figure_8d, figure_9, independent};
pub use ours::default_ways;
pub use ranges::{figure_10a, figure_10b, figure_11, figure_12, figure_13};
pub use sizes::adapts;
