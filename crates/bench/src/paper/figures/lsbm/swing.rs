//! How a hit ratio swings: falls and rises, counted by a rule.
//!
//! A fall counts if it is of at least [`FALL`] points and comes after a rise by as much. The first [`COLD_SAMPLES`] samples, while
//! the cache fills, are not judged.

use crate::paper::record::Relation;

/// A fall of the hit ratio that counts, in points of a hundred.
pub(super) const FALL: f64 = 5.0;

/// The first part of the samples, while the cache fills, is not judged.
pub(super) const COLD_SAMPLES: usize = 50;

/// How the points fall and rise once the cache is warm.
pub(super) struct Swing {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Falls by at least [`FALL`], each after a rise by as much.
    pub(super) falls: usize,
    /// Coordinates that the points span.
    pub(super) span: f64,
    /// Mean of the points, and their standard deviation over it.
    pub(super) mean: f64,
    pub(super) variation: f64,
}

impl Swing {
    pub(super) fn of(points: &[[f64; 2]]) -> Self {
        let warm = points.get(COLD_SAMPLES..).unwrap_or_default();
        let low = warm.iter().map(|point| point[1]).fold(f64::INFINITY, f64::min);
        let high = warm.iter().map(|point| point[1]).fold(f64::NEG_INFINITY, f64::max);
        let (mut falls, mut is_falling) = (0, false);
        let mut turn = warm.first().map_or(0.0, |point| point[1]);
        for &[_, value] in warm {
            // The turning point follows the line until that has come back by a fall.
            turn = if is_falling { value.min(turn) } else { value.max(turn) };
            if !is_falling && turn - value >= FALL {
                (falls, is_falling, turn) = (falls + 1, true, value);
            } else if is_falling && value - turn >= FALL {
                (is_falling, turn) = (false, value);
            }
        }
        let span = warm.last().map_or(0.0, |last| last[0]) - warm.first().map_or(0.0, |first| first[0]);
        let count = warm.len().max(1) as f64;
        let mean = warm.iter().map(|point| point[1]).sum::<f64>() / count;
        let squares: f64 = warm.iter().map(|point| (point[1] - mean).powi(2)).sum();
        Self { low, high, falls, span, mean, variation: (squares / count).sqrt() / mean }
    }

    /// That it swings at all, which both figures show.
    pub(super) fn relations(&self) -> Vec<Relation> {
        let band = self.high - self.low;
        vec![
            Relation::within("band of the hit ratio", "goes up and down", FALL..=f64::INFINITY, band),
            Relation::within(
                "falls of the hit ratio by 5 points or more",
                "again and again",
                3.0..=f64::INFINITY,
                self.falls as f64,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swing(values: impl Iterator<Item = f64>) -> Swing {
        let cold = (0..COLD_SAMPLES).map(|_| 0.0);
        let points: Vec<[f64; 2]> =
            (0_u32..).map(f64::from).zip(cold.chain(values)).map(|(x, y)| [x, y]).collect();
        Swing::of(&points)
    }

    #[test]
    fn falls_of_a_saw_tooth_are_counted_and_small_ones_are_not() {
        let saw = swing((0..60).map(|at| f64::from(at % 10)));
        assert_eq!((saw.falls, saw.low, saw.high, saw.span), (5, 0.0, 9.0, 59.0));
        let ripple = swing((0..60).map(|at| f64::from(at % 5)));
        assert_eq!(ripple.falls, 0);
        assert_eq!(swing((0..60).map(|_| 97.0)).falls, 0);
    }
}
