//! The suite `crash`: power cuts at every call that changes the disk.
//!
//! Each schedule runs once to count its mutating calls, then once for each of them, with the power cut there. Of what
//! was not synced nothing, everything or a random part survives, under two models of a file system. The remains must
//! open without an error, hold every synced write, and be a prefix of the history. The store then goes on, loses
//! power again, and is judged again. For one survival of each cut, the power is also cut at every mutating call of
//! the opening that recovers the store; the result must equal that of the whole recovery.

use std::sync::Arc;

use terrace::env::simulated::{Journal, SimConfig, SimEnv, Survival};

use crate::client::{Client, History, Jobs, Manners, difference, open, with_devices};
use crate::oracle::Dump;
use crate::recovery::examine;
use crate::schedules::{SCHEDULES, Schedule};
use crate::seed::Rng;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally, sample, shuffled, within};

const JOURNALS: [Journal; 2] = [Journal::Ext4Like, Journal::None];

/// Random survivals of each cut.
const RANDOM_SURVIVALS: u64 = 16;

/// Random survivals of each cut that a sample is drawn from: few, so that those where nothing survives are many.
const RANDOM_SURVIVALS_SAMPLED: u64 = 4;

/// Images of a schedule in a sample, second cuts, and the first cuts that those follow.
const IMAGES_SAMPLED: usize = 300;
const SECOND_CUTS_SAMPLED: usize = 60;
const RECOVERIES_SAMPLED: usize = 6;

/// A sample of all schedules runs one in this many of the drawn images, and a brief one, for which `cargo test` waits,
/// one in that many. A schedule or a case that is asked for by name, as by the planted bugs and by the report of a
/// failure, runs all drawn images, and so those as well.
pub const ALL_SCHEDULES_STRIDE: usize = 3;
pub const BRIEF_STRIDE: usize = 12;

/// The suite.
pub struct Crash;

impl Suite for Crash {
    fn name(&self) -> &'static str {
        "crash"
    }

    fn about(&self) -> &'static str {
        "power cuts at every mutating call of every schedule, and again in the recovery"
    }

    fn cases(&self, round: &Round) -> Cases {
        let Round { seed, share, .. } = *round;
        let schedules = SCHEDULES.iter().filter(|schedule| round.may_want(schedule.name));
        let boxed = |case| Box::new(case) as Box<dyn Case>;
        match share {
            Share::All => {
                let cuts = schedules.flat_map(|schedule| Cut::all(schedule, seed)).collect();
                Box::new(shuffled(cuts, seed).into_iter().map(boxed))
            }
            Share::Sample | Share::Brief => {
                let schedules: Vec<_> = schedules.collect();
                let stride = match share {
                    _ if round.only.is_some() => 1,
                    Share::Brief => BRIEF_STRIDE,
                    _ => ALL_SCHEDULES_STRIDE,
                };
                let sampled = move |schedule| Cut::sampled(schedule, seed, stride);
                Box::new(schedules.into_iter().flat_map(sampled).map(boxed))
            }
        }
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        tally.require(&[IMAGES, RECOVERY_IMAGES], 100)
    }
}

/// What is counted.
const IMAGES: &str = "images";
const RECOVERY_IMAGES: &str = "images of recoveries";

/// A power cut, and the survivals to try.
struct Cut {
    schedule: &'static Schedule,
    seed: u64,
    journal: Journal,
    /// Mutating calls before it.
    cut: u64,
    survivals: Vec<Survival>,
    /// Survivals whose recovery is cut too, each with the most calls at which that is done.
    recoveries: Vec<(Survival, usize)>,
}

/// The survivals that belong to a cut; `random` of them are random.
fn survivals(seed: u64, cut: u64, random: u64) -> Vec<Survival> {
    let random = (0..random).map(|n| Survival::Random(seed ^ cut << 20 ^ n << 50));
    [Survival::Nothing, Survival::Everything].into_iter().chain(random).collect()
}

impl Cut {
    /// All cuts of a schedule, and all of each.
    fn all(schedule: &'static Schedule, seed: u64) -> Vec<Self> {
        let mut cuts = Self::bare(schedule, seed);
        for cut in &mut cuts {
            cut.survivals = survivals(seed, cut.cut, RANDOM_SURVIVALS);
            let first = *Rng::new(seed ^ cut.cut).pick(&cut.survivals);
            cut.recoveries.push((first, usize::MAX));
        }
        cuts
    }

    /// All cuts of a schedule, with nothing to try.
    fn bare(schedule: &'static Schedule, seed: u64) -> Vec<Self> {
        let of_journal = |journal| {
            // One more than there are calls: the power goes after the last.
            (0..=mutations(schedule, seed, journal)).map(move |cut| Self {
                schedule,
                seed,
                journal,
                cut,
                survivals: Vec::new(),
                recoveries: Vec::new(),
            })
        };
        JOURNALS.into_iter().flat_map(of_journal).collect()
    }

    /// A seeded sample of the cuts of a schedule, and of the survivals of each; one in `stride` of those drawn.
    fn sampled(schedule: &'static Schedule, seed: u64, stride: usize) -> Vec<Self> {
        let mut cuts = Self::bare(schedule, seed);
        let of_cut = |(at, cut): (usize, &Self)| {
            survivals(seed, cut.cut, RANDOM_SURVIVALS_SAMPLED).into_iter().map(move |survival| (at, survival))
        };
        let mut images: Vec<_> = cuts.iter().enumerate().flat_map(of_cut).collect();
        let mut firsts = images.clone();
        sample(&mut images, IMAGES_SAMPLED, &mut Rng::new(seed));
        sample(&mut firsts, RECOVERIES_SAMPLED, &mut Rng::new(seed));
        images.into_iter().step_by(stride).for_each(|(at, survival)| cuts[at].survivals.push(survival));
        let seconds = SECOND_CUTS_SAMPLED / RECOVERIES_SAMPLED;
        firsts
            .into_iter()
            .step_by(stride)
            .for_each(|(at, survival)| cuts[at].recoveries.push((survival, seconds)));
        cuts.retain(|cut| !cut.survivals.is_empty() || !cut.recoveries.is_empty());
        cuts
    }
}

impl Case for Cut {
    fn name(&self) -> String {
        format!("{}/{:?}/{}", self.schedule.name, self.journal, self.cut)
    }

    fn options(&self) -> String {
        format!("{:?}", (self.schedule.options)())
    }

    fn run(&self, tally: &Tally) {
        let wreck = Wreck::make(self.schedule, self.seed, self.journal, self.cut);
        for &survival in &self.survivals {
            within(|| format!("{survival:?} survives"), || wreck.examine(survival, self.cut));
            tally.add(IMAGES, 1);
        }
        for &(first, cuts_max) in &self.recoveries {
            let tried =
                within(|| format!("{first:?} survives"), || wreck.cut_recoveries(first, cuts_max, self.seed));
            tally.add(RECOVERY_IMAGES, tried);
        }
    }
}

/// A machine at the moment of a power cut, and what its client knew.
pub struct Wreck {
    pub schedule: &'static Schedule,
    pub machine: Arc<SimEnv>,
    pub history: History,
}

impl Wreck {
    /// Runs a schedule up to the mutating call `cut`.
    #[must_use]
    pub fn make(schedule: &'static Schedule, seed: u64, journal: Journal, cut: u64) -> Self {
        let machine = machine(seed, journal);
        machine.cut_after(cut);
        let (history, _) = run(schedule, &machine);
        Self { schedule, machine, history }
    }

    /// Judges the remains, with this survival.
    pub fn examine(&self, survival: Survival, seed: u64) -> Dump {
        let history = match survival {
            // As if the process alone had died.
            Survival::Everything => self.history.without_power_cut(),
            _ => self.history.clone(),
        };
        examine(&self.machine.crash(survival), &(self.schedule.options)(), &history, seed)
    }

    /// Cuts the recovery of the remains at each of its mutating calls, or at a seeded sample of `cuts_max` of them,
    /// and judges the result. Returns how many were tried.
    fn cut_recoveries(&self, first: Survival, cuts_max: usize, seed: u64) -> u64 {
        let options = (self.schedule.options)();
        let expected = examine(&self.machine.crash(first), &options, &self.history, 0);
        let whole = self.machine.crash(first);
        recover(self.schedule, &whole);
        let mut rng = Rng::new(seed ^ self.machine.mutations() << 32);
        let mut cuts: Vec<u64> = (0..whole.mutations()).collect();
        sample(&mut cuts, cuts_max, &mut rng);
        for &cut in &cuts {
            let survival = *rng.pick(&survivals(seed, cut, RANDOM_SURVIVALS_SAMPLED));
            let what = || format!("power cut again at call {cut} of the recovery, {survival:?} survives");
            within(what, || {
                let image = self.machine.crash(first);
                image.cut_after(cut);
                recover(self.schedule, &image);
                let found = examine(&image.crash(survival), &options, &self.history, cut);
                let difference = || difference(&expected, &found);
                assert!(
                    found == expected,
                    "a power cut in recovery changes what is recovered: {}",
                    difference()
                );
            });
        }
        cuts.len() as u64
    }
}

fn machine(seed: u64, journal: Journal) -> Arc<SimEnv> {
    with_devices(SimEnv::new(SimConfig { seed, journal, ..SimConfig::default() }))
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

/// Opens and closes the store, as far as that goes.
fn recover(schedule: &Schedule, image: &Arc<SimEnv>) {
    let options = (schedule.options)();
    image.simulate(move |env| {
        let _ = open(&env, &options).and_then(|db| db.wait_idle().and_then(|()| db.close()));
    });
}

/// A hash of all that a machine did in a schedule without cuts.
#[must_use]
pub fn fingerprint(schedule: &Schedule, seed: u64) -> u64 {
    let machine = machine(seed, Journal::default());
    run(schedule, &machine);
    machine.fingerprint()
}

/// Names of the images that a sample of one in `stride` tries.
#[must_use]
pub fn sampled_images(schedule: &'static Schedule, seed: u64, stride: usize) -> Vec<String> {
    let cuts = Cut::sampled(schedule, seed, stride).into_iter();
    let named = cuts.flat_map(|cut| {
        let place = format!("{:?} {}", cut.journal, cut.cut);
        let images = cut.survivals.into_iter().map(|survival| format!("{survival:?}"));
        let seconds = cut.recoveries.into_iter().map(|recovery| format!("{recovery:?}"));
        images.chain(seconds).map(|image| format!("{place} {image}")).collect::<Vec<_>>()
    });
    named.collect()
}
