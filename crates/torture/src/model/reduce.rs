//! Reduces a failure: leaves out the operations that it does not need.

/// Runs that a reduction takes at most: each one that fails leaves its threads behind.
const RUNS_MAX: usize = 100;

/// A part of `numbers` that still `fails`, and from which no small range can be left out, as far as this many runs
/// can show.
pub fn reduce(numbers: Vec<usize>, mut fails: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let (mut kept, mut runs) = (numbers, 0);
    let mut length = kept.len().div_ceil(2);
    while length > 0 && runs < RUNS_MAX {
        let (mut start, mut is_less) = (0, false);
        while start < kept.len() && runs < RUNS_MAX {
            let end = kept.len().min(start + length);
            let without = [&kept[..start], &kept[end..]].concat();
            runs += 1;
            if fails(&without) {
                (kept, is_less) = (without, true);
            } else {
                start = end;
            }
        }
        if !is_less || length > 1 {
            length /= 2;
        }
    }
    kept
}

/// Numbers as text: `0-7,12`.
pub fn to_text(numbers: &[usize]) -> String {
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => stretches.push((number, number)),
        }
    }
    let stretch = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    stretches.into_iter().map(stretch).collect::<Vec<_>>().join(",")
}

/// Numbers from such a text.
pub fn from_text(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for stretch in text.split(',') {
        let (first, last) = stretch.split_once('-').unwrap_or((stretch, stretch));
        numbers.extend(first.parse().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(numbers)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn what_is_not_needed_goes() {
        let needs =
            |wanted: &'static [usize]| move |numbers: &[usize]| wanted.iter().all(|n| numbers.contains(n));
        assert_eq!(reduce((0..500).collect(), needs(&[3, 77, 490])), [3, 77, 490]);
        assert_eq!(reduce((0..9).collect(), needs(&[])), []);
        assert_eq!(reduce((0..3).collect(), needs(&[0, 1, 2])), [0, 1, 2]);
    }

    #[test]
    fn numbers_are_text_and_back() {
        let numbers = vec![0, 1, 2, 5, 9, 10];
        assert_eq!(to_text(&numbers), "0-2,5,9-10");
        assert_eq!(from_text("0-2,5,9-10"), Some(numbers));
        assert_eq!(from_text("0-"), None);
        assert_eq!(from_text(&to_text(&[7])), Some(vec![7]));
    }
}
