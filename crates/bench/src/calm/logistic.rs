//! A logistic regression over all signals of a window, judged by blocks of time that it has not seen.
//!
//! 1. The windows are cut into blocks of time, each of neighbours. Neighbours resemble one another, so a window must not be
//!    judged by what was learnt beside it.
//! 2. For each block, weights are fitted to the windows of all others: signals are scaled to mean 0 and deviation 1, and
//!    the penalized likelihood is climbed by Newton's steps.
//! 3. The windows of the block are scored. Pairs of a window with and one without background work are compared within
//!    their block alone, since scores of different fits are not comparable. The share of pairs in which the window with
//!    work scores higher is the AUC.

use super::auc::pairs_won;

/// Penalty of a squared weight; it keeps weights finite where the kinds can be told apart without fail.
const PENALTY: f64 = 1.0;

/// Newton's steps of a fit, at most.
const STEPS_MAX: usize = 50;

/// A step that moves no weight by more ends a fit.
const STEP_MIN: f64 = 1e-9;

/// A window as the regression sees it.
#[derive(Clone, Debug)]
pub struct Example {
    /// Block of time that it is in.
    pub block: usize,
    /// One number for each signal, as many in every window.
    pub signals: Vec<f64>,
    /// Whether background work went on.
    pub with: bool,
}

/// The AUC of a logistic regression, cross-validated by blocks; none where no block has both kinds, or no fit has.
///
/// ```
/// use terrace_bench::calm::{Example, logistic_auc};
///
/// let example = |at: usize| Example { block: at / 10, signals: vec![(at % 2) as f64], with: at % 2 == 1 };
/// let told: Vec<Example> = (0..40).map(example).collect();
/// assert_eq!(logistic_auc(&told), Some(1.0));
/// assert_eq!(logistic_auc(&told[..5]), None);
/// ```
#[must_use]
pub fn logistic_auc(examples: &[Example]) -> Option<f64> {
    let mut blocks: Vec<usize> = examples.iter().map(|example| example.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let (mut won, mut pairs) = (0.0, 0.0);
    for block in blocks {
        let (judged, learnt): (Vec<&Example>, Vec<&Example>) =
            examples.iter().partition(|example| example.block == block);
        let Some(model) = Model::fit(&learnt) else { continue };
        let scores = |with: bool| -> Vec<f64> {
            let of_kind = judged.iter().filter(|example| example.with == with);
            of_kind.map(|example| model.score(&example.signals)).collect()
        };
        let (with, without) = (scores(true), scores(false));
        won += pairs_won(&with, &without);
        pairs += with.len() as f64 * without.len() as f64;
    }
    (pairs > 0.0).then(|| won / pairs)
}

/// A fitted regression.
struct Model {
    means: Vec<f64>,
    deviations: Vec<f64>,
    /// The constant, then one for each signal.
    weights: Vec<f64>,
}

impl Model {
    /// None where `learnt` has only one kind.
    fn fit(learnt: &[&Example]) -> Option<Self> {
        let with = learnt.iter().filter(|example| example.with).count();
        if with == 0 || with == learnt.len() {
            return None;
        }
        let signals = learnt[0].signals.len();
        let count = learnt.len() as f64;
        let mean = |at: usize| learnt.iter().map(|example| example.signals[at]).sum::<f64>() / count;
        let means: Vec<f64> = (0..signals).map(mean).collect();
        let deviation = |at: usize| {
            let squares = learnt.iter().map(|example| (example.signals[at] - means[at]).powi(2));
            let deviation = (squares.sum::<f64>() / count).sqrt();
            // A signal that never changes tells nothing, whatever it is divided by.
            if deviation > 0.0 { deviation } else { 1.0 }
        };
        let deviations: Vec<f64> = (0..signals).map(deviation).collect();
        let mut model = Self { means, deviations, weights: vec![0.0; signals + 1] };
        let rows: Vec<(Vec<f64>, f64)> = learnt
            .iter()
            .map(|example| (model.row(&example.signals), f64::from(u8::from(example.with))))
            .collect();
        for _ in 0..STEPS_MAX {
            let step = newton_step(&rows, &model.weights)?;
            model.weights.iter_mut().zip(&step).for_each(|(weight, step)| *weight += step);
            if step.iter().all(|step| step.abs() < STEP_MIN) {
                break;
            }
        }
        Some(model)
    }

    /// The constant's 1, then the signals, scaled.
    fn row(&self, signals: &[f64]) -> Vec<f64> {
        let scaled = signals.iter().zip(&self.means).zip(&self.deviations);
        let scaled = scaled.map(|((signal, mean), deviation)| (signal - mean) / deviation);
        std::iter::once(1.0).chain(scaled).collect()
    }

    fn score(&self, signals: &[f64]) -> f64 {
        dot(&self.row(signals), &self.weights)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What to add to `weights`: the gradient of the penalized likelihood over its curvature. The constant has no penalty.
fn newton_step(rows: &[(Vec<f64>, f64)], weights: &[f64]) -> Option<Vec<f64>> {
    let size = weights.len();
    let penalty = |at: usize| if at == 0 { 0.0 } else { PENALTY };
    let mut gradient: Vec<f64> = (0..size).map(|at| -penalty(at) * weights[at]).collect();
    let mut curvature = vec![vec![0.0; size]; size];
    for (at, row) in curvature.iter_mut().enumerate() {
        row[at] = penalty(at).max(f64::EPSILON);
    }
    for (row, label) in rows {
        let chance = 1.0 / (1.0 + (-dot(row, weights)).exp());
        for at in 0..size {
            gradient[at] += row[at] * (label - chance);
            for other in 0..size {
                curvature[at][other] += row[at] * row[other] * chance * (1.0 - chance);
            }
        }
    }
    solve(curvature, gradient)
}

/// The solution of `matrix` x = `right`, by elimination with pivots; none where there is no single one.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    for column in 0..size {
        let pivot =
            (column..size).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        if matrix[pivot][column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..size {
            let factor = matrix[row][column] / matrix[column][column];
            let pivot_row = matrix[column].clone();
            matrix[row]
                .iter_mut()
                .zip(&pivot_row)
                .skip(column)
                .for_each(|(cell, pivot)| *cell -= factor * pivot);
            right[row] -= factor * right[column];
        }
    }
    let mut solution = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|column| matrix[row][column] * solution[column]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Rng;

    #[test]
    fn equations_are_solved_with_a_zero_on_the_diagonal() {
        let solution = solve(vec![vec![0.0, 2.0], vec![3.0, 1.0]], vec![4.0, 5.0]).unwrap();
        assert!((solution[0] - 1.0).abs() < 1e-12 && (solution[1] - 2.0).abs() < 1e-12, "{solution:?}");
        assert!(solve(vec![vec![1.0, 2.0], vec![2.0, 4.0]], vec![1.0, 1.0]).is_none());
    }

    /// One signal of 0 and 1: without a penalty, the chance at 1 is the share of the windows there, 3/4, at 0 it is 1/4. With
    /// one, the weights solve the penalized equations: their gradient is 0.
    #[test]
    fn fit_is_where_the_gradient_is_zero() {
        let example = |at: usize| Example {
            block: 0,
            signals: vec![(at % 2) as f64],
            with: if at % 2 == 1 { at % 8 != 1 } else { at.is_multiple_of(8) },
        };
        let examples: Vec<Example> = (0..800).map(example).collect();
        let model = Model::fit(&examples.iter().collect::<Vec<_>>()).unwrap();
        let chance = |signal: f64| 1.0 / (1.0 + (-model.score(&[signal])).exp());
        assert!((chance(1.0) - 0.75).abs() < 0.01 && (chance(0.0) - 0.25).abs() < 0.01, "{}", chance(1.0));
        let rows: Vec<(Vec<f64>, f64)> = examples
            .iter()
            .map(|example| (model.row(&example.signals), f64::from(u8::from(example.with))))
            .collect();
        let step = newton_step(&rows, &model.weights).unwrap();
        assert!(step.iter().all(|step| step.abs() < 1e-9), "{step:?}");
    }

    fn examples(signal: impl Fn(bool, &mut Rng) -> Vec<f64>) -> Vec<Example> {
        let mut rng = Rng::new(5);
        (0..600)
            .map(|at| {
                let with = rng.below(2) == 1;
                Example { block: at / 60, signals: signal(with, &mut rng), with }
            })
            .collect()
    }

    #[test]
    fn noise_tells_nothing() {
        let auc = logistic_auc(&examples(|_, rng| (0..5).map(|_| rng.next_f64()).collect())).unwrap();
        assert!((auc - 0.5).abs() < 0.08, "{auc}");
    }

    /// With a uniform signal moved up by half its width, 7 of 8 pairs are told apart.
    #[test]
    fn a_signal_tells_as_much_as_its_ranks_and_noise_beside_it_takes_little() {
        let all = examples(|with, rng| vec![rng.next_f64(), rng.next_f64() + if with { 0.5 } else { 0.0 }]);
        let auc = logistic_auc(&all).unwrap();
        assert!((auc - 0.875).abs() < 0.04, "{auc}");
    }

    /// What is known within a block alone, as by a drift of the machine, is not learnt from the others.
    #[test]
    fn a_block_is_judged_by_what_was_learnt_elsewhere() {
        let example = |at: usize| {
            let (block, with) = (at / 20, at.is_multiple_of(2));
            let sign = if block == 0 { -1.0 } else { 1.0 };
            Example { block, signals: vec![sign * f64::from(u8::from(with))], with }
        };
        let all: Vec<Example> = (0..40).map(example).collect();
        assert_eq!(logistic_auc(&all), Some(0.0));
    }
}
