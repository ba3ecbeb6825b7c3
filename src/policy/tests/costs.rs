//! What measured prices are worth on another machine.
//!
//! Updates and scans of a tree run in virtual time: once with the prices of the machine that the policies were tuned
//! on, once with those that a store measures here. Scans cost what their seeks in level 0 take; compactions cost what
//! they read, and their barriers. Readers run up a debt for the runs of level 0 as in
//! `engine/keyspace/read_debt.rs`, and the planner decides what is compacted. There is no disk and no clock, so
//! the figures are exact and the same everywhere.

use std::time::Duration;

use super::volume::{Load, config};
use super::*;

/// Bytes of all records.
const RECORDS: u64 = 512 << 20;

/// Bytes of a flush.
const FLUSH: u64 = 8 << 20;

/// Flushes, each with scans behind it.
const ROUNDS: u64 = 120;

/// Scans between two looks at what is due.
const SCANS: u64 = 16384;

/// A machine beside the tuned one.
#[derive(Clone, Copy, Debug)]
struct Machine {
    name: &'static str,
    /// How many times as long compactions and barriers take.
    compaction: f64,
    /// How many times as long the processor takes.
    processor: f64,
}

impl Machine {
    /// What things truly cost here.
    fn costs(self) -> Costs {
        let mut costs = Costs::TUNED.with_processor(self.processor);
        costs.compacted_byte *= self.compaction;
        costs.device.barrier *= self.compaction;
        costs
    }
}

/// By which prices the store goes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Prices {
    Tuned,
    Measured,
}

/// Time that was spent, in seconds.
#[derive(Clone, Copy, Default, Debug)]
struct Spent {
    scans: f64,
    compactions: f64,
}

impl Spent {
    fn total(&self) -> f64 {
        self.scans + self.compactions
    }
}

/// A store with readers on some machine.
struct Store {
    load: Load,
    truth: Costs,
    prices: Prices,
    measured: Measured,
    read_debt: u64,
    spent: Spent,
}

impl Store {
    fn new(machine: Machine, prices: Prices) -> Self {
        let mut load = Load::new(config(None));
        load.put(RECORDS);
        load.records = Some(load.bytes());
        let mut measured = Measured::default();
        measured.processor(machine.processor);
        Self { load, truth: machine.costs(), prices, measured, read_debt: 0, spent: Spent::default() }
    }

    fn runs(&self) -> u64 {
        self.load.tree.level(0).runs.len() as u64
    }

    fn costs(&self) -> Costs {
        match self.prices {
            Prices::Tuned => Costs::TUNED,
            Prices::Measured => self.measured.costs(),
        }
    }

    /// As `Tree::publish` does.
    fn share(&mut self, before: u64) {
        let runs = self.runs();
        if runs > before || runs == 0 {
            self.read_debt = (self.read_debt * before).checked_div(runs).unwrap_or(0);
        }
    }

    fn flush(&mut self) {
        let before = self.runs();
        self.load.flush(FLUSH);
        self.share(before);
        self.compact();
    }

    fn scan(&mut self, scans: u64) {
        self.spent.scans += (scans * self.runs()) as f64 * self.truth.seek(1.0, 0.0) / 1e9;
        if self.runs() > 0 {
            let cached = BlocksAsked { cached: scans, read: 0, read_nanos: 0 };
            self.read_debt += self.costs().seeks_worth(scans, &cached);
        }
        self.compact();
    }

    /// Compacts until nothing is due.
    fn compact(&mut self) {
        loop {
            let costs = self.costs();
            let tree = &self.load.tree;
            let shape = self.load.config.layout.measure_with_debt(tree, self.read_debt, &costs);
            let (busy, load) = (Claims::default(), LoadState { costs, ..LoadState::default() });
            let view = TreeView::of(tree, &busy, &shape);
            let Some(plan) = next_plan(&[view], &SpaceView::default(), &load, &self.load.config) else {
                break;
            };
            let before = self.runs();
            self.load.compact_tables(&plan);
            if plan.kind == PlanKind::Compact {
                let nanos = self.truth.compaction(plan.bytes, 1);
                self.spent.compactions += nanos / 1e9;
                self.measured.synced(Duration::from_nanos(self.truth.device.barrier as u64));
                self.measured.compacted(plan.bytes, Duration::from_nanos(nanos as u64));
            }
            self.share(before);
        }
    }
}

/// What updates and scans take on `machine`.
fn spend(machine: Machine, prices: Prices) -> Spent {
    let (mut store, mut dice) = (Store::new(machine, prices), Dice(41));
    for _ in 0..ROUNDS {
        store.flush();
        // Now few scans, now many: 2^0 to 2^5 times so many, each power as often.
        (0..1 << dice.below(6)).for_each(|_| store.scan(SCANS));
    }
    store.spent
}

const MACHINES: [Machine; 7] = [
    Machine { name: "the tuned machine", compaction: 1.0, processor: 1.0 },
    Machine { name: "compactions 10 times slower", compaction: 10.0, processor: 1.0 },
    Machine { name: "compactions 10 times faster", compaction: 0.1, processor: 1.0 },
    Machine { name: "processor 10 times slower", compaction: 1.0, processor: 10.0 },
    Machine { name: "processor 10 times faster", compaction: 1.0, processor: 0.1 },
    Machine { name: "all 10 times slower", compaction: 10.0, processor: 10.0 },
    Machine { name: "all 10 times faster", compaction: 0.1, processor: 0.1 },
];

/// `cargo test --release --lib measured_prices -- --nocapture` shows the figures.
#[test]
fn measured_prices_do_better_on_other_machines_and_as_well_on_the_tuned_one() {
    let mut ratios = Vec::new();
    println!(
        "| machine | tuned: scans + compactions, s | measured: scans + compactions, s | measured / tuned |"
    );
    for machine in MACHINES {
        let [tuned, measured] = [Prices::Tuned, Prices::Measured].map(|prices| spend(machine, prices));
        let ratio = measured.total() / tuned.total();
        println!(
            "| {} | {:.1} + {:.1} = {:.1} | {:.1} + {:.1} = {:.1} | {ratio:.2} |",
            machine.name,
            tuned.scans,
            tuned.compactions,
            tuned.total(),
            measured.scans,
            measured.compactions,
            measured.total()
        );
        ratios.push((machine, ratio));
    }
    for (machine, ratio) in ratios {
        if machine.compaction == machine.processor {
            // What counts is what one costs of the other.
            assert!((0.97..=1.03).contains(&ratio), "{machine:?}: {ratio}");
        } else {
            assert!(ratio <= 0.95, "{machine:?}: {ratio}");
        }
    }
}
