//! Options of the trees: one value for each decision, and which values go together.

use super::caching::Caching;
use super::cutter::Cutter;
use super::files::Files;
use super::layout::{Adaptive, Geared, Guarded, Layout, Leveled, Prefixed, Tiered};
use super::pacer::Pacer;
use super::picker::Picker;
use super::placer::Placer;
use super::range;
use super::retainer::Retainer;
use super::values::ValueOrder;
use crate::error::{Error, ErrorKind, Result};

/// Shape of the trees and of their files: one value for each decision, each of them a variant with its parameters
/// ([`tree`](crate::tree)).
///
/// The defaults suit most uses; the fields exist so that the compared systems of the literature can be run as
/// profiles (see [`Options::profile`](crate::Options::profile)).
///
/// ```
/// use terrace::tree::{Cutter, TableSize};
/// use terrace::{Options, TreeOptions};
/// let cutter = Cutter::Size(TableSize { table_bytes: 256 << 10, ..TableSize::default() });
/// let tree = TreeOptions { cutter, ..TreeOptions::default() };
/// assert_eq!(Options { tree, ..Options::default() }.profile_name(), "custom");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeOptions {
    /// How levels are built, and when one is too large.
    pub layout: Layout,
    /// What is compacted next.
    pub picker: Picker,
    /// Where outputs of flushes and compactions are cut into tables.
    pub cutter: Cutter,
    /// What becomes of the tables that a compaction has replaced.
    pub retainer: Retainer,
    /// When compactions run, and how long writers wait for them.
    pub pacer: Pacer,
    /// How tables share files and descriptors.
    pub files: Files,
    /// Which device gets which tables.
    pub placer: Placer,
    /// What the block cache keeps. It is fixed while the store is open.
    pub caching: Caching,
    /// In which order values lie that are kept apart from their keys.
    pub value_order: ValueOrder,
    /// Size of a block of a table, in bytes; 256 B to 1 MiB. A lookup that misses the cache reads one block. Default:
    /// 4 KiB, a page of the operating system.
    pub block_bytes: u32,
    /// In tables of at least this many bytes of blocks, index and filter are in partitions, each with an index of about the size
    /// of a block. Such a table is never open as a whole: the cache keeps its partitions one by one. 0 means all tables. Tables
    /// far smaller than the cache are better whole. Default: 8 MiB.
    pub partitioned_bytes_min: u64,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            picker: Picker::default(),
            cutter: Cutter::default(),
            retainer: Retainer::default(),
            pacer: Pacer::default(),
            files: Files::default(),
            placer: Placer::default(),
            caching: Caching::default(),
            value_order: ValueOrder::default(),
            block_bytes: 4096,
            partitioned_bytes_min: 8 << 20,
        }
    }
}

impl TreeOptions {
    /// Each decision by itself, then whether they go together.
    pub(super) fn validate(&self) -> Result<()> {
        self.layout.validate()?;
        self.picker.validate()?;
        self.cutter.validate()?;
        self.retainer.validate()?;
        self.pacer.validate()?;
        self.files.validate()?;
        self.placer.validate()?;
        range("tree.block_bytes", u64::from(self.block_bytes), 256, 1 << 20)?;
        self.go_together()
    }

    /// Refuses combinations that are not supported, with the reason.
    ///
    /// No pattern here stands for "any other": whoever adds a variant says here which of the others it goes with.
    fn go_together(&self) -> Result<()> {
        let Self {
            layout,
            picker,
            cutter,
            retainer,
            pacer,
            // Each goes with every shape of a tree.
            files: _,
            placer: _,
            caching: _,
            value_order: _,
            block_bytes: _,
            partitioned_bytes_min: _,
        } = self;
        // These go with every other one: each takes a run below level 0 for what it is.
        match cutter {
            Cutter::Size(_) | Cutter::Guards(_) | Cutter::Prefix(_) => {}
        }
        match (retainer, layout) {
            (Retainer::Drop, _)
            | (
                Retainer::Buffer(_),
                Layout::Adaptive(_) | Layout::Auto(_) | Layout::Leveled(_) | Layout::Geared(_),
            ) => {}
            (Retainer::Buffer(_), Layout::Tiered(_) | Layout::Prefixed(_) | Layout::Guarded(_)) => {
                return Err(refused(
                    "option tree.retainer is Buffer, and tree.layout has levels of several runs: what comes there is put on top of what \
                     is there, so a merge of a level replaces tables that readers still search by their age; a buffer keeps what was \
                     merged into a single run",
                ));
            }
        }
        match pacer {
            // Each goes with every layout.
            Pacer::Steady(_)
            | Pacer::Governor(_)
            | Pacer::SoftSleep(_)
            | Pacer::Silk(_)
            | Pacer::Dlc(_)
            | Pacer::Gear(_) => {}
        }
        let (name, l0_due) = match layout {
            Layout::Adaptive(Adaptive { l0_runs, .. }) | Layout::Auto(Adaptive { l0_runs, .. }) => {
                ("l0_runs", *l0_runs)
            }
            Layout::Leveled(Leveled { l0_trigger, .. })
            | Layout::Tiered(Tiered { l0_trigger, .. })
            | Layout::Prefixed(Prefixed { l0_trigger, .. })
            | Layout::Geared(Geared { l0_trigger, .. })
            | Layout::Guarded(Guarded { l0_trigger, .. }) => ("l0_trigger", *l0_trigger),
        };
        let are_guards = [
            matches!(layout, Layout::Guarded(_)),
            *picker == Picker::Guards,
            matches!(cutter, Cutter::Guards(_)),
        ];
        if are_guards.contains(&true) && are_guards.contains(&false) {
            return Err(refused(
                "options tree.layout, tree.picker and tree.cutter must all be of guards, or none: outputs are cut at the guards that the \
                 layout has, and only Picker::Guards puts them beside what is there",
            ));
        }
        self.layout_goes_with_picker()?;
        due_before_slow(name, l0_due, pacer.l0_slow())
    }

    /// Refuses a picker that does not put tables where the layout has them. Guards are seen to go together.
    fn layout_goes_with_picker(&self) -> Result<()> {
        match (&self.layout, &self.picker) {
            (Layout::Guarded(_), _) | (_, Picker::Guards) => {}
            (
                Layout::Adaptive(_) | Layout::Auto(_) | Layout::Leveled(_),
                Picker::Cursor(_) | Picker::LeastOverlap(_) | Picker::RatioWindow(_),
            )
            | (Layout::Tiered(_), Picker::Levels(_))
            | (Layout::Geared(_), Picker::Drain(_))
            | (Layout::Prefixed(_), Picker::Components(_)) => {}
            (Layout::Geared(_), _) => {
                return Err(refused(
                    "option tree.layout is Geared, which only a tree.picker of Drain goes with: no other knows the component of a level \
                     that goes down",
                ));
            }
            (_, Picker::Drain(_)) => {
                return Err(refused(
                    "option tree.picker is Drain, which only a tree.layout of Geared goes with: levels of no other have a component that \
                     goes down",
                ));
            }
            (
                Layout::Adaptive(_) | Layout::Auto(_) | Layout::Leveled(_) | Layout::Prefixed(_),
                Picker::Levels(_),
            ) => {
                return Err(refused(
                    "option tree.picker is Levels, which only a tree.layout of Tiered goes with; leveling by whole \
                     levels is Tiered with one run for each",
                ));
            }
            (
                Layout::Tiered(_),
                Picker::Cursor(_) | Picker::LeastOverlap(_) | Picker::RatioWindow(_) | Picker::Components(_),
            ) => {
                return Err(refused(
                    "option tree.layout is Tiered, which only a tree.picker of Levels goes with: a table that is taken \
                     from below others leaves as many runs",
                ));
            }
            (Layout::Prefixed(_), Picker::Cursor(_) | Picker::LeastOverlap(_) | Picker::RatioWindow(_)) => {
                return Err(refused(
                    "option tree.layout is prefixed, and tree.picker merges with what lies in the next level: nothing would be put on \
                     top of it; it goes with Picker::Components",
                ));
            }
            (Layout::Adaptive(_) | Layout::Auto(_) | Layout::Leveled(_), Picker::Components(_)) => {
                return Err(refused(
                    "option tree.picker is components, and tree.layout has one run in each level: what the picker puts on top would \
                     be another one; it goes with Layout::Prefixed",
                ));
            }
        }
        Ok(())
    }
}

/// Level 0 is due before it holds writers up, or nothing would relieve it (I11).
fn due_before_slow(name: &str, l0_due: usize, l0_slow: usize) -> Result<()> {
    if l0_slow >= l0_due {
        return Ok(());
    }
    Err(refused(&format!(
        "option tree.pacer.l0_slow is {l0_slow}, below tree.layout.{name}, which is {l0_due}: writers would be held up by a level 0 that \
         is not due for compaction"
    )))
}

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::super::cutter::{Flushes, TableSize};
    use super::super::files::{Descriptors, PackLayout};
    use super::super::pacer::Governor;
    use super::super::picker::{Components, Group, Levels, RatioWindow};
    use super::super::placer::Unit;
    use super::*;

    fn layouts(l0_due: usize) -> [Layout; 2] {
        [
            Layout::Adaptive(Adaptive { l0_runs: l0_due, ..Adaptive::default() }),
            Layout::Leveled(Leveled { l0_trigger: l0_due, ..Leveled::default() }),
        ]
    }

    fn pickers() -> [Picker; 6] {
        let group = Group::default();
        [
            Picker::Cursor(group),
            Picker::Cursor(Group::SINGLE),
            Picker::LeastOverlap(group),
            Picker::LeastOverlap(Group { settle: false, ..group }),
            Picker::RatioWindow(RatioWindow::default()),
            Picker::RatioWindow(RatioWindow { group, ..RatioWindow::default() }),
        ]
    }

    fn prefixed(l0_due: usize) -> TreeOptions {
        TreeOptions {
            layout: Layout::Prefixed(Prefixed { l0_trigger: l0_due, ..Prefixed::default() }),
            picker: Picker::Components(Components::default()),
            ..TreeOptions::default()
        }
    }

    fn files() -> Vec<Files> {
        let packs = [PackLayout::OneTable, PackLayout::default()];
        let descriptors = [Descriptors::PerPack, Descriptors::PerTable];
        let pairs = packs.iter().flat_map(|packs| descriptors.iter().map(move |kept| (*packs, *kept)));
        pairs.map(|(packs, descriptors)| Files { packs, descriptors }).collect()
    }

    fn placers() -> [Placer; 6] {
        let unit = Unit::Job;
        [
            Placer::Home,
            Placer::Mod { n: 4, unit },
            Placer::Weighted { slow_percent: 18, unit },
            Placer::Level { upto: 1, adapt: false },
            Placer::Dynamic { unit },
            Placer::default(),
        ]
    }

    #[test]
    fn whole_levels_go_with_tiers_alone() {
        let tree = |layout, picker| TreeOptions { layout, picker, ..TreeOptions::default() }.validate();
        let (tiered, levels) = (Layout::Tiered(Tiered::default()), Picker::Levels(Levels::default()));
        tree(tiered, levels).unwrap();
        let reason = |error: Result<()>| error.unwrap_err().to_string();
        for picker in pickers() {
            assert!(reason(tree(tiered, picker)).contains("leaves as many runs"));
        }
        for layout in layouts(4) {
            assert!(reason(tree(layout, levels)).contains("Tiered with one run for each"));
        }
    }

    /// BoLT's parts among them, each without the others.
    #[test]
    fn every_variant_goes_with_every_other() {
        let sizes =
            [Flushes::Cut, Flushes::Whole].map(|flushes| TableSize { flushes, ..TableSize::default() });
        let cutters = || sizes.into_iter().flat_map(|size| [Cutter::Size(size), Cutter::Prefix(size)]);
        let leveled = layouts(4).into_iter().flat_map(|layout| pickers().map(|picker| (layout, picker)));
        let prefixed = prefixed(4);
        for (layout, picker) in leveled.chain([(prefixed.layout, prefixed.picker)]) {
            for cutter in cutters() {
                let placers = placers()
                    .into_iter()
                    .flat_map(|placer| files().into_iter().map(move |files| (placer, files)));
                for (placer, files) in placers {
                    let tree =
                        TreeOptions { layout, picker, cutter, files, placer, ..TreeOptions::default() };
                    assert_eq!(tree.validate().map_err(|error| error.to_string()), Ok(()), "{tree:?}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_the_reason() {
        let governor = |l0_slow| Pacer::Governor(Governor { l0_slow, ..Governor::default() });
        let [adaptive, leveled] = layouts(8);
        let cases = [
            (adaptive, governor(8), None),
            (
                adaptive,
                governor(7),
                Some("l0_slow is 7, below tree.layout.l0_runs, which is 8: writers would"),
            ),
            (leveled, governor(8), None),
            (
                leveled,
                governor(7),
                Some("l0_slow is 7, below tree.layout.l0_trigger, which is 8: writers would"),
            ),
        ];
        let cases = cases
            .map(|(layout, pacer, reason)| (TreeOptions { layout, pacer, ..TreeOptions::default() }, reason));
        let guarded = TreeOptions {
            layout: Layout::Guarded(Guarded::default()),
            picker: Picker::Guards,
            cutter: Cutter::Guards(TableSize::default()),
            ..TreeOptions::default()
        };
        let half = "must all be of guards, or none";
        let components = Picker::Components(Components::default());
        let others = [
            (guarded.clone(), None),
            (
                TreeOptions { pacer: governor(1), ..guarded.clone() },
                Some("l0_slow is 1, below tree.layout.l0_trigger"),
            ),
            (TreeOptions { layout: leveled, ..guarded.clone() }, Some(half)),
            (TreeOptions { picker: Picker::default(), ..guarded.clone() }, Some(half)),
            (TreeOptions { cutter: Cutter::default(), ..guarded }, Some(half)),
            (prefixed(8), None),
            (
                TreeOptions { pacer: governor(7), ..prefixed(8) },
                Some("l0_slow is 7, below tree.layout.l0_trigger, which is 8: writers would"),
            ),
            (
                TreeOptions { picker: Picker::default(), ..prefixed(4) },
                Some("it goes with Picker::Components"),
            ),
            (
                TreeOptions { picker: components, ..TreeOptions::default() },
                Some("it goes with Layout::Prefixed"),
            ),
        ];
        for (tree, reason) in cases.into_iter().chain(others) {
            match (tree.validate(), reason) {
                (Ok(()), None) => {}
                (Err(error), Some(reason)) => {
                    assert_eq!(error.kind(), ErrorKind::InvalidInput);
                    assert!(error.to_string().contains(reason), "{error}");
                }
                (verdict, _) => panic!("{verdict:?} for {tree:?}"),
            }
        }
    }
}
