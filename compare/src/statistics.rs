//! Medians, geometric means, and how sure one can be of them.

use terrace_bench::generator::Rng;

/// Samples that an interval is drawn from.
const RESAMPLES: usize = 10_000;

/// A geometric mean and the interval that holds 95 % of those of resampled rounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// The middle one, or the mean of the middle two; not a number when there are none.
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The geometric mean of positive figures; not a number when there are none.
pub fn geometric_mean(figures: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) =
        figures.into_iter().fold((0.0, 0_u32), |(sum, count), figure| (sum + figure.ln(), count + 1));
    (sum / f64::from(count)).exp()
}

/// The geometric mean of `ratios` and its 95 % interval by bootstrap; `None` when there are none. Of one ratio the interval
/// is that ratio: nothing is known of how it varies.
pub fn bootstrap(ratios: &[f64], seed: u64) -> Option<Interval> {
    if ratios.is_empty() {
        return None;
    }
    let mut rng = Rng::new(seed);
    let mut draw = || {
        let resample = (0..ratios.len()).map(|_| ratios[rng.below(ratios.len() as u64) as usize]);
        geometric_mean(resample)
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| draw()).collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((RESAMPLES - 1) as f64 * share).round() as usize];
    Some(Interval { mean: geometric_mean(ratios.iter().copied()), low: at(0.025), high: at(0.975) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 2.0, 9.0]) - 3.0).abs() < 1e-12);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn halves_and_doubles_cancel() {
        assert!((geometric_mean([0.5, 2.0]) - 1.0).abs() < 1e-12);
        assert!(geometric_mean([]).is_nan());
    }

    #[test]
    fn intervals_hold_the_mean_and_narrow_with_agreement() {
        let wide = bootstrap(&[1.0, 2.0, 4.0, 2.0], 1).unwrap();
        assert!((wide.mean - 2.0).abs() < 1e-12);
        assert!(wide.low < wide.mean && wide.mean < wide.high && wide.low >= 1.0 && wide.high <= 4.0);
        let narrow = bootstrap(&[1.9, 2.0, 2.1, 2.0], 1).unwrap();
        assert!(narrow.high - narrow.low < wide.high - wide.low);
        assert_eq!(bootstrap(&[1.0, 2.0], 5), bootstrap(&[1.0, 2.0], 5), "it follows from the seed");
    }

    /// The standard error of log-normal ratios, which the bootstrap knows nothing of.
    #[test]
    fn intervals_are_as_wide_as_theory_says() {
        let mut rng = Rng::new(3);
        let normal = |rng: &mut Rng| (0..12).map(|_| rng.next_f64()).sum::<f64>() - 6.0;
        let ratios: Vec<f64> = (0..400).map(|_| (0.5 * normal(&mut rng)).exp()).collect();
        let interval = bootstrap(&ratios, 1).unwrap();
        let half = 1.96 * 0.5 / 20.0;
        let got = (interval.high.ln() - interval.low.ln()) / 2.0;
        assert!((got / half - 1.0).abs() < 0.15, "{got}, expected {half}");
    }

    #[test]
    fn one_round_is_its_own_interval() {
        assert_eq!(bootstrap(&[1.5], 1).map(|one| (one.low, one.high)), Some((1.5, 1.5)));
        assert_eq!(bootstrap(&[], 1), None);
    }
}
