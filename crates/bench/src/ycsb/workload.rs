//! A workload: YCSB's properties as types, with YCSB's defaults; and the workloads that come with the tool.

use super::keys::InsertOrder;
use super::properties::Properties;
use crate::Result;
use crate::generator::Rng;

/// The shipped workloads, by the name of their phase.
const SHIPPED: &[(&str, &str)] = &[
    ("load", include_str!("../../../../workloads/load")),
    ("a", include_str!("../../../../workloads/a")),
    ("b", include_str!("../../../../workloads/b")),
    ("c", include_str!("../../../../workloads/c")),
    ("d", include_str!("../../../../workloads/d")),
    ("e", include_str!("../../../../workloads/e")),
    ("f", include_str!("../../../../workloads/f")),
    ("overwrite", include_str!("../../../../workloads/overwrite")),
];

/// The properties of the shipped workload `name`.
///
/// # Errors
/// Only if a shipped file is malformed, which a test rules out.
pub fn shipped(name: &str) -> Result<Option<Properties>> {
    let found = SHIPPED.iter().find(|(shipped, _)| *shipped == name);
    found.map(|(name, text)| Properties::parse(name, text)).transpose()
}

/// Names of the shipped workloads.
pub fn shipped_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Get one record.
    Read,
    /// Replace the value of a record.
    Update,
    /// Get records in key order.
    Scan,
    /// Add a record.
    Insert,
    /// Get a record, then replace its value.
    ReadModifyWrite,
}

impl Operation {
    /// All kinds; the index of a kind is its discriminant.
    pub const ALL: [Self; 5] = [Self::Read, Self::Update, Self::Scan, Self::Insert, Self::ReadModifyWrite];

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Scan => "scan",
            Self::Insert => "insert",
            Self::ReadModifyWrite => "read_modify_write",
        }
    }
}

/// How often each operation occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Shares in the order of [`Operation::ALL`]; they sum to 1.
    shares: [f64; 5],
}

impl Mix {
    /// Nothing but `operation`.
    #[must_use]
    pub fn only(operation: Operation) -> Self {
        Self { shares: Operation::ALL.map(|one| if one == operation { 1.0 } else { 0.0 }) }
    }

    fn new(weights: [f64; 5]) -> Result<Self> {
        let sum: f64 = weights.iter().sum();
        if !(sum.is_finite() && sum > 0.0 && weights.iter().all(|&weight| weight >= 0.0)) {
            return Err("the proportions of the operations must be positive, and one of them above 0".into());
        }
        Ok(Self { shares: weights.map(|weight| weight / sum) })
    }

    /// Share of `operation`, 0 to 1.
    #[must_use]
    pub fn share(&self, operation: Operation) -> f64 {
        self.shares[operation as usize]
    }

    /// The next operation.
    pub fn next(&self, rng: &mut Rng) -> Operation {
        let mut rest = rng.next_f64();
        let mut last = Operation::Read;
        for operation in Operation::ALL {
            let share = self.share(operation);
            if share > 0.0 {
                last = operation;
                if rest < share {
                    break;
                }
                rest -= share;
            }
        }
        last
    }
}

/// Which records operations ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestDistribution {
    /// All equally.
    Uniform,
    /// A few popular ones, scattered.
    Zipfian,
    /// The newest ones most.
    Latest,
    /// The newest ones more, exponentially.
    Exponential,
    /// The first ones most: so large a part of the records takes so large a part of the operations.
    Hotspot {
        /// Part of the records, 0 to 1.
        data: f64,
        /// Part of the operations, 0 to 1.
        operations: f64,
    },
    /// One after the other, round and round.
    Sequential,
}

/// How many records a scan asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanLength {
    /// Least number.
    pub min: u64,
    /// Greatest number.
    pub max: u64,
    /// Whether short ones are (zipfian) more frequent.
    pub distribution: ScanLengthDistribution,
}

/// How scan lengths are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanLengthDistribution {
    /// All lengths equally.
    Uniform,
    /// Short ones most.
    Zipfian,
}

/// One YCSB core workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Records that the load inserts.
    pub records: u64,
    /// Number of the first of them.
    pub insert_start: u64,
    /// Operations of a run.
    pub operations: u64,
    /// Bytes of a value: all fields, one after the other.
    pub value_bytes: usize,
    /// Operations by frequency.
    pub mix: Mix,
    /// Records by popularity.
    pub requests: RequestDistribution,
    /// Records by how often they are updated without a read.
    pub updates: RequestDistribution,
    /// Lengths of scans.
    pub scan_length: ScanLength,
    /// Order of the keys.
    pub insert_order: InsertOrder,
    /// Least number of digits in a key.
    pub zero_padding: usize,
}

impl Workload {
    /// Reads a workload from its properties.
    ///
    /// # Errors
    /// A value that is malformed, impossible or not supported.
    pub fn from_properties(properties: &Properties) -> Result<Self> {
        let records: u64 = properties.get("recordcount", 0)?;
        let insert_start: u64 = properties.get("insertstart", 0)?;
        let fields: usize = properties.get("fieldcount", 10)?;
        let field_bytes: usize = properties.get("fieldlength", 100)?;
        one_of(properties, "fieldlengthdistribution", "constant", &[("constant", ())])?;
        let default_count = records.checked_sub(insert_start).ok_or("insertstart is beyond recordcount")?;
        Ok(Self {
            records: properties.get("insertcount", default_count)?,
            insert_start,
            operations: properties.get("operationcount", 0)?,
            value_bytes: fields.checked_mul(field_bytes).ok_or("fieldcount times fieldlength is too much")?,
            mix: Mix::new([
                properties.get("readproportion", 0.95)?,
                properties.get("updateproportion", 0.05)?,
                properties.get("scanproportion", 0.0)?,
                properties.get("insertproportion", 0.0)?,
                properties.get("readmodifywriteproportion", 0.0)?,
            ])?,
            requests: requests(properties, "requestdistribution", "uniform")?,
            updates: requests(
                properties,
                "updatedistribution",
                properties.text("requestdistribution", "uniform"),
            )?,
            scan_length: scan_length(properties)?,
            insert_order: one_of(
                properties,
                "insertorder",
                "hashed",
                &[("hashed", InsertOrder::Hashed), ("ordered", InsertOrder::Ordered)],
            )?,
            zero_padding: properties.get("zeropadding", 1)?,
        })
    }
}

fn requests(properties: &Properties, name: &str, default: &str) -> Result<RequestDistribution> {
    let part = |name: &str, default: f64| -> Result<f64> {
        match properties.get(name, default)? {
            part if (0.0..=1.0).contains(&part) => Ok(part),
            part => Err(format!("property {name}={part}: must be from 0 to 1").into()),
        }
    };
    let choices = [
        ("uniform", RequestDistribution::Uniform),
        ("zipfian", RequestDistribution::Zipfian),
        ("latest", RequestDistribution::Latest),
        ("exponential", RequestDistribution::Exponential),
        (
            "hotspot",
            RequestDistribution::Hotspot {
                data: part("hotspotdatafraction", 0.2)?,
                operations: part("hotspotopnfraction", 0.8)?,
            },
        ),
        ("sequential", RequestDistribution::Sequential),
    ];
    one_of(properties, name, default, &choices)
}

fn scan_length(properties: &Properties) -> Result<ScanLength> {
    let choices =
        [("uniform", ScanLengthDistribution::Uniform), ("zipfian", ScanLengthDistribution::Zipfian)];
    let length = ScanLength {
        min: properties.get("minscanlength", 1)?,
        max: properties.get("maxscanlength", 1000)?,
        distribution: one_of(properties, "scanlengthdistribution", "uniform", &choices)?,
    };
    if length.min == 0 || length.max < length.min {
        return Err("minscanlength must be at least 1 and at most maxscanlength".into());
    }
    Ok(length)
}

fn one_of<T: Copy>(properties: &Properties, name: &str, default: &str, choices: &[(&str, T)]) -> Result<T> {
    let text = properties.text(name, default);
    let found = choices.iter().find(|(choice, _)| *choice == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let choices: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        format!("property {name}={text}: supported are {}", choices.join(", ")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(name: &str) -> Workload {
        Workload::from_properties(&shipped(name).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn shipped_workloads_have_the_published_proportions() {
        for (name, shares, requests) in [
            ("a", [0.5, 0.5, 0.0, 0.0, 0.0], RequestDistribution::Zipfian),
            ("b", [0.95, 0.05, 0.0, 0.0, 0.0], RequestDistribution::Zipfian),
            ("c", [1.0, 0.0, 0.0, 0.0, 0.0], RequestDistribution::Zipfian),
            ("d", [0.95, 0.0, 0.0, 0.05, 0.0], RequestDistribution::Latest),
            ("e", [0.0, 0.0, 0.95, 0.05, 0.0], RequestDistribution::Zipfian),
            ("f", [0.5, 0.0, 0.0, 0.0, 0.5], RequestDistribution::Zipfian),
            ("overwrite", [0.0, 1.0, 0.0, 0.0, 0.0], RequestDistribution::Uniform),
        ] {
            let workload = workload(name);
            assert_eq!((workload.mix.shares, workload.requests), (shares, requests), "workload {name}");
            assert_eq!(workload.value_bytes, 1000);
        }
        let length = ScanLength { min: 1, max: 100, distribution: ScanLengthDistribution::Uniform };
        assert_eq!(workload("e").scan_length, length);
        for name in shipped_names() {
            let properties = shipped(name).unwrap().unwrap();
            assert_eq!(properties.unknown().next(), None, "workload {name}");
        }
    }

    #[test]
    fn operations_come_in_their_proportions() {
        let mix = workload("b").mix;
        let mut rng = Rng::new(41);
        let updates = (0..100_000).filter(|_| mix.next(&mut rng) == Operation::Update).count() as f64;
        assert!((updates - 5000.0).abs() < 5.0 * (5000.0_f64 * 0.95).sqrt(), "{updates} updates");
    }

    #[test]
    fn impossible_properties_are_refused() {
        for text in [
            "readproportion=0\nupdateproportion=0",
            "requestdistribution=unknown",
            "requestdistribution=hotspot\nhotspotdatafraction=1.5",
            "updatedistribution=unknown",
            "fieldlengthdistribution=uniform",
            "minscanlength=5\nmaxscanlength=4",
            "recordcount=1\ninsertstart=2",
        ] {
            assert!(Workload::from_properties(&Properties::parse("w", text).unwrap()).is_err(), "{text}");
        }
    }
}
