//! When values that will expire were written.

/// The oldest and the newest of some values' dates, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dates {
    /// No value is older.
    pub oldest: u32,
    /// No value is newer.
    pub newest: u32,
}

impl Dates {
    /// Those of one value.
    #[must_use]
    pub fn at(second: u32) -> Self {
        Self { oldest: second, newest: second }
    }

    /// `dates`, if there are any, and those of one more value.
    #[must_use]
    pub fn with(dates: Option<Self>, second: u32) -> Self {
        dates.map_or(Self::at(second), |dates| dates.hull(Self::at(second)))
    }

    /// Those of the values of both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { oldest: self.oldest.min(other.oldest), newest: self.newest.max(other.newest) }
    }
}
