//! A map as text: a table for each shape of keys and quantity.

use std::fmt::Write;

use super::{Cell, LayoutMap, Quantity, Shape};

/// From here on a layout counts as better than the reference.
pub const WIN: f64 = 1.2;

/// The map as text: for every quantity and shape a table of the cells, with each layout's advantage over the first one.
#[must_use]
pub fn text(map: &LayoutMap) -> String {
    let mut out = String::new();
    let LayoutMap { device, seed, memory_bytes, scale, layout_map, .. } = map;
    let Some(first) = layout_map.first().and_then(Cell::reference) else { return out };
    let _ = writeln!(
        out,
        "layouts on {}, seed {seed}, memory {memory_bytes} B, sizes divided by {scale}; times better than {}",
        device.name, first.layout
    );
    let mut shapes: Vec<Shape> = Vec::new();
    for cell in layout_map {
        if !shapes.contains(&cell.shape) {
            shapes.push(cell.shape);
        }
    }
    for quantity in Quantity::ALL {
        for &shape in &shapes {
            let _ = writeln!(out, "\n{}, keys {shape}", quantity.name());
            table(&mut out, quantity, layout_map.iter().filter(|cell| cell.shape == shape));
        }
    }
    out.push_str(&wins(layout_map));
    out
}

fn table<'a>(out: &mut String, quantity: Quantity, cells: impl Iterator<Item = &'a Cell>) {
    for (number, cell) in cells.enumerate() {
        let Some(reference) = cell.reference() else { continue };
        if number == 0 {
            let _ = write!(out, "{:<22}{:>14}", "data, mix", reference.layout);
            cell.layouts.iter().skip(1).for_each(|layout| {
                let _ = write!(out, "{:>14}", layout.layout);
            });
            out.push('\n');
        }
        let _ = write!(out, "{:<22}", format!("{} x, {}", cell.ratio, cell.mix));
        let _ = write!(out, "{:>14.2}", quantity.of(reference));
        for layout in cell.layouts.iter().skip(1) {
            let _ = write!(out, "{:>14.2}", quantity.advantage(layout, reference));
        }
        out.push('\n');
    }
}

/// Where a layout is better than the first one by [`WIN`] or more in operations per second.
fn wins(cells: &[Cell]) -> String {
    let mut out = String::new();
    for cell in cells {
        if let Some((best, times)) = cell.best(Quantity::Speed).filter(|(_, times)| *times >= WIN) {
            let Cell { shape, ratio, mix, .. } = cell;
            let _ = writeln!(out, "  {shape}, {ratio} x, {mix}: {} by {times:.2}", best.layout);
        }
    }
    if out.is_empty() {
        return format!("\nno layout is {WIN} times as fast as the first one in any cell\n");
    }
    format!("\nat least {WIN} times as fast as the first one\n{out}")
}
