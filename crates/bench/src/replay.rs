//! Replays: what a pacer says about the load of a stored run.
//!
//! A run that was stored as JSON has samples of the load. Of each of them a pacer says whether jobs may start, how fast they may go on and
//! what writers may do ([`terrace::replay`]): the pacer that the run had, or another one. Samples closer than about a tenth of
//! a second are not stored, so a pacer that looks more often is not replayed exactly.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use terrace::{JobVerdict, LoadSample, LoadVerdict};

use crate::Result;
use crate::recording::{Recording, Sample};
use crate::report::table;
use crate::store::options;

/// The samples of a phase, or of a level of load.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// What it is called.
    pub name: String,
    /// The profile that the store was opened with.
    pub profile: String,
    /// In their order.
    pub samples: Vec<Sample>,
}

/// What a pacer says about the samples of a course, each with its time in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// What the course is called.
    pub name: String,
    /// The profile whose pacer it is.
    pub profile: String,
    /// Sample by sample.
    pub verdicts: Vec<(f64, LoadVerdict)>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Stored {
    phases: Vec<Phase>,
    calm: Vec<Engine>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Phase {
    profile: String,
    workload: String,
    recording: Recording,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Engine {
    profile: String,
    levels: Vec<Level>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Level {
    percent: f64,
    samples: Vec<Sample>,
}

/// The courses of a run that `terrace bench ycsb`, `terrace bench db` or `terrace bench calm` has stored.
///
/// # Errors
/// JSON that is no such run, or one without any sample.
pub fn courses(run: Value) -> Result<Vec<Course>> {
    let Stored { phases, calm } = serde_json::from_value(run)?;
    let phases = phases.into_iter().map(|phase| Course {
        name: phase.workload,
        profile: phase.profile,
        samples: phase.recording.samples,
    });
    let levels = calm.into_iter().flat_map(|engine| {
        let Engine { profile, levels } = engine;
        levels.into_iter().map(move |level| Course {
            name: format!("{} %", level.percent),
            profile: profile.clone(),
            samples: level.samples,
        })
    });
    let courses: Vec<_> = phases.chain(levels).filter(|course| !course.samples.is_empty()).collect();
    if courses.is_empty() { Err("there is no sample of the load in it".into()) } else { Ok(courses) }
}

/// What the pacer of `profile`, or that of the run, says about the samples of `course`. A profile is what
/// [`options`] takes.
///
/// # Errors
/// An unknown profile, or a sample that is none.
pub fn replay(course: &Course, profile: Option<&str>) -> Result<Replayed> {
    let profile = profile.unwrap_or(&course.profile);
    let samples: Vec<LoadSample> =
        course.samples.iter().map(|sample| sample.load.parse()).collect::<terrace::Result<_>>()?;
    let verdicts = terrace::replay(&options(profile)?, &samples)?;
    let verdicts = course.samples.iter().map(|sample| sample.at_s).zip(verdicts).collect();
    Ok(Replayed { name: course.name.clone(), profile: profile.to_owned(), verdicts })
}

impl Replayed {
    /// A table, sample by sample, below a line that sums it up.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { name, profile, verdicts } = self;
        let share = |is: &dyn Fn(&LoadVerdict) -> bool| {
            let count = verdicts.iter().filter(|(_, verdict)| is(verdict)).count();
            100.0 * count as f64 / verdicts.len().max(1) as f64
        };
        let mut text = format!(
            "{name}, {profile}: {} samples, load high in {:.0} %, writers held back in {:.0} %\n",
            verdicts.len(),
            share(&|verdict| verdict.is_high),
            share(&|verdict| verdict.writers != "go"),
        );
        let classes: Vec<_> =
            verdicts.iter().take(1).flat_map(|(_, verdict)| &verdict.jobs).map(|job| job.class).collect();
        for (at, class) in classes.iter().enumerate() {
            let put_off = share(&|verdict| verdict.jobs[at].deferred.is_some());
            let suspended = share(&|verdict| verdict.jobs[at].is_suspended);
            if put_off + suspended > 0.0 {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{class}: put off in {put_off:.0} %, suspended in {suspended:.0} %");
            }
        }
        let mut head = vec!["at s", "load", "clients MB/s", "jobs MB/s", "writers"];
        head.extend(classes);
        let rate = |rate: u64| format!("{:.1}", rate as f64 / 1e6);
        let rows: Vec<Vec<String>> = verdicts
            .iter()
            .map(|(at, verdict)| {
                let mut row = vec![
                    format!("{at:.1}"),
                    (if verdict.is_high { "high" } else { "low" }).to_owned(),
                    rate(verdict.client_rate),
                    verdict.background_rate.map_or_else(|| "free".to_owned(), rate),
                    verdict.writers.clone(),
                ];
                row.extend(verdict.jobs.iter().map(words));
                row
            })
            .collect();
        text + &table(&head, rows)
    }
}

fn words(job: &JobVerdict) -> String {
    match job.deferred {
        Some(reason) => format!("put off: {reason}"),
        None if job.is_suspended => "suspended".to_owned(),
        None if job.share < 1.0 => format!("{:.0} %", 100.0 * job.share),
        None => "run".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of 100, 320 and 100 MB/s of blocks that were missed.
    fn run() -> Value {
        let samples = [100, 320, 100].into_iter().zip(1..).map(|(megabytes, second)| {
            let load = format!("period=1000000000 missed={}", megabytes * 1_000_000);
            serde_json::json!({ "at_s": second, "load": load })
        });
        let samples: Vec<_> = samples.collect();
        serde_json::json!({
            "phases": [
                { "workload": "load", "profile": "default" },
                { "workload": "a", "profile": "dlc-full", "recording": { "samples": samples } },
            ],
            "calm": [{ "profile": "default", "levels": [{ "percent": 70.0, "samples": samples }] }],
        })
    }

    #[test]
    fn courses_are_found_and_replayed_by_their_own_or_another_pacer() {
        let courses = courses(run()).unwrap();
        let names: Vec<_> = courses.iter().map(|course| (&course.name[..], &course.profile[..])).collect();
        assert_eq!(names, [("a", "dlc-full"), ("70 %", "default")]);
        let high = |profile| {
            let replayed = replay(&courses[0], profile).unwrap();
            replayed.verdicts.iter().map(|(_, verdict)| verdict.is_high).collect::<Vec<_>>()
        };
        assert_eq!(
            high(Some("dlc-full:bandwidth=350M")),
            [false, true, true],
            "three low ones in a row end it"
        );
        assert_eq!(high(None), [false; 3], "of 500 MB/s");
        let text = replay(&courses[0], Some("dlc-full:bandwidth=350M")).unwrap().text();
        assert!(text.contains("3 samples, load high in 67 %") && text.contains("put off: peak"), "{text}");
        assert!(replay(&courses[0], Some("fancy")).is_err());
    }

    #[test]
    fn what_has_no_samples_is_refused() {
        assert!(courses(serde_json::json!({ "phases": [{ "workload": "a" }] })).is_err());
        assert!(courses(serde_json::json!([1])).is_err());
    }
}
