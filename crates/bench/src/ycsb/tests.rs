//! Tests: whole runs of small workloads, and the distribution of what they choose.

use std::collections::BTreeMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::store::Counters;

/// An ordered map that serves as a store, honest or with one planted bug.
#[derive(Default)]
struct MapStore {
    map: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
    bug: Option<Bug>,
    calls: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
enum Bug {
    LosesPuts,
    DamagesValues,
    ScansStartLate,
    ScansEndEarly,
    ScansDescend,
}

impl MapStore {
    fn with(bug: Bug) -> Self {
        Self { bug: Some(bug), ..Self::default() }
    }

    /// Whether this call, one in fifty, is to go wrong.
    fn fails(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) % 50 == 49
    }
}

impl Store for MapStore {
    fn engine(&self) -> &str {
        "map"
    }

    fn profile(&self) -> &str {
        "none"
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let map = self.map.read().unwrap();
        let found = map.get(key);
        found.inspect(|found| value.extend_from_slice(found));
        if matches!(self.bug, Some(Bug::DamagesValues)) && self.fails() {
            value[20] ^= 1;
        }
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if !(matches!(self.bug, Some(Bug::LosesPuts)) && self.fails()) {
            self.map.write().unwrap().insert(key.to_vec(), value.to_vec());
        }
        Ok(())
    }

    fn scan(&self, from: &[u8], limit: usize, records: &mut Records) -> Result<()> {
        let fails = self.bug.is_some() && self.fails();
        let (skip, limit) = match self.bug {
            Some(Bug::ScansStartLate) if fails => (1, limit),
            Some(Bug::ScansEndEarly) if fails => (0, limit - 1),
            _ => (0, limit),
        };
        let map = self.map.read().unwrap();
        let mut found: Vec<_> = map.range(from.to_vec()..).skip(skip).take(limit).collect();
        if matches!(self.bug, Some(Bug::ScansDescend)) && fails {
            found.reverse();
        }
        found.into_iter().for_each(|(key, value)| records.push(key, value));
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn config(phases: &[&str]) -> Config {
    Config {
        phases: phases.iter().map(|&phase| phase.to_owned()).collect(),
        property_files: Vec::new(),
        properties: Vec::new(),
        records: Some(500),
        operations: Some(2000),
        threads: 1,
        key_bytes: None,
        value_bytes: Some(50),
        target: None,
        time: None,
        seed: 1,
    }
}

fn run_on(store: &dyn Store, config: &Config) -> Result<Vec<PhaseReport>> {
    let mut session = Session::new(config.clone(), &mut |_: &str| ())?;
    std::iter::from_fn(|| session.run_next(store).transpose()).map(|phase| Ok(phase?.0)).collect()
}

#[test]
fn honest_store_is_never_wrong() {
    for threads in [1, 4] {
        let config = Config { threads, ..config(&["load", "a", "b", "c", "f", "d", "e"]) };
        let reports = run_on(&MapStore::default(), &config).unwrap();
        assert_eq!(reports[0].operations, 500);
        for report in &reports[1..] {
            assert_eq!((report.operations, report.wrong), (2000, 0), "{report:?}");
            assert!(report.verified > 900, "{report:?}");
        }
        assert!(reports[6].records > 500, "D and E insert");
    }
}

#[test]
fn planted_bugs_are_found() {
    for (bug, phases) in [
        (Bug::LosesPuts, ["load", "a"]),
        (Bug::DamagesValues, ["load", "c"]),
        (Bug::ScansStartLate, ["load", "e"]),
        (Bug::ScansEndEarly, ["load", "e"]),
        (Bug::ScansDescend, ["load", "e"]),
    ] {
        let reports = run_on(&MapStore::with(bug), &config(&phases)).unwrap();
        assert!(reports[1].wrong > 0, "{bug:?} goes unseen: {:?}", reports[1]);
    }
}

#[test]
fn one_thread_replays_from_its_seed() {
    let contents = |seed| {
        let store = MapStore::default();
        run_on(&store, &Config { seed, ..config(&["load", "a", "e"]) }).unwrap();
        store.map.into_inner().unwrap()
    };
    assert_eq!(contents(3), contents(3));
    assert_ne!(contents(3), contents(4));
}

#[test]
fn time_alone_ends_a_phase_without_operations() {
    let time = Some(Duration::from_millis(50));
    let config = Config { operations: None, time, ..config(&["load", "c"]) };
    let reports = run_on(&MapStore::default(), &config).unwrap();
    assert_eq!(reports[0].operations, 500, "the load runs to its end");
    assert!(reports[1].seconds >= 0.05, "{} s", reports[1].seconds);
}

#[test]
fn open_loop_keeps_its_pace() {
    let config = Config { operations: Some(100), target: Some(2000.0), ..config(&["load", "c"]) };
    let config = Config { records: Some(10), threads: 2, ..config };
    let reports = run_on(&MapStore::default(), &config).unwrap();
    assert!(reports[1].seconds >= 0.049, "100 operations at 2000/s took {} s", reports[1].seconds);
}

#[test]
fn impossible_plans_are_refused() {
    let refusal = |config: Config| run_on(&MapStore::default(), &config).unwrap_err().to_string();
    assert!(refusal(config(&["load", "z"])).contains("unknown phase"));
    assert!(refusal(config(&["a"])).contains("needs records"));
    assert!(refusal(Config { threads: 0, ..config(&["load"]) }).contains("threads"));
    assert!(refusal(Config { key_bytes: Some(6), ..config(&["load"]) }).contains("keys of this size"));
    assert!(refusal(Config { value_bytes: Some(5), ..config(&["load"]) }).contains("values of 5 bytes"));
    assert!(refusal(Config { target: Some(0.0), ..config(&["load"]) }).contains("target"));
}

#[test]
fn inserts_stop_when_keys_of_a_size_are_used_up() {
    let properties = vec![("insertproportion".to_owned(), "1".to_owned())];
    let config = Config { key_bytes: Some(7), properties, operations: Some(600), ..config(&["load", "run"]) };
    let error = run_on(&MapStore::default(), &config).unwrap_err().to_string();
    assert!(error.contains("used up"), "{error}");
}

#[test]
fn meaningless_properties_are_warned_about_once() {
    let properties = vec![("hotness".to_owned(), "3".to_owned())];
    let mut warnings = Vec::new();
    plan(&Config { properties, ..config(&["load", "a"]) }, &mut |warning: &str| {
        warnings.push(warning.to_owned())
    })
    .map(|_| ())
    .unwrap();
    assert_eq!(warnings, ["property hotness has no meaning here"]);
}

#[test]
fn adopted_store_is_verified_from_where_it_was_left() {
    let store = MapStore::default();
    let config = config(&["load", "a"]);
    run_on(&store, &config).unwrap();
    let plans = plan(&config, &mut |_| ()).unwrap();
    let ledger = adopt(&store, &plans[1]).unwrap();
    assert_eq!(ledger.records(), 0..500);
    let (report, _) = run_phase(&config, &plans[1], 9, &store, &ledger).unwrap();
    assert_eq!((report.operations, report.wrong), (2000, 0));

    store.put(b"foreign", b"value").unwrap();
    assert!(adopt(&store, &plans[1]).is_err());
}
