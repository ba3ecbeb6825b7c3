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
