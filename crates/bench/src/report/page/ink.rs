//! What tells series apart: a colour, and a pattern of dashes that does so without colour.

use maud::{Markup, html};
use plotters::style::RGBColor;

/// Colours of Okabe and Ito's palette, which the colour-blind can tell apart, without its yellow, which is too light for
/// lines on white; each with its dashes.
const INKS: [(RGBColor, &str); 8] = [
    (RGBColor(0, 0, 0), "none"),
    (RGBColor(0, 114, 178), "7 3"),
    (RGBColor(213, 94, 0), "2 2"),
    (RGBColor(0, 158, 115), "9 3 2 3"),
    (RGBColor(204, 121, 167), "4 4"),
    (RGBColor(230, 159, 0), "14 3"),
    (RGBColor(86, 180, 233), "1 3"),
    (RGBColor(110, 110, 110), "14 3 2 3 2 3"),
];

/// Bars let what is drawn over them be seen.
pub const BAR_OPACITY: f64 = 0.55;

/// The ink of one series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ink(pub usize);

impl Ink {
    /// Inks that can be told apart.
    pub const COUNT: usize = INKS.len();

    /// Its colour; inks are used again where there are more series.
    pub fn colour(self) -> RGBColor {
        INKS[self.0 % INKS.len()].0
    }

    fn hex(self) -> String {
        let RGBColor(red, green, blue) = self.colour();
        format!("#{red:02X}{green:02X}{blue:02X}")
    }
}

/// The rules of the style sheet by which lines of a colour have its dashes.
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
        html! { line.key x1="0" y1="4" x2="34" y2="4" stroke=(ink.hex()) stroke-width="2.5" {} }
    })
}

/// What each ink stands for among bars.
pub fn legend_of_bars<'a>(entries: impl IntoIterator<Item = (Ink, &'a str)>) -> Markup {
    keys(entries, |ink| {
        html! { rect width="34" height="8" fill=(ink.hex()) opacity=(BAR_OPACITY) {} }
    })
}

fn keys<'a>(entries: impl IntoIterator<Item = (Ink, &'a str)>, key: impl Fn(Ink) -> Markup) -> Markup {
    html! {
        div.legend {
            @for (ink, name) in entries {
                span { svg width="34" height="8" { (key(ink)) } " " (name) }
            }
        }
    }
}
