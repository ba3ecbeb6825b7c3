//! A sample of the suite `model` of `crates/torture`, whose header describes it: random operations against an ordered
//! map with versions.
//!
//! `TERRACE_SEED=n` draws other runs; `TERRACE_MODEL_SEEDS=n` makes this many runs under standard options,
//! `TERRACE_LONG=1` the whole sample.

use terrace_torture::model::{MODEL, Model, fingerprint};
use terrace_torture::runner::pass_sample;
use terrace_torture::{number, schedules};

#[test]
fn the_store_answers_as_an_ordered_map_does() {
    let standard = number("TERRACE_MODEL_SEEDS").unwrap_or(schedules(24, MODEL.standard));
    let random = schedules(8, MODEL.random);
    let simulated = Box::leak(Box::new(Model { standard, random, real: 0 }));
    pass_sample(simulated, 0);
}

#[test]
fn a_seed_repeats_itself() {
    for seed in 0..3 {
        assert_eq!(fingerprint(seed), fingerprint(seed), "seed {seed}");
    }
}

#[test]
fn the_store_answers_so_on_real_files() {
    static REAL: Model = Model { standard: 0, random: 0, ..MODEL };
    pass_sample(&REAL, 0);
}
