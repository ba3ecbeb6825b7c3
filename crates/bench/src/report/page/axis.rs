//! Axes: from values to positions on them, and the ticks with their labels.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// Largest number of intervals between the ticks of a linear axis.
const STEPS_MAX: f64 = 6.0;

/// One axis of a chart.
pub struct Axis {
    /// What is measured, and its unit.
    pub title: String,
    scale: Scale,
    /// Places of both ends.
    pub ends: (f64, f64),
    /// Places and words of the ticks.
    pub ticks: Vec<(f64, String)>,
}

#[derive(Clone, Copy)]
enum Scale {
    Linear,
    /// Decimal logarithm.
    Log,
    /// From a quantile to the decimal logarithm of 1 / (1 - quantile): each nine is as long as the one before.
    Nines,
}

impl Axis {
    /// From 0, or the least value if that is below, to at least the greatest of `values`, evenly.
    pub fn linear(title: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = extremes(values, (0.0, 0.0));
        let high = if high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / STEPS_MAX);
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let ticks: Vec<_> =
            (first..=last).map(|tick| (tick as f64 * step, number(tick as f64 * step, step))).collect();
        Self {
            title: title.to_owned(),
            scale: Scale::Linear,
            ends: (first as f64 * step, last as f64 * step),
            ticks,
        }
    }

    /// Seconds from 0 to the longest of `seconds`, without a margin.
    pub fn time(seconds: impl IntoIterator<Item = f64>) -> Self {
        let (_, end) = extremes(seconds, (0.0, 0.0));
        let mut axis = Self::linear("time, s", [end]);
        if end > 0.0 {
            axis.ends.1 = end;
            axis.ticks.retain(|(place, _)| *place <= end);
        }
        axis
    }

    /// All of `values` that are above 0, logarithmically: ticks at whole decades, or at 1, 2 and 5 where few of these fit.
    pub fn log(title: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let positive = values.into_iter().filter(|value| *value > 0.0 && value.is_finite());
        let (low, high) = extremes(positive, (f64::INFINITY, 0.0));
        let (low, high) = if low <= high { (low.log10(), high.log10()) } else { (0.0, 1.0) };
        let is_wide = high - low > 3.0;
        let digits: &[f64] = if is_wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let decades = low.floor() as i32..=high.ceil() as i32;
        let all: Vec<f64> =
            decades.flat_map(|decade| digits.iter().map(move |digit| digit * 10_f64.powi(decade))).collect();
        // A value on a tick needs no further one, whatever its logarithm was rounded to.
        let place = |tick: &f64| tick.log10();
        let first = all.iter().rposition(|tick| place(tick) <= low + 1e-9).unwrap_or(0);
        let last = all.iter().position(|tick| place(tick) >= high - 1e-9).unwrap_or(all.len() - 1);
        let ticks: Vec<_> =
            all[first..=last.max(first)].iter().map(|tick| (place(tick), short(*tick))).collect();
        let (low, high) = (ticks[0].0, ticks[ticks.len() - 1].0);
        let high = if high > low { high } else { low + 1.0 };
        Self { title: title.to_owned(), scale: Scale::Log, ends: (low, high), ticks }
    }

    /// Quantiles from the median's half to the greatest of `quantiles` below 1, each nine as long as the one before.
    pub fn nines(quantiles: impl IntoIterator<Item = f64>) -> Self {
        let (_, high) = extremes(quantiles.into_iter().filter(|quantile| *quantile < 1.0), (0.0, 0.9));
        let high = Scale::Nines.place(high);
        let mut ticks = vec![(0.0, "0".to_owned()), (Scale::Nines.place(0.5), "50".to_owned())];
        let nines = (1..=high.floor() as usize).map(|nines| {
            let words = match nines {
                1 => "90".to_owned(),
                2 => "99".to_owned(),
                _ => format!("99.{}", "9".repeat(nines - 2)),
            };
            (nines as f64, words)
        });
        ticks.extend(nines);
        Self { title: "percentile".to_owned(), scale: Scale::Nines, ends: (0.0, high), ticks }
    }

    /// One place for each name.
    pub fn named(title: &str, names: &[String]) -> Self {
        let ticks = names.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect();
        let ends = (-0.5, names.len().max(1) as f64 - 0.5);
        Self { title: title.to_owned(), scale: Scale::Linear, ends, ticks }
    }

    /// Where `value` is; none if it has no place on this axis.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = self.scale.place(value);
        place.is_finite().then(|| place.clamp(self.ends.0, self.ends.1))
    }
}

/// To the drawing library, the coordinates are the places.
impl Ranged for &Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (first, last): (i32, i32)) -> i32 {
        let (low, high) = self.ends;
        first + ((place - low) / (high - low) * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Fine ticks, without words, are not wanted.
        let is_coarse = !hint.weight().allow_light_points();
        self.ticks.iter().filter(|_| is_coarse).map(|(place, _)| *place).collect()
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

impl ValueFormatter<f64> for &Axis {
    fn format_ext(&self, place: &f64) -> String {
        let tick = self.ticks.iter().find(|(tick, _)| tick == place);
        tick.map_or_else(String::new, |(_, words)| words.clone())
    }
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.log10(),
            Self::Nines => -(1.0 - value).log10(),
        }
    }
}

fn extremes(values: impl IntoIterator<Item = f64>, start: (f64, f64)) -> (f64, f64) {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.fold(start, |(low, high), value| (low.min(value), high.max(value)))
}

/// The least of 1, 2 and 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let decade = 10_f64.powf(step.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * decade >= step * 0.999_999);
    digit.unwrap_or(10.0) * decade
}

/// `value` with the digits that tell multiples of `step` apart.
fn number(value: f64, step: f64) -> String {
    if step >= 1000.0 {
        return short(value);
    }
    let digits = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.digits$}")
}

/// A round number in a few characters: 0.05, 20, 5k, 2M.
pub fn short(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(unit, _)| value.abs() >= *unit * 0.999_999) {
        Some((unit, name)) => format!("{}{name}", figure(value / unit)),
        None => figure(value),
    }
}

/// Three significant digits, or all before the point, without zeros behind it.
pub fn figure(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 100.0 || value == 0.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        value => 2 + (-value.log10()).ceil().min(12.0) as usize,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, words)| words.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_hold_all_values() {
        let axis = Axis::linear("", [3.0, 41.0]);
        assert_eq!(words(&axis), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(words(&Axis::linear("", [0.31])), ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(words(&Axis::linear("", [250_000.0])), ["0", "50k", "100k", "150k", "200k", "250k"]);
        assert_eq!(words(&Axis::linear("", [-1.0, 1.0])), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(words(&Axis::linear("", [])).first(), Some(&"0.0"));
    }

    #[test]
    fn log_ticks_are_decades_or_finer() {
        assert_eq!(words(&Axis::log("", [3.0, 90_000.0])), ["1", "10", "100", "1k", "10k", "100k"]);
        assert_eq!(words(&Axis::log("", [0.0, 12.0, 45.0])), ["10", "20", "50"]);
        assert_eq!(words(&Axis::log("", [10.0, 1000.0])), ["10", "20", "50", "100", "200", "500", "1k"]);
        assert!(words(&Axis::log("", [])).len() > 1);
        assert_eq!(Axis::log("", [1.0, 10.0]).place(0.0), None);
    }

    #[test]
    fn each_nine_is_as_long_as_the_one_before() {
        let axis = Axis::nines([0.5, 0.99995, 1.0]);
        assert_eq!(words(&axis), ["0", "50", "90", "99", "99.9", "99.99"]);
        let place = |quantile| axis.place(quantile).unwrap();
        assert!((place(0.999) - place(0.99) - (place(0.99) - place(0.9))).abs() < 1e-9);
        assert_eq!(axis.place(1.0), None);
    }

    #[test]
    fn short_numbers_keep_their_digits() {
        let shown = [0.0, 0.05, 1.5, 123.4, 20_000.0, 1_500_000.0].map(short);
        assert_eq!(shown, ["0", "0.05", "1.5", "123", "20k", "1.5M"]);
    }
}
