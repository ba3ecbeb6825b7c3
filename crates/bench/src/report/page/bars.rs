//! Bars: tables of figures with a bar under each, and ratios with their intervals.

use maud::{Markup, html};
use plotters::prelude::*;

use super::axis::{Axis, short};
use super::chart::{GRID, LETTER, LETTER_WIDTH, WIDTH};
use super::ink::{BAR_OPACITY, Ink};
use crate::Result;

/// Length of the longest bar of a table in pixels, in whatever column, however wide its name makes that.
const LONGEST: f64 = 72.0;

/// Which bars of a table can be held against each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Those of a column.
    Column,
    /// Those of a row.
    Row,
    /// All.
    Table,
}

/// A table of figures with a bar under each.
pub struct BarTable<'a> {
    pub caption: &'a str,
    /// What the first column names.
    pub key: &'a str,
    /// Name and unit.
    pub columns: Vec<(String, &'a str)>,
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    pub scale: Scale,
    /// Name of a column that is shown as figures only: beside its bars the others would be too short to compare.
    pub without_bars: Option<&'a str>,
}

impl BarTable<'_> {
    /// The table, without the columns that have nothing but zeros.
    pub fn markup(mut self) -> Markup {
        let kept: Vec<usize> = (0..self.columns.len())
            .filter(|&at| self.rows.iter().any(|(_, row)| row[at].is_some_and(|figure| figure > 0.0)))
            .collect();
        self.columns = kept.iter().map(|&at| self.columns[at].clone()).collect();
        self.rows.iter_mut().for_each(|(_, row)| *row = kept.iter().map(|&at| row[at]).collect());
        html! {
            @if !kept.is_empty() {
                div.scroll {
                    table {
                        caption { (self.caption) }
                        tr {
                            th { (self.key) }
                            @for (name, unit) in &self.columns { th { (name) small { (unit) } } }
                        }
                        @for (name, row) in &self.rows {
                            tr {
                                td { (name) }
                                @for (at, figure) in row.iter().enumerate() {
                                    (cell(*figure, self.has_bars(at).then(|| self.full(row, at))))
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The figure that has the longest bar on the scale of column `at` in `row`.
    fn full(&self, row: &[Option<f64>], at: usize) -> f64 {
        let longest = |row: &[Option<f64>]| {
            let drawn = row.iter().enumerate().filter(|(at, _)| self.has_bars(*at));
            drawn.filter_map(|(_, figure)| *figure).fold(0.0, f64::max)
        };
        match self.scale {
            Scale::Column => self.rows.iter().filter_map(|(_, row)| row[at]).fold(0.0, f64::max),
            Scale::Row => longest(row),
            Scale::Table => self.rows.iter().map(|(_, row)| longest(row)).fold(0.0, f64::max),
        }
    }

    fn has_bars(&self, at: usize) -> bool {
        self.without_bars.is_none_or(|name| self.columns[at].0 != name)
    }
}

/// `full` has the longest bar; without it, there is none.
fn cell(figure: Option<f64>, full: Option<f64>) -> Markup {
    html! {
        td.bar {
            @if let Some(figure) = figure {
                (short(figure))
                @if let Some(full) = full {
                    i style=(format!("width:{:.1}px", share(figure, full) * LONGEST)) {}
                } @else {
                    i.none {}
                }
            } @else {
                "-" i.none {}
            }
        }
    }
}

fn share(figure: f64, full: f64) -> f64 {
    if full > 0.0 { (figure / full).clamp(0.0, 1.0) } else { 0.0 }
}

/// A ratio with its interval.
pub struct RatioBar {
    pub name: String,
    pub ink: Ink,
    pub ratio: f64,
    /// Bounds of the interval, if there is one.
    pub interval: Option<(f64, f64)>,
}

/// Height of a bar with its margin, in pixels.
const ROW: u32 = 20;
/// Room for the title of the axis and its ticks.
const BOTTOM: u32 = 44;
/// Room for the numbers behind the bars.
const RIGHT: u32 = 58;
/// Room for the bars at least, however long their names are.
const BARS: u32 = 200;

/// Bars that begin at 1, on a logarithmic axis, from top to bottom, as an SVG element.
///
/// # Errors
/// Whatever the drawing library reports.
pub fn ratio_bars(title: &str, bars: &[RatioBar]) -> Result<String> {
    let mut svg = String::new();
    draw_ratios(&mut svg, title, bars).map_err(|error| format!("cannot draw {title}: {error}"))?;
    Ok(svg)
}

fn draw_ratios(
    svg: &mut String,
    title: &str,
    bars: &[RatioBar],
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let bounds = |bar: &RatioBar| bar.interval.unwrap_or((bar.ratio, bar.ratio));
    // Half and double are always there, so that a difference of a few percent looks like one.
    let values = bars.iter().flat_map(|bar| [bar.ratio, bounds(bar).0, bounds(bar).1]).chain([0.5, 2.0]);
    let x = Axis::log(title, values);
    let rows = bars.len() as f64;
    let y = Axis::named("", &bars.iter().rev().map(|bar| bar.name.clone()).collect::<Vec<_>>());
    let left = bars.iter().map(|bar| bar.name.len() as u32).max().unwrap_or(0) * LETTER_WIDTH + 10;
    let size = (WIDTH.max(left + BARS + RIGHT), bars.len() as u32 * ROW + BOTTOM + 4);
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(4)
        .margin_right(RIGHT)
        .x_label_area_size(BOTTOM)
        .y_label_area_size(left)
        .build_cartesian_2d(&x, &y)?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .disable_y_mesh()
        .axis_style(BLACK)
        .label_style(("sans-serif", LETTER))
        .axis_desc_style(("sans-serif", LETTER))
        .x_desc(&x.title)
        .draw()?;
    let place = |ratio: f64| x.place(ratio).unwrap_or(x.ends.0);
    for (index, bar) in bars.iter().enumerate() {
        let middle = rows - 1.0 - index as f64;
        let corners = [(place(1.0), middle - 0.32), (place(bar.ratio), middle + 0.32)];
        chart.draw_series([Rectangle::new(corners, bar.ink.colour().mix(BAR_OPACITY).filled())])?;
        let (low, high) = (place(bounds(bar).0), place(bounds(bar).1));
        let whisker = [
            (low, high, middle, middle),
            (low, low, middle - 0.2, middle + 0.2),
            (high, high, middle - 0.2, middle + 0.2),
        ];
        chart.draw_series(whisker.map(|(from, to, top, bottom)| {
            PathElement::new(vec![(from, top), (to, bottom)], BLACK.stroke_width(1))
        }))?;
        let end = high.max(place(1.0)).max(place(bar.ratio));
        // A little to the right of all that belongs to the bar, in pixels.
        let number = Text::new(format!("{:.2}", bar.ratio), (6, -6), ("sans-serif", LETTER).into_font());
        chart.draw_series([EmptyElement::at((end, middle)) + number])?;
    }
    chart.draw_series([PathElement::new(
        vec![(place(1.0), -0.5), (place(1.0), rows - 0.5)],
        BLACK.stroke_width(2),
    )])?;
    root.present()
}
