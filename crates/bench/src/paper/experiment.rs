//! An experiment: a figure or table of a paper, and what is needed to run it.

use std::fmt;
use std::time::Duration;

use terrace::env::simulated::DeviceModel;

use super::machine::Machine;
use super::record::{Axis, MissingSeries, Relation, Series};
use crate::Result;

/// A figure or table of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name here: the paper and the number there.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The load.
    pub workload: &'static str,
    /// The stores that the paper compares.
    pub configurations: &'static str,
    /// What is measured.
    pub metric: &'static str,
    /// What the paper finds.
    pub expected: &'static str,
    /// Name of the simulated device that is nearest to the paper's.
    pub device: &'static str,
    /// The paper's sizes are divided by this unless the user says otherwise.
    pub scale: f64,
    /// Whether it can be run.
    pub state: State,
}

impl Experiment {
    /// The paper, in a word: what stands before the first hyphen of the name.
    #[must_use]
    pub fn paper(&self) -> &'static str {
        self.id.split('-').next().unwrap_or(self.id)
    }
}

/// Whether an experiment can be run.
#[derive(Clone, Copy, Debug)]
pub enum State {
    /// It can, except for some of the paper's series.
    Runs {
        /// Runs it.
        figure: Figure,
        /// Series that the paper has and this run has not.
        missing: &'static [MissingPart],
    },
    /// It cannot, because its mechanism is missing.
    Needs(&'static [Need]),
}

/// A series of the paper and what it needs.
pub type MissingPart = (&'static str, Need);

/// Runs an experiment.
pub type Figure = fn(&Setting) -> Result<Findings>;

/// How an experiment is run.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What it runs on.
    pub machine: Machine,
    /// The paper's sizes are divided by this; at least 1.
    pub scale: f64,
    /// Names the streams of random numbers.
    pub seed: u64,
}

impl Setting {
    /// A size or number of the paper at the scale of this run, at least 1.
    #[must_use]
    pub fn scaled(&self, papers: u64) -> u64 {
        ((papers as f64 / self.scale) as u64).max(1)
    }

    /// A time of the paper at the scale of this run: with data divided by the scale, a store fills up that many times
    /// sooner.
    #[must_use]
    pub fn scaled_time(&self, papers: Duration) -> Duration {
        papers.div_f64(self.scale)
    }

    /// This setting on a device whose syncs and changes of names are shortened by the scale, for figures in which the
    /// size of a file is scaled: so the ratio of a file's barrier to its transfer stays what it was.
    #[must_use]
    pub fn with_scaled_barriers(&self) -> Self {
        let scale = self.scale;
        self.on("barriers shortened by the scale", |model| {
            model.flush_latency = model.flush_latency.div_f64(scale);
            model.metadata_latency = model.metadata_latency.div_f64(scale);
        })
    }

    /// This setting on a device whose syncs are shortened by the scale, for figures that shorten all else by phase
    /// ([`Lab::vary_device`](super::machine::Lab::vary_device)).
    #[must_use]
    pub fn with_scaled_syncs(&self) -> Self {
        let scale = self.scale;
        self.on("syncs shortened by the scale", |model| {
            model.flush_latency = model.flush_latency.div_f64(scale);
        })
    }

    /// As [`Setting::with_scaled_barriers`], and the same for reads, for figures in which only compactions read: what
    /// they find is scaled.
    #[must_use]
    pub fn with_scaled_latencies(&self) -> Self {
        let scale = self.scale;
        self.with_scaled_barriers().on("reads too", |model| {
            model.read_latency = model.read_latency.div_f64(scale);
        })
    }

    /// This setting on a device that is changed so.
    #[must_use]
    pub fn on(&self, what: &str, change: impl FnOnce(&mut DeviceModel)) -> Self {
        Self { machine: self.machine.clone().with(what, change), ..self.clone() }
    }
}

/// The result of an experiment.
#[derive(Clone, Debug)]
pub struct Findings {
    /// What all series are drawn over.
    pub x: Axis,
    /// What was measured.
    pub series: Vec<Series>,
    /// The paper's claims, compared with the measurement.
    pub relations: Vec<Relation>,
    /// Differences from the paper's set-up.
    pub deviations: Vec<&'static str>,
    /// What it ran on in the end.
    pub machine: Machine,
}

/// Something that an experiment needs and that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the text of each is in its description")]
pub enum Need {
    Peers,
    Guards,
    TortureSuite,
    UserSpaceDriver,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Peers => "other engines in the same run (terrace-compare has them)",
            Self::Guards => "a row of PebblesDB's shape, for which there is the profile `pebblesdb`",
            Self::TortureSuite => "no timing: `terrace-torture crash` tries it",
            Self::UserSpaceDriver => "a driver in user space (SPDK), or a model of one",
        })
    }
}

/// The series of a figure that were not run, for its report.
#[must_use]
pub fn missing_series(missing: &[MissingPart]) -> Vec<MissingSeries> {
    let series = |(name, need): &MissingPart| MissingSeries { name: (*name).into(), needs: need.to_string() };
    missing.iter().map(series).collect()
}
