//! Mixes of operations and shapes of keys.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::generator::{Rng, ScrambledZipfian, Zipfian};
use crate::workload::{Action, Permutation};
use crate::ycsb::keys::InsertOrder;
use crate::{Error, Result};

/// YCSB's skew.
const THETA: f64 = 0.99;

/// Keys that share a prefix in [`Shape::Tenants`].
const TENANT_KEYS: u64 = 1000;

/// Rows of a scan, at most.
const SCAN_ROWS: u64 = 100;

/// Operations of a mix, for each record.
const OPERATIONS_PER_RECORD: f64 = 1.0;

/// The same where rows of scans count as so many lookups, so that mixes of scans end in the time of the others.
const SCANS_PER_RECORD: f64 = 0.05;

/// Divisor: a turn of a changing mix has this part of the operations of its mix.
const TURN_PARTS: u64 = 2;

/// What is asked of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// The load itself: every record once, in no order.
    Load,
    /// Nine writes in ten, the others lookups.
    Writes,
    /// Half writes, half lookups: YCSB's A.
    Half,
    /// One write in twenty: YCSB's B.
    Reads,
    /// Scans of up to 100 rows, and one write in twenty: nearly YCSB's E.
    Scans,
    /// Three deletes in ten, as many writes, the others lookups.
    Deletes,
    /// One mix after the other: [`Mix::TURNS`].
    Changing,
}

/// How keys are made, and which of them are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// All alike, scattered.
    Uniform,
    /// A few very often (Zipf, 0.99), scattered.
    Popular,
    /// A thousand keys to a prefix; a few prefixes very often (Zipf, 0.99), and their keys alike.
    Tenants,
    /// Keys ascend with time; writes append, and the newest are read most.
    Recent,
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One of `all` by its name.
fn named<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, text: &str) -> Result<T> {
    all.iter().copied().find(|one| name(*one) == text).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|one| name(*one)).collect();
        format!("unknown {text:?}: there are {}", names.join(", ")).into()
    })
}

impl FromStr for Mix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        named(&Self::ALL, Self::name, text)
    }
}

impl FromStr for Shape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        named(&Self::ALL, Self::name, text)
    }
}

/// The next action of a client, from its number and the client's stream of random numbers.
pub(super) type Draw = Arc<dyn Fn(u64, &mut Rng) -> Action + Send + Sync>;

impl Shape {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Popular, Self::Tenants, Self::Recent];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Popular => "popular",
            Self::Tenants => "tenants",
            Self::Recent => "recent",
        }
    }

    /// The order of keys by record number.
    pub(super) fn order(self) -> InsertOrder {
        match self {
            Self::Uniform | Self::Popular => InsertOrder::Hashed,
            Self::Tenants | Self::Recent => InsertOrder::Ordered,
        }
    }

    /// Draws one of `inserted` records.
    fn chooser(self, inserted: &Arc<AtomicU64>) -> Arc<dyn Fn(&mut Rng) -> u64 + Send + Sync> {
        let records = inserted.load(Relaxed).max(1);
        match self {
            Self::Uniform => Arc::new(move |rng| rng.below(records)),
            Self::Popular => {
                let popular = ScrambledZipfian::new(0, records);
                Arc::new(move |rng| popular.next(rng))
            }
            Self::Tenants => {
                let tenants = records.div_ceil(TENANT_KEYS);
                let (ranks, scattered) =
                    (Zipfian::new(tenants, THETA), Permutation::new(tenants, TENANT_KEYS));
                Arc::new(move |rng| {
                    let tenant = scattered.at(ranks.next(rng));
                    (tenant * TENANT_KEYS + rng.below(TENANT_KEYS)).min(records - 1)
                })
            }
            Self::Recent => {
                let (ages, inserted) = (Zipfian::new(records, THETA), inserted.clone());
                Arc::new(move |rng| inserted.load(Relaxed).saturating_sub(1 + ages.next(rng)))
            }
        }
    }
}

impl Mix {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Load, Self::Writes, Self::Half, Self::Reads, Self::Scans, Self::Deletes, Self::Changing];

    /// What a changing mix is in turn.
    pub const TURNS: [Self; 6] =
        [Self::Writes, Self::Scans, Self::Half, Self::Reads, Self::Scans, Self::Writes];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Writes => "writes",
            Self::Half => "half",
            Self::Reads => "reads",
            Self::Scans => "scans",
            Self::Deletes => "deletes",
            Self::Changing => "changing",
        }
    }

    /// Operations on a store of so many records.
    pub(super) fn operations(self, records: u64) -> u64 {
        let share = |share: f64| ((records as f64 * share) as u64).max(1);
        match self {
            Self::Load => records,
            Self::Scans => share(SCANS_PER_RECORD),
            Self::Writes | Self::Half | Self::Reads | Self::Deletes => share(OPERATIONS_PER_RECORD),
            Self::Changing => Self::TURNS.iter().map(|turn| turn.operations(records) / TURN_PARTS).sum(),
        }
    }

    /// The mix that operation `number` belongs to.
    fn turn(self, number: u64, records: u64) -> Self {
        if self != Self::Changing {
            return self;
        }
        let mut left = number;
        let is_turn = |turn: &&Self| {
            let operations = turn.operations(records) / TURN_PARTS;
            let is_here = left < operations;
            left = left.saturating_sub(operations);
            is_here
        };
        Self::TURNS.iter().find(is_turn).copied().unwrap_or(Self::Writes)
    }

    /// Percentages of writes, deletes and scans; the rest are lookups.
    fn percents(self) -> (u64, u64, u64) {
        match self {
            // One that changes has those of its turn.
            Self::Load | Self::Changing => (100, 0, 0),
            Self::Writes => (90, 0, 0),
            Self::Half => (50, 0, 0),
            Self::Reads => (5, 0, 0),
            Self::Scans => (5, 0, 95),
            Self::Deletes => (30, 30, 0),
        }
    }

    /// What clients do on a store of `inserted` records, which grows by what they insert.
    pub(super) fn draw(self, shape: Shape, inserted: Arc<AtomicU64>) -> Draw {
        let any = shape.chooser(&inserted);
        let records = inserted.load(Relaxed).max(1);
        Arc::new(move |number, rng| {
            let (writes, deletes, scans) = self.turn(number, records).percents();
            let record = any(rng);
            let dice = rng.below(100);
            if dice < writes {
                // New records are appended; others are written again.
                let appends = matches!(shape, Shape::Recent);
                Action::Put(if appends { inserted.fetch_add(1, Relaxed) } else { record })
            } else if dice < writes + deletes {
                Action::Delete(record)
            } else if dice < writes + deletes + scans {
                Action::Scan { from: record, records: 1 + rng.below(SCAN_ROWS) }
            } else {
                Action::Get(record)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_what_their_names_say() {
        for (mix, writes, scans) in [(Mix::Writes, 0.9, 0.0), (Mix::Half, 0.5, 0.0), (Mix::Scans, 0.05, 0.95)]
        {
            for shape in &Shape::ALL {
                let draw = mix.draw(*shape, Arc::new(AtomicU64::new(10_000)));
                let mut rng = Rng::new(1);
                let mut found = [0.0; 2];
                for number in 0..2000 {
                    match draw(number, &mut rng) {
                        Action::Put(_) => found[0] += 1.0 / 2000.0,
                        Action::Scan { .. } => found[1] += 1.0 / 2000.0,
                        Action::Get(record) | Action::Delete(record) => assert!(record < 12_000),
                    }
                }
                let near = |one: f64, other: f64| (one - other).abs() < 0.05;
                assert!(near(found[0], writes) && near(found[1], scans), "{mix} {shape}: {found:?}");
            }
        }
    }

    #[test]
    fn a_changing_mix_has_its_turns_one_after_the_other() {
        let records = 10_000;
        let turns: Vec<Mix> = (0..Mix::Changing.operations(records))
            .map(|number| Mix::Changing.turn(number, records))
            .collect();
        let mut in_turn = turns.clone();
        in_turn.dedup();
        assert_eq!((in_turn, turns.len()), (Mix::TURNS.to_vec(), 4 * 5000 + 2 * 250));
        let draw = Mix::Changing.draw(Shape::Uniform, Arc::new(AtomicU64::new(records)));
        let mut rng = Rng::new(1);
        let mut scans = |from: u64| {
            (from..from + 200).filter(|n| matches!(draw(*n, &mut rng), Action::Scan { .. })).count()
        };
        assert!(scans(0) == 0 && scans(5000) > 170 && scans(5250) == 0);
    }

    #[test]
    fn tenants_are_asked_for_as_a_whole() {
        let draw = Mix::Reads.draw(Shape::Tenants, Arc::new(AtomicU64::new(100_000)));
        let mut rng = Rng::new(1);
        let mut by_tenant = [0_u32; 100];
        for number in 0..20_000 {
            if let Action::Get(record) = draw(number, &mut rng) {
                by_tenant[(record / TENANT_KEYS) as usize] += 1;
            }
        }
        let most = by_tenant.iter().max().unwrap();
        assert!(*most > 10 * 20_000 / 100 / 2, "no tenant is popular: {by_tenant:?}");
    }

    #[test]
    fn what_is_recent_is_read_most_and_keys_are_appended() {
        let inserted = Arc::new(AtomicU64::new(10_000));
        let draw = Mix::Half.draw(Shape::Recent, inserted.clone());
        let mut rng = Rng::new(1);
        let mut next = 10_000;
        let mut recent = 0;
        for number in 0..1000 {
            match draw(number, &mut rng) {
                Action::Put(record) => {
                    assert_eq!(record, next);
                    next += 1;
                }
                Action::Get(record) => recent += u32::from(record + 100 >= next),
                other => panic!("{other:?} in a mix of writes and lookups"),
            }
        }
        assert!(recent > 150, "{recent} of 500");
        assert_eq!(inserted.load(Relaxed), next);
    }
}
