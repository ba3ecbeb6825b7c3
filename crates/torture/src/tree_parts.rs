//! The parameters of a tree, one at a time, for options that are known to have the variants in question.

use terrace::TreeOptions;
use terrace::tree::{
    Adaptive, Cutter, Dlc, Gear, Governor, Group, Layout, Leveled, Pacer, Picker, Prefixed, RatioWindow,
    Silk, Steady, TableSize, Tiered,
};

/// Access to the parameters of the variants that a tree has. Each panics where it has one without such a parameter.
pub trait TreeParts: Sized {
    /// What level 1 may hold, or level 0 where limits follow the data.
    fn level1_bytes(&mut self) -> &mut u64;
    /// The full runs at which level 0 is due.
    fn l0_trigger(&mut self) -> &mut usize;
    /// Changes to a layout of that ratio, or, without one, to the one whose limits follow the data; with the same numbers otherwise.
    fn set_ratio(&mut self, ratio: Option<u32>);
    /// How many victims there are.
    fn group(&mut self) -> &mut Group;
    /// The tables that outputs are cut into.
    fn tables(&mut self) -> &mut TableSize;
    /// The limits that hold writers up.
    fn governor(&mut self) -> &mut Governor;

    /// Changed by `change`.
    #[must_use]
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl TreeParts for TreeOptions {
    fn level1_bytes(&mut self) -> &mut u64 {
        match &mut self.layout {
            Layout::Adaptive(adaptive) | Layout::Auto(adaptive) => &mut adaptive.l0_bytes,
            Layout::Leveled(Leveled { level1_bytes, .. }) | Layout::Tiered(Tiered { level1_bytes, .. }) => {
                level1_bytes
            }
            Layout::Prefixed(prefixed) => &mut prefixed.level1_bytes,
            Layout::Geared(geared) => &mut geared.level1_bytes,
            other => panic!("{other:?} has no such limit"),
        }
    }

    fn l0_trigger(&mut self) -> &mut usize {
        match &mut self.layout {
            Layout::Adaptive(adaptive) | Layout::Auto(adaptive) => &mut adaptive.l0_runs,
            Layout::Leveled(Leveled { l0_trigger, .. }) | Layout::Tiered(Tiered { l0_trigger, .. }) => {
                l0_trigger
            }
            Layout::Guarded(guarded) => &mut guarded.l0_trigger,
            Layout::Prefixed(prefixed) => &mut prefixed.l0_trigger,
            Layout::Geared(geared) => &mut geared.l0_trigger,
            other => panic!("{other:?} does not count runs"),
        }
    }

    fn set_ratio(&mut self, ratio: Option<u32>) {
        let (bytes, runs) = (*self.level1_bytes(), *self.l0_trigger());
        self.layout = match ratio {
            Some(ratio) if matches!(self.layout, Layout::Prefixed(_)) => {
                Layout::Prefixed(Prefixed { level1_bytes: bytes, ratio, l0_trigger: runs })
            }
            Some(ratio) => Layout::Leveled(Leveled { level1_bytes: bytes, ratio, l0_trigger: runs }),
            None if matches!(self.layout, Layout::Auto(_)) => {
                Layout::Auto(Adaptive { l0_bytes: bytes, l0_runs: runs })
            }
            None => Layout::Adaptive(Adaptive { l0_bytes: bytes, l0_runs: runs }),
        };
    }

    fn group(&mut self) -> &mut Group {
        match &mut self.picker {
            Picker::Cursor(group)
            | Picker::LeastOverlap(group)
            | Picker::RatioWindow(RatioWindow { group, .. }) => group,
            other => panic!("{other:?} takes no groups"),
        }
    }

    fn tables(&mut self) -> &mut TableSize {
        match &mut self.cutter {
            Cutter::Size(size) | Cutter::Guards(size) | Cutter::Prefix(size) => size,
            other => panic!("{other:?} does not cut by size"),
        }
    }

    fn governor(&mut self) -> &mut Governor {
        match &mut self.pacer {
            Pacer::Governor(governor)
            | Pacer::Steady(Steady { limits: governor, .. })
            | Pacer::Silk(Silk { limits: governor, .. })
            | Pacer::Dlc(Dlc { limits: governor, .. })
            | Pacer::Gear(Gear { limits: governor, .. }) => governor,
            other => panic!("{other:?} has no such limits"),
        }
    }
}
