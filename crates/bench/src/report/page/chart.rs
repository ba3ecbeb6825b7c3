//! Line charts, with rows of marks under them that share the horizontal axis.

use std::collections::BTreeMap;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::ink::{Ink, MARK, Mark};
use crate::Result;

pub const WIDTH: u32 = 560;
/// Height of the lines with their axes at least, however short the title of the vertical axis is.
const HEIGHT_MIN: u32 = 230;
/// Room for the vertical axis at least, however short the names of the rows are.
const LEFT_MIN: u32 = 66;
/// Width of a wide letter of such a name, and what is beside the name.
const NAME_LETTER: u32 = 8;
const NAME_MARGIN: u32 = 10;
/// Room beside the title of the vertical axis, whose letters are higher than the drawing library believes.
const MARGIN_LEFT: u32 = 3;
const TOP: u32 = 10;
/// Room to the right at least: for the half of a label of seven letters below the end of the lines.
const RIGHT_MIN: u32 = 26;
const BOTTOM: u32 = 40;
const LANE: u32 = 13;
pub const GRID: RGBColor = RGBColor(218, 218, 218);

/// A line with so few points shows each of them.
const DOTS_MAX: usize = 14;

/// Marks on a line of more points, at most.
const MARKS_MAX: usize = 8;

/// Height of the letters in pixels, and their average width.
pub const LETTER: u32 = 14;
pub const LETTER_WIDTH: u32 = 7;

/// A chart.
pub struct Chart {
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    pub lanes: Vec<Lane>,
}

/// A line; points that have no place on the axes are left out.
pub struct Line {
    pub ink: Ink,
    pub points: Vec<(f64, f64)>,
}

/// A row of marks under a chart.
pub struct Lane {
    pub name: String,
    pub ink: Ink,
    /// From, to.
    pub marks: Vec<(f64, f64)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<T> = Result<T, DrawingAreaErrorKind<std::io::Error>>;

impl Chart {
    /// The chart as an SVG element.
    ///
    /// # Errors
    /// Whatever the drawing library reports.
    pub fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|error| format!("cannot draw {}: {error}", self.y.title))?;
        Ok(svg)
    }

    /// Room to the left of the lines and the rows.
    fn left(&self) -> u32 {
        let longest = self.lanes.iter().map(|lane| lane.name.len() as u32).max().unwrap_or(0);
        LEFT_MIN.max(longest * NAME_LETTER + NAME_MARGIN)
    }

    /// Room to the right of the lines: for what the last label below them does not find before their end.
    fn right(&self) -> u32 {
        let (begin, end) = self.x.ends;
        let Some((place, words)) = self.x.ticks.last() else { return RIGHT_MIN };
        let pixels = f64::from(WIDTH - self.left() - RIGHT_MIN);
        let before_the_end = ((end - place) / (end - begin) * pixels) as u32;
        RIGHT_MIN.max((words.len() as u32 * LETTER_WIDTH / 2).saturating_sub(before_the_end))
    }

    /// Height of the lines with their axes: the title of the vertical one is centred beside the lines.
    fn height(&self) -> u32 {
        HEIGHT_MIN.max(self.y.title.len() as u32 * LETTER_WIDTH + BOTTOM)
    }

    fn draw(&self, svg: &mut String) -> Drawn<()> {
        let lanes = self.lanes.len() as u32 * LANE;
        let root = SVGBackend::with_string(svg, (WIDTH, self.height() + lanes)).into_drawing_area();
        let (lines, lanes) = root.split_vertically(self.height());
        let mut chart = ChartBuilder::on(&lines)
            .margin_top(TOP)
            .margin_left(MARGIN_LEFT)
            .margin_right(self.right())
            .x_label_area_size(BOTTOM)
            .y_label_area_size(self.left() - MARGIN_LEFT)
            .build_cartesian_2d(&self.x, &self.y)?;
        chart
            .configure_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(BLACK)
            .label_style(("sans-serif", LETTER))
            .axis_desc_style(("sans-serif", LETTER))
            .x_desc(&self.x.title)
            .y_desc(&self.y.title)
            .draw()?;
        for line in &self.lines {
            let places = line.points.iter().filter_map(|(x, y)| Some((self.x.place(*x)?, self.y.place(*y)?)));
            let (points, colour): (Vec<_>, _) = (places.collect(), line.ink.colour());
            let style = colour.stroke_width(2);
            chart.draw_series(LineSeries::new(without_repeats(points.clone()), style))?;
            let at = marked(&points, line.ink);
            match line.ink.mark() {
                None if points.len() > DOTS_MAX => {}
                None => {
                    chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, colour.filled())))?;
                }
                Some(Mark::Square) => {
                    let square = |point| {
                        let corners = [(-MARK, -MARK), (MARK, MARK)];
                        EmptyElement::at(point) + Rectangle::new(corners, colour.filled())
                    };
                    chart.draw_series(at.map(square))?;
                }
                Some(Mark::Triangle) => {
                    chart
                        .draw_series(at.map(|point| TriangleMarker::new(point, MARK + 1, colour.filled())))?;
                }
                Some(Mark::Ring) => {
                    chart.draw_series(at.clone().map(|point| Circle::new(point, MARK, WHITE.filled())))?;
                    chart.draw_series(at.map(|point| Circle::new(point, MARK, style)))?;
                }
                Some(Mark::Cross) => {
                    chart.draw_series(at.map(|point| Cross::new(point, MARK, style)))?;
                }
            }
        }
        self.draw_lanes(&lanes)?;
        root.present()
    }

    /// A pixel of a lane is marked if anything went on in its time.
    fn draw_lanes(&self, area: &Area) -> Drawn<()> {
        let (left, right) = (self.left(), self.right());
        let pixels = f64::from(WIDTH - left - right);
        let (low, high) = self.x.ends;
        let pixel = |value: f64| {
            let place = self.x.place(value).unwrap_or(low);
            left as i32 + ((place - low) / (high - low) * pixels).floor() as i32
        };
        let style = ("sans-serif", LETTER).into_text_style(area).pos(Pos::new(HPos::Right, VPos::Center));
        for (row, lane) in self.lanes.iter().enumerate() {
            let (top, middle) = (row as i32 * LANE as i32, row as i32 * LANE as i32 + LANE as i32 / 2);
            area.draw(&Text::new(lane.name.clone(), (left as i32 - 6, middle), style.clone()))?;
            let ends = (left as i32, (WIDTH - right) as i32);
            area.draw(&PathElement::new(vec![(ends.0, middle), (ends.1, middle)], GRID))?;
            let spans = lane.marks.iter().map(|(from, to)| (pixel(*from), pixel(*to) + 1));
            for (from, to) in united(spans.collect()) {
                let corners = [(from, top + 2), (to, top + LANE as i32 - 2)];
                area.draw(&Rectangle::new(corners, lane.ink.colour().filled()))?;
            }
        }
        Ok(())
    }
}

/// Points of a line that have its mark: all of a few, some of many, other ones for each ink.
fn marked(points: &[(f64, f64)], ink: Ink) -> impl Iterator<Item = (f64, f64)> + Clone {
    let step = if points.len() <= DOTS_MAX { 1 } else { points.len().div_ceil(MARKS_MAX) };
    points.iter().copied().skip(ink.0 * 3 % step).step_by(step)
}

/// Points within a level stretch of a line add nothing to it.
fn without_repeats(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let is_within = |index: usize| {
        index > 0
            && points
                .get(index + 1)
                .is_some_and(|next| points[index - 1].1 == points[index].1 && points[index].1 == next.1)
    };
    (0..points.len()).filter(|&index| !is_within(index)).map(|index| points[index]).collect()
}

/// Ranges without overlaps that cover the same.
fn united(ranges: Vec<(i32, i32)>) -> Vec<(i32, i32)> {
    let mut by_start: BTreeMap<i32, i32> = BTreeMap::new();
    for (from, to) in ranges {
        let end = by_start.entry(from).or_insert(to);
        *end = to.max(*end);
    }
    let mut united: Vec<(i32, i32)> = Vec::new();
    for (from, to) in by_start {
        match united.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => united.push((from, to)),
        }
    }
    united
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_united_where_they_overlap() {
        assert_eq!(united(vec![(5, 7), (1, 3), (2, 4), (4, 5), (9, 10)]), [(1, 7), (9, 10)]);
    }

    #[test]
    fn level_stretches_keep_their_ends() {
        let points = vec![(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 2.0), (4.0, 2.0)];
        assert_eq!(without_repeats(points), [(0.0, 1.0), (2.0, 1.0), (3.0, 2.0), (4.0, 2.0)]);
    }

    /// The number behind `name="`, in the text from `from` on.
    fn number(svg: &str, from: &str, name: &str) -> f64 {
        let rest = svg.split_once(from).unwrap().1;
        let rest = rest.split_once(&format!("{name}=\"")).unwrap().1;
        rest.split(['"', ',', ' ']).next().unwrap().parse().unwrap()
    }

    #[test]
    fn rows_are_aligned_with_the_lines_above_them() {
        for (from, to) in [(0.0, 9.7), (2.0, 6.0), (9.0, 9.5)] {
            let chart = Chart {
                x: Axis::time([9.7]),
                y: Axis::linear("", [5.0]),
                lines: vec![Line { ink: Ink(1), points: vec![(from, 1.0), (to, 2.0)] }],
                lanes: vec![Lane { name: "compaction".to_owned(), ink: Ink(1), marks: vec![(from, to)] }],
            };
            let svg = chart.svg().unwrap();
            // Dots stand on both points of the line; the mark is the last rectangle.
            let dots: Vec<&str> = svg.match_indices("<circle").map(|(at, _)| &svg[at..]).collect();
            let mark = &svg[svg.rfind("<rect").unwrap()..];
            let (left, width) = (number(mark, "<rect", " x"), number(mark, "<rect", " width"));
            assert!((number(dots[0], "<circle", "cx") - left).abs() <= 1.0, "{svg}");
            assert!((number(dots[1], "<circle", "cx") - (left + width)).abs() <= 2.0, "{svg}");
        }
    }

    #[test]
    fn marks_stand_on_points_of_their_line_and_not_on_all_of_many() {
        let points: Vec<(f64, f64)> = (0..80).map(|at| (f64::from(at), 1.0)).collect();
        let of = |ink: usize| marked(&points, Ink(ink)).collect::<Vec<_>>();
        assert!(of(8).len() == MARKS_MAX && of(8).iter().all(|point| points.contains(point)));
        assert_ne!(of(8), of(9));
        assert_eq!(marked(&points[..DOTS_MAX], Ink(9)).count(), DOTS_MAX);
    }

    #[test]
    fn lines_beyond_the_eighth_have_marks() {
        let svg = |ink: usize| {
            let points = (0..40).map(|at| (f64::from(at), f64::from(at % 3))).collect();
            let lines = vec![Line { ink: Ink(ink), points }];
            Chart { x: Axis::time([40.0]), y: Axis::linear("", [3.0]), lines, lanes: Vec::new() }
                .svg()
                .unwrap()
        };
        let count = |ink, shape: &str| svg(ink).matches(shape).count();
        assert_eq!(count(8, "<rect"), count(7, "<rect") + MARKS_MAX);
        assert_eq!(count(16, "<polygon"), count(0, "<polygon") + MARKS_MAX);
        assert_eq!(count(24, "<circle"), 2 * MARKS_MAX);
        assert_eq!(count(32, "<line"), count(0, "<line") + 2 * MARKS_MAX);
    }

    #[test]
    fn chart_has_its_lines_lanes_and_words() {
        let chart = Chart {
            x: Axis::time([10.0]),
            y: Axis::linear("thousand operations/s", [5.0]),
            lines: vec![Line {
                ink: Ink(1),
                points: (0..20).map(|at| (f64::from(at), 3.0 + f64::from(at % 2))).collect(),
            }],
            lanes: vec![Lane { name: "flush".to_owned(), ink: Ink(1), marks: vec![(1.0, 2.0)] }],
        };
        let svg = chart.svg().unwrap();
        assert_eq!(
            svg.matches("<polyline fill=\"none\" opacity=\"1\" stroke=\"#0072B2\"").count(),
            1,
            "{svg}"
        );
        assert!(svg.contains("<rect") && svg.contains("flush"), "{svg}");
        assert!(svg.contains("thousand operations/s") && svg.contains("time, s"), "{svg}");
    }
}
