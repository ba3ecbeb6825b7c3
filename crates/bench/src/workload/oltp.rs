//! DLC's transaction: sysbench's `oltp_read_write` without SQL, on tables of numbered rows.
//!
//! Ten lookups, four scans of 100 rows, two updates, a delete and an insert, of the row that was deleted; all in one
//! table, drawn anew for each transaction. Rows are drawn from sysbench's default distribution, `special`: three quarters
//! evenly from the hundredth in the middle of the table, the rest as the mean of twelve even draws. Other mixes of the same
//! actions are [`Mix`]es.

use super::Action;
use crate::generator::Rng;

/// What a transaction consists of, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mix {
    /// Lookups.
    pub gets: usize,
    /// Scans of 100 rows.
    pub scans: usize,
    /// Updates.
    pub updates: usize,
    /// Rows that are deleted and inserted again, which is two writes each.
    pub replaced: usize,
}

impl Mix {
    /// sysbench's.
    pub const SYSBENCH: Self = Self { gets: 10, scans: 4, updates: 2, replaced: 1 };

    /// Writes of a transaction.
    #[must_use]
    pub const fn writes(&self) -> usize {
        self.updates + 2 * self.replaced
    }

    /// Actions of a transaction.
    #[must_use]
    pub const fn actions(&self) -> usize {
        self.gets + self.scans + self.writes()
    }
}

/// Rows of a scan.
const SCAN_RECORDS: u64 = 100;

/// Share of the draws that go to the special rows, and the share of all rows that those are.
const SPECIAL_DRAWS: f64 = 0.75;
const SPECIAL_ROWS: f64 = 0.01;

/// Even draws whose mean is one of the other rows.
const EVEN_DRAWS: u32 = 12;

/// Draws transactions.
#[derive(Clone, Debug)]
pub struct Oltp {
    tables: u64,
    rows: u64,
    mix: Mix,
}

impl Oltp {
    /// On `tables` tables of `rows` rows each, at least one; record `t * rows + r` is row `r` of table `t`.
    #[must_use]
    pub fn new(tables: u64, rows: u64) -> Self {
        Self { tables: tables.max(1), rows: rows.max(1), mix: Mix::SYSBENCH }
    }

    /// The same with another mix.
    #[must_use]
    pub fn with(self, mix: Mix) -> Self {
        Self { mix, ..self }
    }

    /// What a transaction consists of.
    #[must_use]
    pub fn mix(&self) -> Mix {
        self.mix
    }

    /// Records of all tables.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.tables * self.rows
    }

    /// The next transaction.
    pub fn transaction(&self, rng: &mut Rng) -> Vec<Action> {
        let table = rng.below(self.tables) * self.rows;
        let Mix { gets, scans, updates, replaced: _ } = self.mix;
        let mut replaced = None;
        let mut action = |at: usize| {
            let row = self.row(rng);
            match at {
                at if at < gets => Action::Get(table + row),
                at if at < gets + scans => {
                    // sysbench draws the first row and lets the range end where the table does.
                    let records = SCAN_RECORDS.min(self.rows - row);
                    Action::Scan { from: table + row, records }
                }
                at if at < gets + scans + updates => Action::Put(table + row),
                _ => match replaced.take() {
                    None => Action::Delete(*replaced.insert(table + row)),
                    Some(deleted) => Action::Put(deleted),
                },
            }
        };
        (0..self.mix.actions()).map(&mut action).collect()
    }

    /// A row of a table.
    fn row(&self, rng: &mut Rng) -> u64 {
        let rows = self.rows as f64;
        let share = if rng.next_f64() < SPECIAL_DRAWS {
            0.5 + (rng.next_f64() - 0.5) * SPECIAL_ROWS
        } else {
            (0..EVEN_DRAWS).map(|_| rng.next_f64()).sum::<f64>() / f64::from(EVEN_DRAWS)
        };
        ((share * rows) as u64).min(self.rows - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_its_mix_and_stays_in_one_table() {
        let oltp = Oltp::new(8, 1000);
        let mut rng = Rng::new(1);
        for _ in 0..1000 {
            let transaction = oltp.transaction(&mut rng);
            let count = |kind: fn(&Action) -> bool| transaction.iter().filter(|action| kind(action)).count();
            assert_eq!(count(|action| matches!(action, Action::Get(_))), 10);
            assert_eq!(count(|action| matches!(action, Action::Scan { .. })), 4);
            assert_eq!(count(|action| matches!(action, Action::Put(_))), 3);
            assert_eq!(count(|action| matches!(action, Action::Delete(_))), 1);
            let [.., Action::Delete(deleted), Action::Put(inserted)] = transaction[..] else {
                panic!("{transaction:?} does not end with a delete and an insert")
            };
            assert_eq!(deleted, inserted);
            let table = |action: &Action| match *action {
                Action::Get(record) | Action::Put(record) | Action::Delete(record) => record / 1000,
                Action::Scan { from, records } => {
                    assert_eq!(from / 1000, (from + records - 1) / 1000);
                    from / 1000
                }
            };
            assert!(transaction.iter().all(|action| table(action) == table(&transaction[0])));
            assert!(table(&transaction[0]) < 8);
        }
    }

    #[test]
    fn other_mixes_replace_rows_one_after_the_other() {
        let mix = Mix { gets: 2, scans: 0, updates: 0, replaced: 9 };
        assert_eq!((mix.writes(), mix.actions()), (18, 20));
        let transaction = Oltp::new(4, 100).with(mix).transaction(&mut Rng::new(3));
        let (gets, writes) = transaction.split_at(2);
        assert!(gets.iter().all(|action| matches!(action, Action::Get(_))), "{gets:?}");
        for pair in writes.chunks(2) {
            assert!(matches!(pair, [Action::Delete(old), Action::Put(new)] if old == new), "{pair:?}");
        }
    }

    #[test]
    fn rows_are_special_in_their_share() {
        const DRAWS: u64 = 100_000;
        let oltp = Oltp::new(1, 10_000);
        let mut rng = Rng::new(2);
        let rows: Vec<u64> = (0..DRAWS).map(|_| oltp.row(&mut rng)).collect();
        let special = rows.iter().filter(|&row| (4950..5050).contains(row)).count() as f64;
        // Of the other quarter, whose deviation is 1 / sqrt(144), 4.8 % fall into that hundredth, too.
        let expected = DRAWS as f64 * (0.75 + 0.25 * 0.0479);
        assert!(
            (special - expected).abs() < 5.0 * (expected * 0.25).sqrt(),
            "{special}, expected {expected}"
        );
        let low = rows.iter().filter(|&&row| row < 5000).count() as f64;
        assert!((low - 50_000.0).abs() < 5.0 * 160.0, "{low} rows in the lower half");
    }

    #[test]
    fn a_seed_replays_it() {
        let oltp = Oltp::new(4, 100);
        let draw = |seed| oltp.transaction(&mut Rng::new(seed));
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
