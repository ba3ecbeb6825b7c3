//! Tests of the tests: each judge notices a history that is not the store's, and the runner reports what a judge
//! notices.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrace::env::simulated::{Journal, SimConfig, SimEnv, Survival};
use terrace_torture::client::Outcome;
use terrace_torture::corruption::Patient;
use terrace_torture::corruption::damage::{Damage, Wound};
use terrace_torture::crash::Wreck;
use terrace_torture::fault;
use terrace_torture::oracle::{Change, DEFAULT};
use terrace_torture::panics::message_of;
use terrace_torture::runner::{Settings, run};
use terrace_torture::schedules::SCHEDULES;
use terrace_torture::suite::{Case, Cases, Round, Share, Suite, Tally};

/// What `judge` complains of.
fn complaint<R>(judge: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(judge)) {
        Ok(_) => panic!("the judge is content"),
        Err(panic) => message_of(&*panic),
    }
}

fn wreck() -> Wreck {
    let schedule = SCHEDULES.iter().find(|schedule| schedule.name == "flushes").expect("a schedule");
    Wreck::make(schedule, 1, Journal::None, 60)
}

#[test]
fn a_power_cut_that_takes_a_synced_write_is_noticed() {
    wreck().examine(Survival::Nothing, 1);
    let mut spoiled = wreck();
    let change = Change { space: DEFAULT, key: b"never".into(), value: Some(b"written".into()) };
    spoiled.history.batches.push((vec![change], Outcome::Acknowledged));
    spoiled.history.durable = spoiled.history.batches.len();
    let complaint = complaint(|| spoiled.examine(Survival::Nothing, 1));
    assert!(complaint.contains("made durable") || complaint.contains("no prefix"), "{complaint}");
}

#[test]
fn a_write_that_nobody_made_is_noticed() {
    let mut spoiled = wreck();
    let forgotten = spoiled.history.batches.remove(0);
    assert!(!forgotten.0.is_empty());
    let complaint = complaint(|| spoiled.examine(Survival::Everything, 1));
    assert!(complaint.contains("never written") || complaint.contains("no prefix"), "{complaint}");
}

#[test]
fn a_write_that_a_failed_call_took_is_noticed() {
    let schedule = SCHEDULES.iter().find(|schedule| schedule.name == "synced puts").expect("a schedule");
    let machine = SimEnv::new(SimConfig::default());
    let mut history = fault::run(schedule, &machine);
    fault::judge(&machine.crash(Survival::Everything), schedule, &history, 1);
    let change = Change { space: DEFAULT, key: b"key0".into(), value: Some(b"another".into()) };
    history.batches.push((vec![change], Outcome::Acknowledged));
    let complaint = complaint(|| fault::judge(&machine, schedule, &history, 1));
    assert!(complaint.starts_with("opened by another process"), "{complaint}");
}

#[test]
fn damage_that_is_taken_for_padding_and_an_answer_that_is_taken_for_another_are_noticed() {
    let mut patient = Patient::new(1);
    let path = patient.packs.keys().next().expect("a pack").clone();
    let at = patient.packs[&path].blocks[0].start;
    let wound = || Wound { path: path.clone(), damage: Damage::Byte { at, value: 0xa5 } };
    assert!(patient.suffer(&wound(), true, &Tally::default()));
    patient.packs.get_mut(&path).expect("its map").covered[at] = false;
    let complaint_of_padding = complaint(|| patient.suffer(&wound(), false, &Tally::default()));
    assert!(complaint_of_padding.contains("expected Intact"), "{complaint_of_padding}");

    patient.image.complete = Arc::default();
    let wound = Wound { damage: Damage::Grown(0), path: patient.image.files("CURRENT").swap_remove(0) };
    assert!(patient.suffer(&wound, false, &Tally::default()), "refused whatever it holds");
    let wound = Wound { damage: Damage::Grown(0), path: patient.image.files(".wal").swap_remove(0) };
    let complaint = complaint(|| patient.suffer(&wound, false, &Tally::default()));
    assert!(complaint.contains("instead of") || complaint.contains("left"), "{complaint}");
}

/// Whether the case that does not end has begun.
static IS_ENDLESS: AtomicBool = AtomicBool::new(false);

/// A suite of a right case, a wrong one, and one that may not end.
struct Planted {
    hangs: bool,
}

struct PlantedCase {
    name: &'static str,
    seed: u64,
}

impl Suite for Planted {
    fn name(&self) -> &'static str {
        "planted"
    }

    fn about(&self) -> &'static str {
        "fails"
    }

    fn cases(&self, round: &Round) -> Cases {
        let names: &[_] = if self.hangs { &["right", "endless"] } else { &["right", "wrong"] };
        let seed = round.seed;
        let case = move |&name| Box::new(PlantedCase { name, seed }) as Box<dyn Case>;
        Box::new(names.iter().map(case))
    }

    fn patience(&self) -> Duration {
        // No case is given up while it waits for a processor.
        Duration::from_secs(if IS_ENDLESS.load(Ordering::SeqCst) && self.hangs { 0 } else { 600 })
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        tally.require(&["storms"], 0)
    }
}

impl Case for PlantedCase {
    fn name(&self) -> String {
        self.name.into()
    }

    fn options(&self) -> String {
        "all of them".into()
    }

    fn run(&self, tally: &Tally) {
        tally.add("breezes", 1);
        assert!(self.name != "wrong", "seed {} is wrong", self.seed);
        if self.name == "endless" {
            IS_ENDLESS.store(true, Ordering::SeqCst);
            loop {
                std::thread::park();
            }
        }
    }
}

#[test]
fn a_failed_case_is_reported_with_its_seed_its_options_and_a_way_to_have_it_again() {
    static PLANTED: Planted = Planted { hangs: false };
    let state = run(&PLANTED, Settings { share: Share::All, ..Settings::sample(5) }, |_| {});
    assert_eq!(state.summary(), "1 passed, 2 failed");
    let report = state.failures[0].report(&PLANTED);
    for part in ["seed 5 is wrong", "all of them", "--suite planted --seed 5 --case 'wrong'\n"] {
        assert!(report.contains(part), "{report}");
    }
    let whole = &state.failures[1];
    assert!(whole.case.is_none() && whole.message.contains("0 storms"), "{whole:?}");

    let only = Settings { only: Some("wrong".into()), ..Settings::sample(6) };
    assert_eq!(run(&PLANTED, only, |_| {}).summary(), "0 passed, 1 failed");
    let only = Settings { only: Some("none".into()), ..Settings::sample(6) };
    assert_eq!(run(&PLANTED, only, |_| {}).summary(), "0 passed, 1 failed");
}

#[test]
fn a_budget_is_spent_on_further_seeds() {
    static PLANTED: Planted = Planted { hangs: false };
    let budget = Some(Duration::from_secs(3600));
    let settings = Settings { budget, jobs: 1, ..Settings::sample(5) };
    let state = run(&PLANTED, settings, |_| {});
    // It ends when there are too many failures.
    let seeds: Vec<u64> = state.failures.iter().map(|failure| failure.seed).take(20).collect();
    assert_eq!(seeds, (5..25).collect::<Vec<_>>());
}

#[test]
fn a_case_that_does_not_end_is_reported() {
    static PLANTED: Planted = Planted { hangs: true };
    let state = run(&PLANTED, Settings { jobs: 1, ..Settings::sample(5) }, |_| {});
    let endless = &state.failures[0];
    assert_eq!(endless.case.as_deref(), Some("endless"));
    assert!(endless.message.contains("does not end"), "{endless:?}");
}
