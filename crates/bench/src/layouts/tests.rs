//! Tests of the map: a small one in virtual time, and what it says.

use super::*;

fn choice() -> Choice {
    let layouts = LAYOUTS.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    Choice {
        layouts: layouts.collect(),
        mixes: vec![Mix::Load, Mix::Half, Mix::Scans, Mix::Deletes],
        shapes: vec![Shape::Tenants, Shape::Recent],
        ratios: vec![0.5],
        scale: SCALE,
        memory_bytes: 4 << 20,
        value_bytes: 1000,
        machine: Machine::preset("nvme").unwrap(),
        seed: 1,
    }
}

#[test]
fn every_layout_goes_through_every_cell() {
    let mut told = Vec::new();
    let map = run(&choice(), &mut |what| told.push(what.to_owned())).unwrap();
    assert_eq!(told.len(), 2 * LAYOUTS.len());
    assert_eq!(map.layout_map.len(), 2 * 4);
    for cell in &map.layout_map {
        assert_eq!(cell.layouts.len(), LAYOUTS.len());
        for layout in &cell.layouts {
            assert!(layout.ops_per_s > 0.0 && layout.p99_us > 0.0, "{cell:?}");
            assert!(layout.space_amplification > 0.4, "{cell:?}");
        }
    }
    let again = run(&choice(), &mut |_| ()).unwrap();
    assert_eq!(map.layout_map, again.layout_map, "a seed replays a map");
    let text = text(&map);
    assert!(text.contains("operations per second, keys tenants") && text.contains("0.5 x, half"), "{text}");
}

#[test]
fn what_is_better_has_an_advantage_above_one() {
    let layout = |speed, writes| Measured {
        layout: String::new(),
        ops_per_s: speed,
        p99_us: 1.0,
        write_amplification: writes,
        read_bytes_per_op: 0.0,
        space_amplification: 1.0,
    };
    let (slow, fast) = (layout(100.0, 2.0), layout(150.0, 4.0));
    assert_eq!(Quantity::Speed.advantage(&fast, &slow), 1.5);
    assert_eq!(Quantity::Writes.advantage(&fast, &slow), 0.5);
    assert_eq!(Quantity::Reads.advantage(&fast, &slow), 1.0);
    let cell = Cell { shape: Shape::Uniform, ratio: 1.0, mix: Mix::Half, layouts: vec![slow, fast.clone()] };
    assert_eq!(cell.best(Quantity::Speed), Some((&fast, 1.5)));
    assert_eq!(cell.best(Quantity::Writes).unwrap().1, 1.0);
}
