//! RocksDB's histogram of microseconds, with the same buckets and the same text, so that programs that read one can
//! read the other.

use std::fmt;
use std::sync::LazyLock;

/// Upper ends of the buckets, included: 1, 2, then half as much again each time, cut to two significant digits.
static LIMITS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut limits = vec![1, 2];
    let mut exact = 3.0;
    while exact <= u64::MAX as f64 {
        let (mut digits, mut scale) = (exact as u64, 1);
        while digits / 10 > 10 {
            (digits, scale) = (digits / 10, scale * 10);
        }
        limits.push(digits * scale);
        exact *= 1.5;
    }
    limits
});

/// How many durations fell into each bucket.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    min: u64,
    max: u64,
    sum: f64,
    sum_squares: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        let counts = vec![0; LIMITS.len()];
        Self { counts, count: 0, min: u64::MAX, max: 0, sum: 0.0, sum_squares: 0.0 }
    }
}

impl Histogram {
    /// Counts an operation that took this many microseconds.
    pub fn add(&mut self, micros: u64) {
        let bucket = LIMITS.partition_point(|&limit| limit < micros).min(LIMITS.len() - 1);
        self.counts[bucket] += 1;
        self.count += 1;
        (self.min, self.max) = (self.min.min(micros), self.max.max(micros));
        self.sum += micros as f64;
        self.sum_squares += (micros as f64).powi(2);
    }

    /// Counts what `other` has counted, too.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, other)| *count += other);
        self.count += other.count;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        self.sum += other.sum;
        self.sum_squares += other.sum_squares;
    }

    /// Whether nothing has been counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The duration that `percent` of the operations did not exceed, interpolated within its bucket.
    fn percentile(&self, percent: f64) -> f64 {
        let threshold = self.count as f64 * (percent / 100.0);
        let mut below = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            if (below + count) as f64 >= threshold {
                let left = bucket.checked_sub(1).map_or(0, |bucket| LIMITS[bucket]);
                let position = if count > 0 { (threshold - below as f64) / count as f64 } else { 0.0 };
                let at = left as f64 + (LIMITS[bucket] - left) as f64 * position;
                return at.max(self.min as f64).min(self.max as f64);
            }
            below += count;
        }
        self.max as f64
    }

    fn deviation(&self) -> f64 {
        let count = self.count.max(1) as f64;
        ((self.sum_squares * count - self.sum * self.sum) / (count * count)).max(0.0).sqrt()
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count.max(1) as f64;
        let (average, deviation) = (self.sum / count, self.deviation());
        let (min, median) = (if self.is_empty() { 0 } else { self.min }, self.percentile(50.0));
        writeln!(f, "Count: {} Average: {average:.4}  StdDev: {deviation:.2}", self.count)?;
        writeln!(f, "Min: {min}  Median: {median:.4}  Max: {}", self.max)?;
        write!(f, "Percentiles:")?;
        for percent in [50.0, 75.0, 99.0, 99.9, 99.99] {
            write!(f, " P{percent}: {:.2}", self.percentile(percent))?;
        }
        writeln!(f, "\n------------------------------------------------------")?;
        let mut cumulative = 0;
        for (bucket, &in_bucket) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            cumulative += in_bucket;
            let (open, left) = match bucket.checked_sub(1) {
                None => ('[', 0),
                Some(before) => ('(', LIMITS[before]),
            };
            let (share, upto) = (100.0 * in_bucket as f64 / count, 100.0 * cumulative as f64 / count);
            // A mark for every twentieth of the operations.
            let marks = "#".repeat((share / 5.0 + 0.5) as usize);
            writeln!(
                f,
                "{open} {left:7}, {:7} ] {in_bucket:8} {share:7.3}% {upto:7.3}% {marks}",
                LIMITS[bucket]
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_rocksdb() {
        let first = [
            1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250, 380, 580, 870, 1300, 1900, 2900, 4400,
            6600, 9900, 14_000, 22_000,
        ];
        assert_eq!(LIMITS[..first.len()], first);
    }

    /// The buckets and the text that `db_bench` 7.8.3 printed for a run of `readrandom`.
    #[test]
    fn text_is_that_of_rocksdb() {
        let mut histogram = Histogram::default();
        for (micros, count) in [
            (0, 2548),
            (2, 15_565),
            (3, 14_918),
            (4, 4988),
            (6, 1665),
            (10, 208),
            (15, 16),
            (22, 2),
            (34, 8),
            (51, 5),
            (76, 13),
            (170, 1),
            (250, 10),
            (380, 3),
            (580, 2),
            (870, 3),
            (1900, 5),
            (4400, 7),
            (6600, 13),
            (9900, 8),
            (13_639, 12),
        ] {
            (0..count).for_each(|_| histogram.add(micros));
        }
        let text = histogram.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("Count: 40000 Average: "), "{text}");
        assert_eq!(lines[1], "Min: 0  Median: 2.1265  Max: 13639");
        assert_eq!(lines[2], "Percentiles: P50: 2.13 P75: 2.80 P99: 5.90 P99.9: 2900.00 P99.99: 12633.33");
        assert_eq!(lines[3], "------------------------------------------------------");
        assert_eq!(lines[4], "[       0,       1 ]     2548   6.370%   6.370% #");
        assert_eq!(lines[5], "(       1,       2 ]    15565  38.913%  45.282% ########");
        assert_eq!(lines[24], "(    9900,   14000 ]       12   0.030% 100.000% ");
        assert_eq!(lines.len(), 25);
    }

    #[test]
    fn merged_histograms_count_both() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        one.add(5);
        other.add(70);
        one.merge(&other);
        assert_eq!((one.count, one.min, one.max, one.sum), (2, 5, 70, 75.0));
    }
}
