//! The suite `fault`: a call that fails, each one in turn.
//!
//! Each schedule runs once to count its calls. Then it runs again and again, with one call failing, with every kind
//! of error that the machine knows, once or from then on. Every operation succeeds, or says what failed and where.
//! Reads stay right. Nothing hangs, by a watch in virtual time. Afterwards the store is opened by another process on
//! the same machine, and after a power cut: every synced write is there, and a batch that returned an error is there
//! as a whole or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrace::env::simulated::{
    FaultError, FaultRule, FaultTarget, Journal, Operation, SimConfig, SimEnv, Survival,
};
use terrace::env::{Env, Priority};

use crate::client::{Client, History, Manners, with_devices};
use crate::recovery::examine;
use crate::schedules::{SCHEDULES, Schedule};
use crate::seed::Rng;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally, shuffled, within};

/// Cases of each schedule in a sample.
const CASES_SAMPLED: usize = 120;

/// Of these, what a brief sample has of each schedule, unless it is asked for by name.
const CASES_BRIEF: usize = 12;

/// A schedule that takes longer than this virtual time hangs. (A failed job is tried again every second.)
const PATIENCE: Duration = Duration::from_secs(1800);

const ERRORS: [FaultError; 5] = [
    FaultError::Io,
    FaultError::NoSpace,
    FaultError::TooManyFiles,
    FaultError::ReadOnly,
    FaultError::Unsupported,
];

/// Operations that fail from some time on while the others go on, and how.
const STICKY: [(Operation, FaultError); 9] = [
    (Operation::Open, FaultError::TooManyFiles),
    (Operation::Create, FaultError::TooManyFiles),
    (Operation::WriteAt, FaultError::NoSpace),
    (Operation::ReadAt, FaultError::Io),
    (Operation::WriteBack, FaultError::Io),
    (Operation::Sync, FaultError::Io),
    (Operation::Remove, FaultError::Io),
    (Operation::SetLen, FaultError::NoSpace),
    (Operation::Punch, FaultError::Unsupported),
];

/// The suite.
pub struct Fault;

impl Suite for Fault {
    fn name(&self) -> &'static str {
        "fault"
    }

    fn about(&self) -> &'static str {
        "every call of every schedule fails, once and from then on, with every kind of error"
    }

    fn cases(&self, round: &Round) -> Cases {
        let Round { seed, share, .. } = *round;
        let schedules: Vec<_> = SCHEDULES.iter().filter(|schedule| round.may_want(schedule.name)).collect();
        let boxed = |case| Box::new(case) as Box<dyn Case>;
        match share {
            Share::All => {
                let all = schedules.into_iter().flat_map(|schedule| Struck::all(schedule, seed)).collect();
                Box::new(shuffled(all, seed).into_iter().map(boxed))
            }
            Share::Sample | Share::Brief => {
                let is_brief = share == Share::Brief && round.only.is_none();
                let count = if is_brief { CASES_BRIEF } else { CASES_SAMPLED };
                let sampled = move |schedule| {
                    let mut cases = shuffled(Struck::all(schedule, seed), seed);
                    cases.truncate(count);
                    cases
                };
                Box::new(schedules.into_iter().flat_map(sampled).map(boxed))
            }
        }
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        tally.require(&["runs that a fault struck"], tally.get("faults") / 2)
    }
}

/// A schedule with a fault in it.
struct Struck {
    schedule: &'static Schedule,
    seed: u64,
    journal: Journal,
    rule: FaultRule,
}

impl Struck {
    /// Every fault of a schedule that can strike.
    fn all(schedule: &'static Schedule, seed: u64) -> Vec<Self> {
        let whole = machine(seed, Journal::default());
        let history = run(schedule, &whole);
        assert_eq!(history.errors, 0, "{} fails by itself", schedule.name);
        let calls = whole.calls();
        let mut rules = Vec::new();
        for error in ERRORS {
            for sticky in [false, true] {
                // The first call starts the watch.
                rules.extend((1..calls).map(|call| FaultRule {
                    target: FaultTarget::Call(call),
                    error,
                    sticky,
                    partial: call % 2 == 1,
                }));
            }
        }
        for (operation, error) in STICKY {
            for sticky in [false, true] {
                rules.extend((0..calls / 8).map(|skipped| FaultRule {
                    target: FaultTarget::Matching { operation, path_suffix: String::new(), skipped },
                    error,
                    sticky,
                    partial: false,
                }));
            }
        }
        let journal = |at: usize| if at.is_multiple_of(2) { Journal::None } else { Journal::Ext4Like };
        let case = |(at, rule)| Self { schedule, seed, journal: journal(at), rule };
        rules.into_iter().enumerate().map(case).collect()
    }
}

impl Case for Struck {
    fn name(&self) -> String {
        let FaultRule { target, error, sticky, .. } = &self.rule;
        let target = match target {
            FaultTarget::Call(call) => format!("call {call}"),
            FaultTarget::Matching { operation, skipped, .. } => format!("{operation:?} {skipped}"),
        };
        let on = if *sticky { " and on" } else { "" };
        format!("{}/{error:?} at {target}{on}", self.schedule.name)
    }

    fn options(&self) -> String {
        format!("{:?}, {:?}, {:?}", self.journal, self.rule, (self.schedule.options)())
    }

    fn run(&self, tally: &Tally) {
        let machine = machine(self.seed, self.journal);
        machine.fault(self.rule.clone());
        let history = run(self.schedule, &machine);
        tally.add("faults", 1);
        tally.add("runs that a fault struck", u64::from(machine.faults_fired() > 0));
        machine.clear_faults();
        judge(&machine, self.schedule, &history, Rng::new(self.seed ^ machine.calls()).draw());
    }
}

/// Judges the store after a power cut, and as another process finds it. `seed` draws what survives.
pub fn judge(machine: &Arc<SimEnv>, schedule: &Schedule, history: &History, seed: u64) {
    let options = (schedule.options)();
    for survival in [Survival::Nothing, Survival::Random(seed)] {
        let what = || format!("after a power cut that {survival:?} survives");
        within(what, || examine(&machine.crash(survival), &options, history, seed));
    }
    let what = || "opened by another process".to_owned();
    within(what, || examine(machine, &options, &history.without_power_cut(), seed));
}

fn machine(seed: u64, journal: Journal) -> Arc<SimEnv> {
    with_devices(SimEnv::new(SimConfig { seed, journal, ..SimConfig::default() }))
}

/// Runs a schedule on `machine` with whatever faults it has.
pub fn run(schedule: &Schedule, machine: &Arc<SimEnv>) -> History {
    let (options, steps) = ((schedule.options)(), schedule.run);
    machine.simulate(move |env| {
        let _watch = Watch::start(&env);
        let mut client = Client::new(env, options, Manners::Tolerant);
        let _ = steps(&mut client);
        if client.is_open() {
            let _ = client.check_reads("at the end");
        }
        let _ = client.close();
        client.history
    })
}

/// A watch that panics when a simulation does not end in time, because the store waits or retries for ever.
pub struct Watch(Arc<AtomicBool>);

impl Watch {
    /// Starts watching, with the first call of the simulation.
    pub fn start(env: &Arc<SimEnv>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (env_of_watch, seen) = (env.clone(), over.clone());
        let body = move || {
            while !seen.load(Ordering::Relaxed) {
                env_of_watch.sleep(Duration::from_secs(20));
                assert!(env_of_watch.now() < PATIENCE, "the store hangs");
            }
        };
        env.spawn("watch", Priority::Normal, Box::new(body)).expect("no fault strikes the first call");
        Self(over)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
