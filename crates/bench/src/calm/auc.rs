//! The rank AUC: how well one number tells two kinds of windows apart.

/// The chance that a value of `with` is above one of `without`, ties counted half: the area under the ROC curve, which is
/// the statistic of Mann and Whitney over its greatest value. 0.5 tells nothing; none where a kind is empty.
///
/// ```
/// use terrace_bench::calm::rank_auc;
///
/// assert_eq!(rank_auc(&[3.0, 4.0], &[1.0, 2.0]), Some(1.0));
/// assert_eq!(rank_auc(&[1.0, 2.0], &[1.0, 2.0]), Some(0.5));
/// assert_eq!(rank_auc(&[1.0], &[]), None);
/// ```
#[must_use]
pub fn rank_auc(with: &[f64], without: &[f64]) -> Option<f64> {
    let pairs = pairs_won(with, without);
    let all = with.len() as f64 * without.len() as f64;
    (all > 0.0).then(|| pairs / all)
}

/// The statistic of Mann and Whitney: pairs of a value of `with` and a lower one of `without`, those of equals half.
pub fn pairs_won(with: &[f64], without: &[f64]) -> f64 {
    let with = with.iter().map(|&value| (value, true));
    let mut all: Vec<(f64, bool)> = with.chain(without.iter().map(|&value| (value, false))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut won, mut below) = (0.0, 0.0);
    for equal in all.chunk_by(|a, b| a.0 == b.0) {
        let with = equal.iter().filter(|one| one.1).count() as f64;
        let without = equal.len() as f64 - with;
        won += with * (below + without / 2.0);
        below += without;
    }
    won
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of the nine pairs, 5 beats 1, 2 and ties with 5; 2 beats 1 and ties with 2; 7 beats all.
    #[test]
    fn pairs_are_counted_and_ties_are_halves() {
        let auc = rank_auc(&[5.0, 2.0, 7.0], &[1.0, 2.0, 5.0]).unwrap();
        assert!((auc - 7.0 / 9.0).abs() < 1e-12, "{auc}");
        assert_eq!(pairs_won(&[5.0, 2.0, 7.0], &[1.0, 2.0, 5.0]), 7.0);
    }

    #[test]
    fn exchanged_kinds_have_the_complement() {
        let (a, b) = ([0.3, 1.5, 2.0, 2.0, 9.0], [1.0, 2.0, 3.0]);
        let sum = rank_auc(&a, &b).unwrap() + rank_auc(&b, &a).unwrap();
        assert!((sum - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_told_where_all_are_equal() {
        assert_eq!(rank_auc(&[4.0; 7], &[4.0; 3]), Some(0.5));
        assert_eq!(rank_auc(&[-1.0, -2.0], &[0.0, 5.0]), Some(0.0));
    }
}
