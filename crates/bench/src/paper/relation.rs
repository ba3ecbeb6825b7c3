//! Relations: claims of the papers as checks on numbers, each with its bounds.

use std::ops::RangeInclusive;

use super::record::Relation;

impl Relation {
    /// The claim that a measured number lies in `bounds`; `claim` is what the paper says.
    #[must_use]
    pub fn within(name: &str, claim: &str, bounds: RangeInclusive<f64>, measured: f64) -> Self {
        let judged = match (bounds.start().is_finite(), bounds.end().is_finite()) {
            (true, true) => format!("{:.3} to {:.3}", bounds.start(), bounds.end()),
            (true, false) => format!("at least {:.3}", bounds.start()),
            (false, _) => format!("at most {:.3}", bounds.end()),
        };
        Self {
            name: name.into(),
            expected: format!("{claim}; judged by: {judged}"),
            measured: format!("{measured:.3}"),
            holds: bounds.contains(&measured),
        }
    }

    /// The claim that each of `measured` is below the one before it.
    #[must_use]
    pub fn falling(name: &str, claim: &str, measured: &[f64]) -> Self {
        let text: Vec<String> = measured.iter().map(|number| format!("{number:.1}")).collect();
        Self {
            name: name.into(),
            expected: format!("{claim}; judged by: each below the one before it"),
            measured: text.join(", "),
            holds: measured.is_sorted_by(|before, after| before > after),
        }
    }
}

/// The exponent `e` by which the second coordinates follow the first ones as `x^e`: the slope of the least squares' line
/// through the logarithms. Not a number where there are fewer than two points, or one that is not positive.
#[must_use]
pub fn exponent(points: &[[f64; 2]]) -> f64 {
    let count = points.len() as f64;
    let logs: Vec<[f64; 2]> = points.iter().map(|point| point.map(f64::ln)).collect();
    let mean = |at: usize| logs.iter().map(|log| log[at]).sum::<f64>() / count;
    let (x, y) = (mean(0), mean(1));
    let covariance: f64 = logs.iter().map(|log| (log[0] - x) * (log[1] - y)).sum();
    covariance / logs.iter().map(|log| (log[0] - x).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_bounds_does_not_hold() {
        let relation = |measured| Relation::within("r", "about 2", 1.5..=2.5, measured);
        assert!(relation(2.0).holds && !relation(2.6).holds && !relation(f64::NAN).holds);
        assert_eq!(relation(2.0).expected, "about 2; judged by: 1.500 to 2.500");
        assert!(Relation::within("r", "more", 3.0..=f64::INFINITY, 4.0).holds);
        assert!(!Relation::within("r", "less", f64::NEG_INFINITY..=3.0, 4.0).holds);
        assert!(Relation::falling("r", "falls", &[3.0, 2.0, 1.0]).holds);
        assert!(!Relation::falling("r", "falls", &[3.0, 3.0, 1.0]).holds);
    }

    #[test]
    fn the_exponent_of_a_power_is_found() {
        let points: Vec<[f64; 2]> = (1..6).map(|x| [f64::from(x), 7.0 * f64::from(x).powf(-0.75)]).collect();
        assert!((exponent(&points) + 0.75).abs() < 1e-9);
        assert!(exponent(&points[..1]).is_nan());
    }
}
