//! Sizes of a tree at the scale of a run.

use terrace::TreeOptions;
use terrace::tree::{Cutter, Group, Layout, Pacer, PackLayout, Picker, RatioWindow, Retainer};

use super::LEVEL1_BYTES_MIN;
use crate::paper::experiment::Setting;

/// The least table and pack that the store takes.
pub(super) const TABLE_BYTES_MIN: u64 = 1 << 10;
const PACK_BYTES_MIN: u64 = 1 << 20;

/// The largest table: profiles that have one table in a run have tables of this size.
const NEVER_CUT_BYTES: u64 = 1 << 30;

/// Divides the sizes of `tree` by the scale.
pub(super) fn scale_tree(setting: &Setting, tree: &mut TreeOptions) {
    let level_bytes = |bytes: u64| setting.scaled(bytes).max(LEVEL1_BYTES_MIN);
    match &mut tree.layout {
        Layout::Adaptive(adaptive) | Layout::Auto(adaptive) => {
            adaptive.l0_bytes = level_bytes(adaptive.l0_bytes)
        }
        Layout::Leveled(leveled) => leveled.level1_bytes = level_bytes(leveled.level1_bytes),
        Layout::Tiered(tiered) => tiered.level1_bytes = level_bytes(tiered.level1_bytes),
        Layout::Prefixed(prefixed) => prefixed.level1_bytes = level_bytes(prefixed.level1_bytes),
        Layout::Geared(geared) => geared.level1_bytes = level_bytes(geared.level1_bytes),
        Layout::Guarded(guarded) => {
            guarded.guard_bytes = level_bytes(guarded.guard_bytes);
            // As many guards for as many keys less.
            let fewer = setting.scale.log2().round() as u32;
            let least = 7 * guarded.bits_step + 1;
            guarded.top_bits = guarded.top_bits.saturating_sub(fewer).max(least);
        }
        _ => {}
    }
    if let Some(group) = group(tree)
        && group.bytes > 0
    {
        group.bytes = setting.scaled(group.bytes);
    }
    if let Picker::Drain(drain) = &mut tree.picker {
        drain.unit_bytes = setting.scaled(drain.unit_bytes);
    }
    if let Retainer::Buffer(buffer) = &mut tree.retainer {
        buffer.period = setting.scaled_time(buffer.period);
    }
    if let Picker::Components(components) = &mut tree.picker {
        components.job_bytes = level_bytes(components.job_bytes);
        // A table at scale sees fewer lookups, as it has fewer records. `access_bytes` follows the size of the table by itself.
        components.accesses_min = setting.scaled(components.accesses_min);
    }
    if let Cutter::Size(size) | Cutter::Guards(size) | Cutter::Prefix(size) = &mut tree.cutter {
        // A table that is never cut stays so.
        if size.table_bytes < NEVER_CUT_BYTES {
            size.table_bytes = setting.scaled(size.table_bytes).max(TABLE_BYTES_MIN);
        }
    }
    if let Pacer::Governor(governor) = &mut tree.pacer {
        for bytes in [&mut governor.debt_slow_bytes, &mut governor.debt_stop_bytes] {
            // What is next to no limit stays so.
            if *bytes < u64::MAX / 2 {
                *bytes = setting.scaled(*bytes);
            }
        }
    }
    if let PackLayout::Many { bytes_max } = &mut tree.files.packs {
        *bytes_max = setting.scaled(*bytes_max).max(PACK_BYTES_MIN);
    }
}

/// The group of victims, where there is one.
pub(super) fn group(tree: &mut TreeOptions) -> Option<&mut Group> {
    match &mut tree.picker {
        Picker::Cursor(group)
        | Picker::LeastOverlap(group)
        | Picker::RatioWindow(RatioWindow { group, .. }) => Some(group),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use terrace::Options;
    use terrace::tree::{Components, Cutter};

    use super::*;
    use crate::paper::machine::Machine;

    #[test]
    fn a_table_is_merged_after_the_same_share_of_a_phase_at_any_scale() {
        let whole = Options::profile("ptier").unwrap().tree;
        let Cutter::Prefix(size) = whole.cutter else { panic!("cut by prefix") };
        for scale in [1.0, 16.0, 64.0] {
            let machine = Machine::preset("datacenter-sata-ssd").unwrap();
            let mut tree = whole.clone();
            scale_tree(&Setting { machine, scale, seed: 1 }, &mut tree);
            let (Picker::Components(Components { access_bytes, accesses_min, .. }), Cutter::Prefix(scaled)) =
                (tree.picker, tree.cutter)
            else {
                panic!("of components")
            };
            let searches = |bytes: u64, least: u64| (bytes / access_bytes).max(least) as f64;
            let ratio = searches(size.table_bytes, 100) / searches(scaled.table_bytes, accesses_min);
            assert_eq!(ratio, scale, "{scale}");
        }
    }
}
