//! Trees at rest: whatever the load and the prices, nothing is planned for them.

use super::properties::random_tree_of;
use super::*;
use crate::policy::{Rest, rest};

/// Trees of few tables, so that many are at rest.
fn small_tree(dice: &mut Dice) -> Version {
    let all = random_tree_of(1 + dice.below(3), dice);
    let tables: Vec<_> = all.tables().map(|(level, table)| (level, table.record())).collect();
    let keep = 1 + dice.below(6);
    version(tables.into_iter().filter(|_| dice.below(keep) == 0).collect())
}

fn configs() -> Vec<PolicyConfig> {
    let mut large = PolicyConfig::leveldb_sized(1 << 20, 64 << 20);
    let mut configs = vec![PolicyConfig::leveldb_sized(1 << 20, 4 << 20), large];
    let Layout::Leveled(layout) = &mut large.layout else { panic!("a leveled tree") };
    layout.ratio = None;
    configs.push(large);
    large.let_level_0_follow_the_mix();
    configs.push(large);
    configs
}

#[test]
fn nothing_is_planned_for_a_tree_at_rest() {
    let mut dice = Dice(1);
    let (mut at_rest, mut until_idle) = (0, 0);
    for round in 0..3000 {
        let tree = small_tree(&mut dice);
        let configs = configs();
        let config = &configs[round % configs.len()];
        let busy = Claims::default();
        let shape = config.layout.measure(&tree);
        let view = TreeView {
            keyspace: KeyspaceId(0),
            version: &tree,
            busy: &busy,
            shape: &shape,
            pins: &[],
            deletes: &[],
            collection: None,
        };
        let rest = rest(&view, config);
        at_rest += u32::from(rest == Rest::Yes);
        until_idle += u32::from(rest == Rest::UntilIdle);
        let price = |dice: &mut Dice| dice.below(1 << 20) as f64 / 1e3;
        let mut costs = Costs::default();
        costs.compacted_byte *= price(&mut dice) / 500.0;
        costs.device.barrier = price(&mut dice) * 1e3;
        costs.seek_cached = price(&mut dice);
        let idles: &[bool] = match rest {
            Rest::Yes => &[false, true],
            Rest::UntilIdle => &[false],
            Rest::No => &[],
        };
        for &idle in idles {
            let shape = TreeShape { idle, ..config.layout.measure_with_debt(&tree, 0, &costs) };
            let view = TreeView { shape: &shape, pins: &[Seq(dice.below(100))], ..view };
            let load = LoadState {
                costs,
                l0_runs: dice.below(100),
                debt_bytes: 1 << dice.below(40),
                ..LoadState::default()
            };
            let plan = next_plan(&[view], &SpaceView::default(), &load, config);
            assert_eq!(plan, None, "round {round}, idle {idle}: {tree:?}");
        }
    }
    assert!(at_rest > 100 && until_idle > 100, "{at_rest} at rest, {until_idle} until it is idle");
}
