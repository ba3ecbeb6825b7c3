//! Replays: what a pacer says about samples of the load that were taken earlier.
//!
//! The [samples](LoadSample) of a run tell what its pacer did, and what another one would have done at the same load. (Under
//! another pacer the load would have been another one from then on; a replay does not tell that.)
//!
//! It decides nothing: the pacer does (`policy/pacer/verdict.rs`).

use std::time::Duration;

use crate::engine::shared::load_sample::LoadSample;
use crate::engine::shared::pressure::StallReason;
use crate::engine::shared::settings::policy_of;
use crate::error::Result;
use crate::options::Options;
use crate::policy::{
    Admission, Deferral, JobClass, LoadClass, LoadState, Slowdown, UserLoad, Verdict, WriterVerdict,
};

/// What a pacer says about a sample: see [`replay`]. Rates are in bytes per second.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct LoadVerdict {
    /// How long the sample's interval was.
    pub interval: Duration,
    /// Whether it takes the load for high.
    pub is_high: bool,
    /// What users take of the device, as it estimates it.
    pub client_rate: u64,
    /// What compactions and rewrites may read and write together; `None` if nothing limits them.
    pub background_rate: Option<u64>,
    /// What writers may do, in words.
    pub writers: String,
    /// What it says of each class of jobs.
    pub jobs: Vec<JobVerdict>,
}

/// What a pacer says of a class of jobs.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct JobVerdict {
    /// Which jobs: `level 0`, `within level 0`, `deep` (out of the fullest level below level 0), `upkeep` or `manual`.
    pub class: &'static str,
    /// Why such a job may not start; `None` if it may.
    pub deferred: Option<&'static str>,
    /// Whether a running one waits.
    pub is_suspended: bool,
    /// The share of its time that a running one works.
    pub share: f64,
}

/// What the pacer of `options` says about `samples`, which follow one another. The first one is judged after whatever came before it in
/// the recorded run.
///
/// With the pacer that the run had, it says what that one said, if no sample is left out.
///
/// # Errors
///
/// Options that are not valid.
///
/// ```
/// use terrace::{LoadSample, Options, replay};
///
/// let sample: LoadSample = "period=1000000000 missed=300000000".parse()?;
/// let options = Options::profile("dlc-full").unwrap();
/// let verdicts = replay(&options, &[sample])?;
/// assert_eq!(verdicts[0].client_rate, 300_000_000);
/// assert!(!verdicts[0].is_high, "of the 500 MB/s that a device is taken to have");
/// # Ok::<(), terrace::Error>(())
/// ```
pub fn replay(options: &Options, samples: &[LoadSample]) -> Result<Vec<LoadVerdict>> {
    options.validate()?;
    let pacer = policy_of(options).pacer;
    let mut users = UserLoad::default();
    let mut pace = samples.first().map(|sample| sample.before).unwrap_or_default();
    let verdicts = samples.iter().map(|LoadSample { load, .. }| {
        let verdict = pacer.verdict(load, &users, &pace);
        (users, pace) = (load.users, verdict.pace);
        told(load, &verdict)
    });
    Ok(verdicts.collect())
}

fn told(load: &LoadState, verdict: &Verdict) -> LoadVerdict {
    let jobs = verdict.jobs.iter().map(|(class, admission, budget)| JobVerdict {
        class: words_of(*class),
        deferred: match admission {
            Admission::Run => None,
            Admission::Defer(reason) => Some(reason_of(*reason)),
        },
        is_suspended: budget.is_suspended,
        share: budget.share,
    });
    LoadVerdict {
        interval: load.users.period,
        is_high: verdict.pace.class == LoadClass::High,
        client_rate: verdict.pace.client_bytes_per_second,
        background_rate: verdict.pace.background_bytes_per_second,
        writers: match verdict.writer {
            WriterVerdict::Go => "go".to_owned(),
            WriterVerdict::Delay { slowdown: Slowdown::BytesPerSecond(rate), reason } => {
                format!("{rate} bytes/s: {}", StallReason::from(reason))
            }
            WriterVerdict::Delay { slowdown: Slowdown::PerWrite(time), reason } => {
                format!("{} us a write: {}", time.as_micros(), StallReason::from(reason))
            }
            WriterVerdict::Stop { reason } => format!("stop: {}", StallReason::from(reason)),
        },
        jobs: jobs.collect(),
    }
}

fn words_of(class: JobClass) -> &'static str {
    match class {
        JobClass::Level0 => "level 0",
        JobClass::IntraLevel0 => "within level 0",
        JobClass::Deep => "deep",
        JobClass::IntraLevel => "within a level",
        JobClass::Upkeep => "upkeep",
        JobClass::Manual => "manual",
    }
}

fn reason_of(deferral: Deferral) -> &'static str {
    match deferral {
        Deferral::HoldsUpWriters => "level 0 holds writers up",
        Deferral::Peak => "peak",
        Deferral::OneAtAPeak => "one at a peak",
        Deferral::Processors => "last processor",
        Deferral::Gear => "gear",
    }
}
