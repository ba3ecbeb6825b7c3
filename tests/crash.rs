//! Power cuts at every call that changes the disk.
//!
//! Each schedule is run once to count its mutating calls, then again for each of them, with the power cut there. Of
//! what was not synced nothing, everything or a random part survives, under two models of a file system. Whatever is
//! left must open without an error, hold every synced write, and be a prefix of the history; the store then lives on,
//! loses power again, and is judged again. For a sample of what is left, the power is cut once more at every call of
//! the opening that recovers it.
//!
//! `TERRACE_CRASH_FULL=1` leaves nothing out; otherwise a seeded share of the images is tried. `TERRACE_SEED=n` draws
//! another schedule of the threads, other survivors and another share; `TERRACE_CRASH_ONLY=name` runs one schedule.

mod common;

use std::fmt;
use std::sync::Arc;

use common::client::{Client, History, Jobs, Manners, open};
use common::recovery::examine;
use common::schedules::{SCHEDULES, Schedule};
use common::{Replay, Rng, seed_or, switched_on};
use terrace::env::simulated::{Journal, SimConfig, SimEnv, Survival};

const JOURNALS: [Journal; 2] = [Journal::Ext4Like, Journal::None];

/// Random survivals tried of each cut in a full run.
const RANDOM_SURVIVALS: u64 = 4;

/// Images of each schedule that are tried unless everything is.
const IMAGES_SAMPLED: usize = 300;
/// Second cuts of each schedule that are tried unless all are.
const SECOND_CUTS_SAMPLED: usize = 60;
/// First cuts of each schedule whose recovery is cut in a full run.
const RECOVERIES_FULL: usize = 24;

/// A machine at the moment of a power cut, and what its client knew.
struct Wreck {
    machine: Arc<SimEnv>,
    history: History,
}

/// Names a case, to run it again.
#[derive(Clone, Copy)]
struct Case {
    schedule: &'static str,
    seed: u64,
    journal: Journal,
    cut: u64,
    survival: Survival,
    second_cut: Option<(u64, Survival)>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedule, seed, journal, cut, survival, second_cut } = self;
        write!(f, "TERRACE_SEED={seed} TERRACE_CRASH_FULL=1 TERRACE_CRASH_ONLY={schedule:?}: ")?;
        write!(f, "{journal:?}, power cut at mutating call {cut}, {survival:?} survives")?;
        if let Some((cut, survival)) = second_cut {
            write!(f, "; again at call {cut} of the recovery, {survival:?} survives")?;
        }
        Ok(())
    }
}

fn machine(seed: u64, journal: Journal) -> Arc<SimEnv> {
    SimEnv::new(SimConfig { seed, journal, ..SimConfig::default() })
}

/// Runs a schedule until the power is cut, if it is.
fn run(schedule: &Schedule, machine: &Arc<SimEnv>) -> (History, Jobs) {
    let (options, steps) = ((schedule.options)(), schedule.run);
    machine.simulate(move |env| {
        let mut client = Client::new(env, options, Manners::Strict);
        let ended = steps(&mut client);
        let history = client.history.clone();
        if ended.is_ok() {
            // The jobs of the last opening count, too. What closing makes durable does not.
            let _ = client.close();
        }
        (history, client.jobs)
    })
}

fn wreck(schedule: &Schedule, seed: u64, journal: Journal, cut: u64) -> Wreck {
    let machine = machine(seed, journal);
    machine.cut_after(cut);
    let (history, _) = run(schedule, &machine);
    Wreck { machine, history }
}

/// Mutating calls of a schedule, once it is known to do what it should.
fn mutations(schedule: &Schedule, seed: u64, journal: Journal) -> u64 {
    let machine = machine(seed, journal);
    let (history, jobs) = run(schedule, &machine);
    assert_eq!(history.errors, 0, "{} fails by itself", schedule.name);
    assert!(
        (schedule.proof)(&jobs, &machine),
        "{} is not what it is named: {jobs:?}, {:?}",
        schedule.name,
        machine.files()
    );
    machine.mutations()
}

fn survivals(seed: u64, cut: u64) -> Vec<Survival> {
    let random = (0..RANDOM_SURVIVALS).map(|n| Survival::Random(seed ^ cut << 20 ^ n << 50));
    [Survival::Nothing, Survival::Everything].into_iter().chain(random).collect()
}

/// Every case of a schedule, or a seeded share of them.
fn cases(schedule: &Schedule, seed: u64, rng: &mut Rng, share: Option<usize>) -> Vec<Case> {
    let mut cases = Vec::new();
    for journal in JOURNALS {
        // One more than there are calls: the power goes after the last.
        for cut in 0..=mutations(schedule, seed, journal) {
            cases.extend(survivals(seed, cut).into_iter().map(|survival| Case {
                schedule: schedule.name,
                seed,
                journal,
                cut,
                survival,
                second_cut: None,
            }));
        }
    }
    if let Some(share) = share {
        sample(&mut cases, share, rng);
    }
    cases
}

/// Keeps `count` of `list`, drawn one from each of as many equal stretches.
fn sample<T>(list: &mut Vec<T>, count: usize, rng: &mut Rng) {
    if list.len() <= count {
        return;
    }
    let len = list.len();
    let chosen: Vec<usize> = (0..count)
        .map(|at| {
            let (start, end) = (at * len / count, (at + 1) * len / count);
            start + rng.below(end - start)
        })
        .collect();
    let mut index = 0;
    list.retain(|_| {
        index += 1;
        chosen.binary_search(&(index - 1)).is_ok()
    });
}

fn chosen_schedules() -> impl Iterator<Item = &'static Schedule> {
    let only = std::env::var("TERRACE_CRASH_ONLY").ok();
    SCHEDULES.iter().filter(move |schedule| only.as_deref().is_none_or(|only| only == schedule.name))
}

/// Runs `cases`, grouped by cut so that a schedule is run once for each.
fn try_images(schedule: &Schedule, cases: &[Case]) -> usize {
    let mut last: Option<((Journal, u64), Wreck)> = None;
    for case in cases {
        let place = (case.journal, case.cut);
        if last.as_ref().is_none_or(|(at, _)| *at != place) {
            last = None;
        }
        let (_, wreck) =
            last.get_or_insert_with(|| (place, wreck(schedule, case.seed, case.journal, case.cut)));
        let _replay = Replay(*case);
        let image = wreck.machine.crash(case.survival);
        let history = match case.survival {
            // As if the process alone had died.
            Survival::Everything => wreck.history.without_power_cut(),
            _ => wreck.history.clone(),
        };
        examine(&image, &(schedule.options)(), &history, case.cut);
    }
    cases.len()
}

#[test]
fn a_schedule_repeats_itself() {
    for schedule in chosen_schedules() {
        let fingerprint = || {
            let machine = machine(7, Journal::default());
            run(schedule, &machine);
            machine.fingerprint()
        };
        let first = fingerprint();
        assert!((0..3).all(|_| fingerprint() == first), "{} has a choice that no seed makes", schedule.name);
    }
}

#[test]
fn a_power_cut_leaves_a_prefix_with_all_that_was_synced() {
    let (seed, full) = (seed_or(1), switched_on("TERRACE_CRASH_FULL"));
    let mut total = 0;
    for schedule in chosen_schedules() {
        let mut rng = Rng::new(seed);
        let cases = cases(schedule, seed, &mut rng, (!full).then_some(IMAGES_SAMPLED));
        let tried = try_images(schedule, &cases);
        println!("{}: {tried} images", schedule.name);
        total += tried;
    }
    println!("{total} images in all");
}

/// Cuts the recovery of one image at call `cut` of it, if it has so many, and judges what is left.
fn cut_recovery(schedule: &Schedule, wreck: &Wreck, case: &Case, expected: &common::oracle::Dump) {
    let (cut, survival) = case.second_cut.expect("a second cut");
    let image = wreck.machine.crash(case.survival);
    image.cut_after(cut);
    recover(schedule, &image);
    let second = image.crash(survival);
    let found = examine(&second, &(schedule.options)(), &wreck.history, cut);
    let difference = || common::client::difference(expected, &found);
    assert!(found == *expected, "a power cut in recovery changes what is recovered: {}", difference());
}

/// Opens and closes the store, as far as that goes.
fn recover(schedule: &Schedule, image: &Arc<SimEnv>) {
    let options = (schedule.options)();
    image.simulate(move |env| {
        let _ = open(&env, &options).and_then(|db| db.wait_idle().and_then(|()| db.close()));
    });
}

#[test]
fn a_power_cut_during_recovery_changes_nothing() {
    let (seed, full) = (seed_or(2), switched_on("TERRACE_CRASH_FULL"));
    let mut total = 0;
    for schedule in chosen_schedules() {
        let mut rng = Rng::new(seed);
        let firsts = if full { RECOVERIES_FULL } else { 6 };
        let cuts_each = if full { usize::MAX } else { SECOND_CUTS_SAMPLED / firsts };
        let mut tried = 0;
        for case in cases(schedule, seed, &mut rng, Some(firsts)) {
            let wreck = wreck(schedule, case.seed, case.journal, case.cut);
            let _replay = Replay(case);
            let whole = wreck.machine.crash(case.survival);
            let expected =
                examine(&wreck.machine.crash(case.survival), &(schedule.options)(), &wreck.history, 0);
            recover(schedule, &whole);
            let mut cuts: Vec<u64> = (0..whole.mutations()).collect();
            sample(&mut cuts, cuts_each, &mut rng);
            for cut in cuts {
                let survivals = survivals(seed, cut);
                let few = if full { &survivals[..3] } else { std::slice::from_ref(rng.pick(&survivals)) };
                for &survival in few {
                    let case = Case { second_cut: Some((cut, survival)), ..case };
                    let _replay = Replay(case);
                    cut_recovery(schedule, &wreck, &case, &expected);
                    tried += 1;
                }
            }
        }
        println!("{}: {tried} images of recoveries", schedule.name);
        total += tried;
    }
    println!("{total} images of recoveries in all");
}
