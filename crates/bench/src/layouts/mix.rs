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
    pub const ALL: [Self; 6] =
        [Self::Load, Self::Writes, Self::Half, Self::Reads, Self::Scans, Self::Deletes];

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
        }
    }

    /// Percentages of writes, deletes and scans; the rest are lookups.
    fn percents(self) -> (u64, u64, u64) {
        match self {
            Self::Load => (100, 0, 0),
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
        let (writes, deletes, scans) = self.percents();
        Arc::new(move |_, rng| {
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
