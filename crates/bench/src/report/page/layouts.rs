//! Section of the page: the map of layouts, a heat map for each quantity.

use maud::{Markup, html};

use super::{of_run, wide_figure};
use crate::layouts::{Cell, Quantity};
use crate::report::Stored;

/// Size of a field in the picture, and of the margins for names, in pixels.
const FIELD: (usize, usize) = (84, 22);
const MARGIN: (usize, usize) = (200, 26);

/// One section for each run that has a map.
pub fn sections(runs: &[Stored]) -> Markup {
    let drawn = runs.iter().filter(|run| !run.layout_map.is_empty());
    html! {
        @for run in drawn {
            h2 { (of_run(runs, run, "Which layout wins where")) }
            p {
                "Each field tells how many times better a layout is than the first one, on the same work: green is better, red "
                "is worse, the darker the more."
            }
            @for quantity in Quantity::ALL { (wide_figure(quantity.name(), &heat_map(&run.layout_map, quantity))) }
        }
    }
}

fn heat_map(cells: &[Cell], quantity: Quantity) -> Markup {
    let columns: Vec<&str> =
        cells.first().map_or_else(Vec::new, |cell| cell.layouts.iter().map(|l| l.layout.as_str()).collect());
    let (width, height) = (MARGIN.0 + columns.len() * FIELD.0, MARGIN.1 + cells.len() * FIELD.1);
    let middle = |column: usize| MARGIN.0 + column * FIELD.0 + FIELD.0 / 2;
    let baseline = |row: usize| MARGIN.1 + row * FIELD.1 + FIELD.1 * 7 / 10;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox=(format!("0 0 {width} {height}"))
            font-size="12" font-family="sans-serif" {
            @for (column, name) in columns.iter().enumerate() {
                text x=(middle(column)) y=(MARGIN.1 - 8) text-anchor="middle" { (name) }
            }
            @for (row, cell) in cells.iter().enumerate() {
                text x=(MARGIN.0 - 8) y=(baseline(row)) text-anchor="end" {
                    (cell.shape) ", " (cell.ratio) " x, " (cell.mix)
                }
                @for (column, layout) in cell.layouts.iter().enumerate() {
                    @let times = cell.reference().map_or(1.0, |reference| quantity.advantage(layout, reference));
                    rect x=(MARGIN.0 + column * FIELD.0) y=(MARGIN.1 + row * FIELD.1) width=(FIELD.0 - 2)
                        height=(FIELD.1 - 2) fill=(colour(times)) {}
                    text x=(middle(column)) y=(baseline(row)) text-anchor="middle" { (words(times)) }
                }
            }
        }
    }
}

/// A factor that fits into a field: a layout that writes or reads nothing is better by any number.
fn words(times: f64) -> String {
    if times < 1000.0 { format!("{times:.2}") } else { "> 999".to_owned() }
}

/// Green from 1 to 4 times better, red from 1 to 4 times worse.
fn colour(times: f64) -> String {
    let depth = (times.log2().abs() / 2.0).clamp(0.0, 1.0);
    let lightness = 97.0 - 42.0 * depth;
    let hue = if times >= 1.0 { 140 } else { 10 };
    format!("hsl({hue}, 60%, {lightness:.0}%)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_fit_into_their_fields() {
        assert_eq!(
            [0.0, 1.0, 999.99, 1e300, f64::INFINITY].map(words),
            ["0.00", "1.00", "999.99", "> 999", "> 999"]
        );
    }

    #[test]
    fn what_is_better_is_green_and_what_is_worse_is_red() {
        assert_eq!(colour(1.0), "hsl(140, 60%, 97%)");
        assert_eq!(colour(4.0), colour(100.0));
        assert!(colour(0.5).starts_with("hsl(10"));
    }
}
