//! The chooser: which record an operation asks for, and how long a scan is.

use std::sync::Arc;

use super::ledger::Ledger;
use super::workload::{Operation, RequestDistribution, ScanLength, ScanLengthDistribution, Workload};
use crate::generator::{
    Exponential, Hotspot, Rng, ScrambledZipfian, Sequential, SkewedLatest, THETA, Uniform, Zipfian,
};

/// Draws the records of all operations; each load thread has a clone.
#[derive(Clone)]
pub struct Choosers {
    /// Of those that are read, by scans and before they are updated, too.
    pub asked: RecordChooser,
    /// Of those that are updated without a read.
    pub updated: RecordChooser,
}

impl Choosers {
    /// For a run of `workload` over the records that `ledger` holds, at least one.
    pub fn new(workload: &Workload, operations: Option<u64>, ledger: &Ledger) -> Self {
        let of = |requests| RecordChooser::new(requests, workload, operations, ledger);
        Self { asked: of(workload.requests), updated: of(workload.updates) }
    }
}

/// Draws existing records.
#[derive(Clone)]
pub enum RecordChooser {
    Uniform(Uniform),
    Zipfian(ScrambledZipfian),
    Latest(SkewedLatest),
    Exponential(Exponential),
    Hotspot(Hotspot),
    Sequential(Arc<Sequential>),
}

impl RecordChooser {
    fn new(
        requests: RequestDistribution,
        workload: &Workload,
        operations: Option<u64>,
        ledger: &Ledger,
    ) -> Self {
        let records = ledger.records();
        let count = records.end - records.start;
        match requests {
            RequestDistribution::Uniform => {
                Self::Uniform(Uniform::new(records.start, records.end.saturating_sub(1)))
            }
            RequestDistribution::Zipfian => {
                // As in YCSB: room for twice the expected inserts, so that popularity does not shift as they arrive.
                let inserts = operations.unwrap_or(count) as f64 * workload.mix.share(Operation::Insert);
                Self::Zipfian(ScrambledZipfian::new(records.start, count + (inserts * 2.0) as u64))
            }
            RequestDistribution::Latest => Self::Latest(SkewedLatest::new(count)),
            RequestDistribution::Exponential => Self::Exponential(Exponential::for_records(count)),
            RequestDistribution::Hotspot { data, operations } => {
                Self::Hotspot(Hotspot::new(records.start, count, data, operations))
            }
            RequestDistribution::Sequential => Self::Sequential(Arc::new(Sequential::new(0))),
        }
    }

    /// The next record; draws that do not exist (yet) are drawn again, as in YCSB.
    pub fn next(&mut self, ledger: &Ledger, rng: &mut Rng) -> u64 {
        let records = ledger.records();
        let count = records.end - records.start;
        loop {
            let record = match self {
                Self::Uniform(uniform) => Some(uniform.next(rng)),
                Self::Zipfian(zipfian) => Some(zipfian.next(rng)),
                Self::Latest(latest) => (records.end - 1).checked_sub(latest.next_age(count, rng)),
                Self::Exponential(distance) => (records.end - 1).checked_sub(distance.next(rng)),
                Self::Hotspot(hotspot) => Some(hotspot.next(rng)),
                Self::Sequential(counter) => Some(records.start + counter.next() % count),
            };
            if let Some(record) = record.filter(|record| records.contains(record)) {
                return record;
            }
        }
    }
}

/// Draws scan lengths.
#[derive(Clone)]
pub enum LengthChooser {
    Uniform(Uniform),
    Zipfian { min: u64, ranks: Zipfian },
}

impl LengthChooser {
    pub fn new(length: &ScanLength) -> Self {
        match length.distribution {
            ScanLengthDistribution::Uniform => Self::Uniform(Uniform::new(length.min, length.max)),
            ScanLengthDistribution::Zipfian => {
                Self::Zipfian { min: length.min, ranks: Zipfian::new(length.max - length.min + 1, THETA) }
            }
        }
    }

    pub fn next(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Uniform(uniform) => uniform.next(rng),
            Self::Zipfian { min, ranks } => min + ranks.next(rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::properties::Properties;
    use super::*;

    fn chooser(distribution: &str, ledger: &Ledger) -> RecordChooser {
        let text = format!("recordcount=100\ninsertproportion=0.05\nrequestdistribution={distribution}");
        let workload = Workload::from_properties(&Properties::parse("w", &text).unwrap()).unwrap();
        Choosers::new(&workload, Some(1000), ledger).asked
    }

    #[test]
    fn only_existing_records_are_chosen() {
        let ledger = Ledger::adopt(50, &[1; 100], 0);
        for distribution in ["uniform", "zipfian", "latest", "exponential", "hotspot", "sequential"] {
            let mut chooser = chooser(distribution, &ledger);
            let mut rng = Rng::new(51);
            for _ in 0..5000 {
                let record = chooser.next(&ledger, &mut rng);
                assert!((50..150).contains(&record), "{distribution}: {record}");
            }
        }
    }

    #[test]
    fn updates_have_a_distribution_of_their_own_if_they_are_given_one() {
        let ledger = Ledger::adopt(0, &[1; 100], 0);
        let text =
            "recordcount=100\nrequestdistribution=hotspot\nhotspotopnfraction=1\nupdatedistribution=uniform";
        let workload = Workload::from_properties(&Properties::parse("w", text).unwrap()).unwrap();
        let mut choosers = Choosers::new(&workload, None, &ledger);
        let mut rng = Rng::new(53);
        let mut highest =
            |chooser: &mut RecordChooser| (0..2000).map(|_| chooser.next(&ledger, &mut rng)).max();
        assert_eq!((highest(&mut choosers.asked), highest(&mut choosers.updated)), (Some(19), Some(99)));
    }

    #[test]
    fn latest_follows_inserts() {
        let ledger = Ledger::adopt(0, &[1; 100], 0);
        let mut chooser = chooser("latest", &ledger);
        let mut rng = Rng::new(52);
        let newest = |chooser: &mut RecordChooser, rng: &mut Rng, record| {
            (0..2000).filter(|_| chooser.next(&ledger, rng) == record).count()
        };
        assert!(newest(&mut chooser, &mut rng, 99) > 200);
        let record = ledger.next_insert(u64::MAX).unwrap();
        ledger.begin(record);
        ledger.acknowledge_insert(record, 1);
        assert_eq!(record, 100);
        assert!(newest(&mut chooser, &mut rng, 100) > 200);
    }
}
