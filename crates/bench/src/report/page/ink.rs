//! Inks: how series are distinguished. Each has a colour, a pattern of dashes and, beyond the first eight, a mark;
//! dashes and marks suffice without colour.

use maud::{Markup, html};
use plotters::style::RGBColor;

/// Inks without marks.
const PLAIN: usize = 8;

/// First, colours of Okabe and Ito's palette, which the colour-blind can tell apart, without its yellow, which is too light
/// for lines on white; then as many of Tol's muted and dark ones. Each with its dashes.
const INKS: [(RGBColor, &str); 2 * PLAIN] = [
    (RGBColor(0, 0, 0), "none"),
    (RGBColor(0, 114, 178), "7 3"),
    (RGBColor(213, 94, 0), "2 2"),
    (RGBColor(0, 158, 115), "9 3 2 3"),
    (RGBColor(204, 121, 167), "4 4"),
    (RGBColor(230, 159, 0), "14 3"),
    (RGBColor(86, 180, 233), "1 3"),
    (RGBColor(110, 110, 110), "14 3 2 3 2 3"),
    (RGBColor(136, 34, 85), "none"),
    (RGBColor(51, 34, 136), "7 3"),
    (RGBColor(153, 153, 51), "2 2"),
    (RGBColor(17, 119, 51), "9 3 2 3"),
    (RGBColor(170, 68, 153), "4 4"),
    (RGBColor(102, 51, 0), "14 3"),
    (RGBColor(68, 170, 153), "1 3"),
    (RGBColor(204, 102, 119), "14 3 2 3 2 3"),
];

/// Marks of each further eight inks.
const MARKS: [Option<Mark>; 5] =
    [None, Some(Mark::Square), Some(Mark::Triangle), Some(Mark::Ring), Some(Mark::Cross)];

/// Bars let what is drawn over them be seen.
pub const BAR_OPACITY: f64 = 0.55;

/// Half the width of a mark in pixels.
pub const MARK: i32 = 4;

/// What stands on a line here and there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mark {
    Square,
    Triangle,
    Ring,
    Cross,
}

/// The ink of one series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ink(pub usize);

impl Ink {
    /// Number of distinguishable inks. With more series, they are used again.
    pub const COUNT: usize = PLAIN * MARKS.len();

    /// Its colour.
    pub fn colour(self) -> RGBColor {
        INKS[self.0 % INKS.len()].0
    }

    /// Its mark, if it has one.
    pub fn mark(self) -> Option<Mark> {
        MARKS[self.0 % Self::COUNT / PLAIN]
    }

    fn hex(self) -> String {
        let RGBColor(red, green, blue) = self.colour();
        format!("#{red:02X}{green:02X}{blue:02X}")
    }
}

/// The rules of the style sheet by which lines of a colour have its dashes. Marks are outlined without any.
pub fn rules() -> String {
    let rule = |(index, (_, dashes)): (usize, &(RGBColor, &str))| {
        let hex = Ink(index).hex();
        format!("polyline[stroke=\"{hex}\"],line.key[stroke=\"{hex}\"]{{stroke-dasharray:{dashes}}}\n")
    };
    INKS.iter().enumerate().map(rule).collect()
}

/// What each ink stands for among lines.
pub fn legend<'a>(entries: impl IntoIterator<Item = (Ink, &'a str)>) -> Markup {
    keys(entries, |ink| {
        html! {
            line.key x1="0" y1="6" x2="34" y2="6" stroke=(ink.hex()) stroke-width="2.5" {}
            @if let Some(mark) = ink.mark() { (key_of(mark, &ink.hex())) }
        }
    })
}

/// The mark in the middle of a key, as it is on lines.
fn key_of(mark: Mark, hex: &str) -> Markup {
    html! {
        @match mark {
            Mark::Square => rect x="13" y="2" width="8" height="8" fill=(hex) {},
            Mark::Triangle => path d="M17 1L21.5 9.5H12.5Z" fill=(hex) {},
            Mark::Ring => circle cx="17" cy="6" r="4" fill="#fff" stroke=(hex) stroke-width="2" {},
            Mark::Cross => path d="M13 2L21 10M13 10L21 2" stroke=(hex) stroke-width="2" {},
        }
    }
}

/// What each ink stands for among bars.
pub fn legend_of_bars<'a>(entries: impl IntoIterator<Item = (Ink, &'a str)>) -> Markup {
    keys(entries, |ink| {
        html! { rect y="2" width="34" height="8" fill=(ink.hex()) opacity=(BAR_OPACITY) {} }
    })
}

fn keys<'a>(entries: impl IntoIterator<Item = (Ink, &'a str)>, key: impl Fn(Ink) -> Markup) -> Markup {
    html! {
        div.legend {
            @for (ink, name) in entries {
                span { svg width="34" height="12" { (key(ink)) } " " (name) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn inks_differ_in_colour_and_mark_and_without_colour_in_dashes_and_mark() {
        let inks = || (0..Ink::COUNT).map(Ink);
        let in_colour: HashSet<_> = inks().map(|ink| (ink.hex(), ink.mark())).collect();
        assert_eq!(in_colour.len(), Ink::COUNT);
        let dashes = |ink: Ink| INKS[ink.0 % INKS.len()].1;
        let in_grey: HashSet<_> = inks().map(|ink| (dashes(ink), ink.mark())).collect();
        assert_eq!(in_grey.len(), Ink::COUNT);
        // Style sheets choose dashes by the colour.
        let colours: HashSet<_> = (0..INKS.len()).map(|index| Ink(index).hex()).collect();
        assert_eq!(colours.len(), INKS.len());
    }

    #[test]
    fn keys_show_the_marks_of_lines() {
        let key = |index| legend([(Ink(index), "name")]).into_string();
        assert!(!key(7).contains("<rect") && key(8).contains("<rect"));
        assert!(
            key(16).contains("<path")
                && key(24).contains("<circle")
                && key(32).contains("stroke=\"#000000\"")
        );
    }
}
