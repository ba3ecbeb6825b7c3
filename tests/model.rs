//! Random operations against an ordered map with versions.
//!
//! One caller and the store's own threads: puts, deletes of keys and of ranges, batches across keyspaces, lookups, iterators from both ends
//! that are held across writes and jobs, snapshots, flushes, compactions, keyspaces that come and go, reopening, and
//! power cuts after which the store must be as some prefix of the history left it. Sizes are tiny, so that every kind
//! of job runs.
//!
//! On the simulated machine the threads run in an order that the seed draws. `TERRACE_SEED=n` runs that seed alone;
//! `TERRACE_MODEL_SEEDS=n` runs so many.

#[path = "model/run.rs"]
mod run;
#[path = "model/shapes.rs"]
mod shapes;

use std::sync::Arc;

use run::{Machine, Ran, Runner};
use shapes::SHAPES;
use terrace::env::simulated::{Journal, SimConfig, SimEnv};
use terrace_torture::{Replay, Rng, number};

/// Seeds of the simulated machine that are run unless told.
const SEEDS: u64 = 48;
/// Operations of each.
const OPERATIONS: usize = 2500;
/// Operations of each seed on real files, whose syncs take their time.
const REAL_OPERATIONS: usize = 800;

fn seeds(default: u64) -> Vec<u64> {
    match number("TERRACE_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("TERRACE_MODEL_SEEDS").unwrap_or(default)).collect(),
    }
}

fn simulate(seed: u64) -> Ran {
    let mut rng = Rng::new(seed);
    let journal = if rng.percent(50) { Journal::None } else { Journal::Ext4Like };
    let preemption_percent = *rng.pick(&[0, 10, 40]);
    let config = SimConfig { seed, journal, preemption_percent, ..SimConfig::default() };
    SimEnv::run(config, move |env| {
        let options = (SHAPES[seed as usize % SHAPES.len()].options)();
        let mut runner = Runner::new(Machine::Simulated(env), options, rng);
        for _ in 0..OPERATIONS {
            runner.step();
        }
        runner.finish()
    })
}

#[test]
fn the_store_answers_as_an_ordered_map_does() {
    let mut total = Ran::default();
    for seed in seeds(SEEDS) {
        let shape = SHAPES[seed as usize % SHAPES.len()].name;
        let _replay = Replay(format!("TERRACE_SEED={seed} (options {shape:?})"));
        let ran = simulate(seed);
        println!("seed {seed} ({shape}): {ran:?}");
        total.add(&ran);
    }
    println!("in all: {total:?}");
    if number("TERRACE_SEED").is_none() {
        total.assert_everything_ran(true);
    }
}

#[test]
fn a_seed_repeats_itself() {
    let fingerprint = |seed| {
        let env = SimEnv::new(SimConfig { seed, ..SimConfig::default() });
        let machine = Arc::clone(&env);
        machine.simulate(move |env| {
            let mut runner = Runner::new(Machine::Simulated(env), (SHAPES[1].options)(), Rng::new(seed));
            (0..200).for_each(|_| runner.step());
            runner.finish();
        });
        env.fingerprint()
    };
    for seed in 0..3 {
        assert_eq!(fingerprint(seed), fingerprint(seed), "seed {seed}");
    }
}

#[test]
fn the_store_answers_so_on_real_files() {
    let mut total = Ran::default();
    for seed in seeds(SHAPES.len() as u64) {
        let _replay = Replay(format!("TERRACE_SEED={seed} on real files, whose threads no seed orders"));
        let dir = tempfile::tempdir().unwrap();
        let options = (SHAPES[seed as usize % SHAPES.len()].options)();
        let mut runner = Runner::new(Machine::Real(dir.path().into()), options, Rng::new(seed));
        for _ in 0..REAL_OPERATIONS {
            runner.step();
        }
        total.add(&runner.finish());
    }
    println!("on real files: {total:?}");
    if number("TERRACE_SEED").is_none() {
        total.assert_everything_ran(false);
    }
}
