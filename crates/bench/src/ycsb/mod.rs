//! The YCSB core workloads over a [`Store`], every value verified.
//!
//! 1. A [`Config`] names phases; each phase's [`Workload`] comes from the shipped file of its name, then the property
//!    files, then single properties, later ones winning.
//! 2. The phases run one after the other on one store. The `load` phase inserts every record and is followed by a
//!    drain; the others draw operations from their mix.
//! 3. A [`ledger::Ledger`] carries from phase to phase what the store must hold; every value read is held against it.
//!
//! A [`Session`] deliberately does not know the engine: anything that implements [`Store`] can be measured.

mod chooser;
pub mod keys;
pub mod ledger;
mod phase;
pub mod properties;
pub mod values;
mod worker;
pub mod workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::keys::KeyFormat;
use self::ledger::{Ledger, THREADS_MAX};
use self::phase::{PhasePlan, run_phase};
use self::properties::Properties;
use self::values::ValueFormat;
use self::workload::Workload;
use crate::Result;
use crate::report::PhaseReport;
use crate::store::{Records, Store, TerraceConfig, TerraceStore};

/// The phase that inserts the records.
pub const LOAD: &str = "load";

/// The phase that runs the given properties as they are, on top of no shipped workload.
pub const RUN: &str = "run";

/// What to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Names of phases: [`LOAD`], [`RUN`] or a shipped workload's.
    pub phases: Vec<String>,
    /// Property files, later ones winning.
    pub property_files: Vec<PathBuf>,
    /// Single properties, which win over the files.
    pub properties: Vec<(String, String)>,
    /// Records to load, in place of `recordcount`.
    pub records: Option<u64>,
    /// Operations of each phase but the load, in place of `operationcount`.
    pub operations: Option<u64>,
    /// Load threads.
    pub threads: usize,
    /// Size of a key, in place of YCSB's.
    pub key_bytes: Option<usize>,
    /// Size of a value, in place of all fields together.
    pub value_bytes: Option<usize>,
    /// Operations per second of all threads together, started on time whether or not earlier ones are done.
    pub target: Option<f64>,
    /// Time limit of each phase but the load; without `operations` it alone ends the phase.
    pub time: Option<Duration>,
    /// Names the streams of random numbers.
    pub seed: u64,
}

/// Where the store under test lives.
#[derive(Clone, Debug)]
pub enum Place {
    /// A temporary directory, removed afterwards.
    Temporary,
    /// A directory that is missing or empty; it stays.
    Fresh(PathBuf),
    /// A directory that may hold the store of an earlier run with the same key and value sizes; it stays.
    Existing(PathBuf),
}

/// The result of a run of all phases.
#[derive(Debug, Default)]
pub struct Outcome {
    /// One report for each phase that was run.
    pub reports: Vec<PhaseReport>,
    /// The first few wrong answers of each phase, described.
    pub wrong: Vec<String>,
}

/// Runs the phases that `config` names on a Terrace store in `place`, opened as `store` says; `warn` hears about
/// properties that mean nothing here, once each.
///
/// # Errors
/// An impossible configuration, a directory that must not be used, or whatever the store reports.
pub fn run(
    config: Config,
    place: &Place,
    store: &TerraceConfig,
    mut warn: impl FnMut(&str),
) -> Result<Outcome> {
    let mut session = Session::new(config, &mut warn)?;
    let temporary;
    let path: &Path = match place {
        Place::Temporary => {
            temporary = tempfile::Builder::new().prefix("terrace-bench-").tempdir()?;
            temporary.path()
        }
        Place::Fresh(path) => {
            refuse_unless_empty(path)?;
            path
        }
        Place::Existing(path) => path,
    };
    let store: Box<dyn Store> = Box::new(TerraceStore::open(path, store)?);
    if let Place::Existing(_) = place {
        session.adopt(&*store)?;
    }
    let mut outcome = Outcome::default();
    while let Some((report, wrong)) = session.run_next(&*store)? {
        outcome.wrong.extend(wrong.into_iter().map(|what| format!("{}: {what}", report.workload)));
        outcome.reports.push(report);
    }
    store.close()?;
    Ok(outcome)
}

/// Phases to be run one after the other on one store, which the caller brings, and what that store must hold.
pub struct Session {
    config: Config,
    plans: Vec<PhasePlan>,
    ledger: Ledger,
    /// Phases that have been run.
    done: usize,
}

impl Session {
    /// Plans the phases that `config` names for an empty store; `warn` hears about properties that mean nothing here.
    ///
    /// # Errors
    /// An impossible configuration; nothing is written before it is known to be possible.
    pub fn new(config: Config, warn: &mut impl FnMut(&str)) -> Result<Self> {
        let plans = plan(&config, warn)?;
        let Some(first) = plans.first() else { return Err("no phases to run".into()) };
        let ledger = Ledger::new(first.workload.insert_start);
        Ok(Self { config, plans, ledger, done: 0 })
    }

    /// Takes over `store` with the records that a session of the same key and value sizes left in it.
    ///
    /// # Errors
    /// Records that no such session wrote, or whatever the store reports.
    pub fn adopt(&mut self, store: &dyn Store) -> Result<()> {
        self.ledger = adopt(store, &self.plans[0])?;
        Ok(())
    }

    /// Runs the next phase on `store`; its report and descriptions of the first few wrong answers, or `None` when all
    /// phases are done.
    ///
    /// # Errors
    /// Whatever the store reports.
    pub fn run_next(&mut self, store: &dyn Store) -> Result<Option<(PhaseReport, Vec<String>)>> {
        let Some(plan) = self.plans.get(self.done) else { return Ok(None) };
        let index = self.done as u64;
        self.done += 1;
        run_phase(&self.config, plan, index, store, &self.ledger).map(Some)
    }
}

/// Turns names into phases and refuses what cannot be run, before anything is written.
fn plan(config: &Config, warn: &mut impl FnMut(&str)) -> Result<Vec<PhasePlan>> {
    if !(1..=THREADS_MAX).contains(&config.threads) {
        return Err(format!("{} threads: there can be 1 to {THREADS_MAX}", config.threads).into());
    }
    if config.target.is_some_and(|target| !(target.is_finite() && target > 0.0)) {
        return Err("the target must be above 0 operations per second".into());
    }
    let mut given = Properties::default();
    for path in &config.property_files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}"))?;
        given.extend(&Properties::parse(&name, &text)?);
    }
    for (name, value) in &config.properties {
        given.set(name, value);
    }
    given.unknown().for_each(|name| warn(&format!("property {name} has no meaning here")));
    let plans: Vec<_> =
        config.phases.iter().map(|name| plan_phase(config, name, &given)).collect::<Result<_>>()?;
    if let [first, rest @ ..] = &plans[..]
        && rest.iter().any(|plan| plan.shape() != first.shape())
    {
        return Err(
            "all phases must agree on insertorder, zeropadding, insertstart and the size of values".into()
        );
    }
    Ok(plans)
}

fn plan_phase(config: &Config, name: &str, given: &Properties) -> Result<PhasePlan> {
    let mut properties = match workload::shipped(name)? {
        Some(shipped) => shipped,
        None if name == RUN => Properties::default(),
        None => {
            let names: Vec<_> = workload::shipped_names().chain([RUN]).collect();
            return Err(format!("unknown phase {name:?}: there are {}", names.join(", ")).into());
        }
    };
    properties.extend(given);
    let mut workload = Workload::from_properties(&properties)?;
    workload.records = config.records.unwrap_or(workload.records);
    let operations = match (config.operations, config.time) {
        (Some(operations), _) => Some(operations),
        (None, Some(_)) => None,
        (None, None) => Some(workload.operations),
    };
    let keys = match config.key_bytes {
        Some(bytes) => KeyFormat::fixed(workload.insert_order, bytes)?,
        None => KeyFormat::ycsb(workload.insert_order, workload.zero_padding),
    };
    let last = workload.insert_start.checked_add(workload.records).ok_or("too many records")?;
    if last > keys.capacity() || workload.records > ledger::RECORDS_MAX {
        let most = keys.capacity().min(ledger::RECORDS_MAX);
        return Err(format!("{last} records: keys of this size allow {most}").into());
    }
    let values = ValueFormat::new(config.value_bytes.unwrap_or(workload.value_bytes))?;
    Ok(PhasePlan { name: name.to_owned(), workload, operations, keys, values })
}

fn refuse_unless_empty(path: &Path) -> Result<()> {
    match std::fs::read_dir(path) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => {
                Err(format!("{} is not empty; --use-existing uses it as it is", path.display()).into())
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("cannot read {}: {error}", path.display()).into()),
    }
}

/// Reads the whole store once to learn which version of each record it holds.
fn adopt(store: &dyn Store, plan: &PhasePlan) -> Result<Ledger> {
    const PAGE_RECORDS: usize = 1000;
    let first = plan.workload.insert_start;
    let (mut versions, mut logical_bytes) = (Vec::new(), 0);
    let (mut from, mut page, mut expected) = (Vec::new(), Records::default(), Vec::new());
    loop {
        page.clear();
        store.scan(&from, PAGE_RECORDS, &mut page)?;
        for (key, value) in page.iter() {
            let record = plan.values.check(value).filter(|(record, version)| {
                plan.keys.build(*record, &mut expected);
                key == expected && *record >= first && *record - first < ledger::RECORDS_MAX && *version > 0
            });
            let (record, version) = record.ok_or_else(|| {
                format!(
                    "the store holds {}, which no run with these key and value sizes wrote",
                    key.escape_ascii()
                )
            })?;
            let index = (record - first) as usize;
            versions.resize(versions.len().max(index + 1), 0);
            versions[index] = version;
            logical_bytes += (key.len() + value.len()) as u64;
            from.clear();
            from.extend_from_slice(key);
        }
        from.push(0);
        if page.len() < PAGE_RECORDS {
            break;
        }
    }
    if let Some(missing) = versions.iter().position(|&version| version == 0) {
        return Err(format!("the store holds {} records but not record {missing}", versions.len()).into());
    }
    Ok(Ledger::adopt(first, &versions, logical_bytes))
}

#[cfg(test)]
mod tests;
