//! Sizes of values: one for all, a mixture, or those of mail.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::generator::mix;

/// Values of a fixed size have at least so many bytes, which hold what tells whose they are, and at most as many as an engine takes.
pub(super) const BYTES_MIN: u64 = 16;
const BYTES_MAX: u64 = 1 << 30;

/// Of six values of a mixture, three have the first size, two the second one, and the rest any from here to there.
const MIX_SMALL: u64 = 100;
const MIX_MIDDLE: u64 = 1024;
const MIX_LARGE: (u64, u64) = (16 << 10, 1 << 20);

/// From the smallest to the largest mail.
const MAIL: (u64, u64) = (10_000_000, 34_000_000);

/// How large values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Size {
    /// All have so many bytes.
    Fixed(u64),
    /// Half of them have 100 bytes, a third 1 KiB, the others 16 KiB to 1 MiB, as many of each doubling.
    Mix,
    /// 10 to 34 megabytes: a case of its own, in which values are put and deleted.
    Mail,
}

impl Size {
    /// Those that are measured unless others are asked for.
    pub const DEFAULT: &[Self] = &[
        Self::Fixed(256),
        Self::Fixed(1 << 10),
        Self::Fixed(4 << 10),
        Self::Fixed(16 << 10),
        Self::Fixed(64 << 10),
        Self::Fixed(1 << 20),
        Self::Fixed(16 << 20),
        Self::Mix,
        Self::Mail,
    ];

    /// The size of a value that `draw` names.
    #[must_use]
    pub fn bytes(self, draw: u64) -> usize {
        // Which kind, and where in its range: independent of one another.
        let (kind, place) = (mix(draw), (mix(!draw) >> 11) as f64 / (1_u64 << 53) as f64);
        let bytes = match self {
            Self::Fixed(bytes) => bytes,
            Self::Mix => match kind % 6 {
                0..3 => MIX_SMALL,
                3 | 4 => MIX_MIDDLE,
                _ => {
                    let (low, high) = (MIX_LARGE.0 as f64, MIX_LARGE.1 as f64);
                    (low * (high / low).powf(place)) as u64
                }
            },
            Self::Mail => MAIL.0 + (place * (MAIL.1 - MAIL.0) as f64) as u64,
        };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The most that [`Size::bytes`] gives.
    #[must_use]
    pub fn bytes_max(self) -> usize {
        let bytes = match self {
            Self::Fixed(bytes) => bytes,
            Self::Mix => MIX_LARGE.1,
            Self::Mail => MAIL.1,
        };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// What it gives on average.
    #[must_use]
    pub fn bytes_mean(self) -> f64 {
        match self {
            Self::Fixed(bytes) => bytes as f64,
            Self::Mix => {
                let (low, high) = (MIX_LARGE.0 as f64, MIX_LARGE.1 as f64);
                let large = (high - low) / (high / low).ln();
                MIX_SMALL as f64 / 2.0 + MIX_MIDDLE as f64 / 3.0 + large / 6.0
            }
            Self::Mail => f64::midpoint(MAIL.0 as f64, MAIL.1 as f64),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => bytes.fmt(f),
            Self::Mix => f.pad("mix"),
            Self::Mail => f.pad("mail"),
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "mix" => return Ok(Self::Mix),
            "mail" => return Ok(Self::Mail),
            _ => {}
        }
        let (digits, unit) = match text.split_at_checked(text.len().saturating_sub(1)) {
            Some((digits, "K")) => (digits, 1 << 10),
            Some((digits, "M")) => (digits, 1 << 20),
            _ => (text, 1),
        };
        let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(unit));
        match bytes.filter(|bytes| (BYTES_MIN..=BYTES_MAX).contains(bytes)) {
            Some(bytes) => Ok(Self::Fixed(bytes)),
            None => Err(format!("{text:?} is no size: mix, mail, or {BYTES_MIN} bytes to 1024M")),
        }
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for &size in Size::DEFAULT {
            assert_eq!(size.to_string().parse(), Ok(size));
        }
        assert_eq!("64K".parse(), Ok(Size::Fixed(65_536)));
        assert_eq!("16M".parse(), Ok(Size::Fixed(16 << 20)));
        for wrong in ["", "K", "15", "2048M", "4KiB", "-1", "much"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn draws_have_the_sizes_and_the_mean_that_are_told() {
        for &size in &[Size::Fixed(300), Size::Mix, Size::Mail] {
            let draws: Vec<f64> = (0..60_000).map(|draw| size.bytes(draw) as f64).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            assert!((mean / size.bytes_mean() - 1.0).abs() < 0.05, "{size}: {mean}");
            assert!(draws.iter().all(|&bytes| bytes <= size.bytes_max() as f64));
        }
        let small = (0..60_000).filter(|&draw| Size::Mix.bytes(draw) == 100).count();
        assert!((29_000..31_000).contains(&small), "{small}");
    }
}
