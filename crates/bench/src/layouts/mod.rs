//! Which layout wins where: a map over mixes of operations, sizes of data and shapes of keys, in virtual time.
//!
//! A cell of the map is one mix on one amount of data with one shape of keys. In each cell every layout does the same work on
//! the same simulated device. All else of a store (files, groups, pacer, memory) is the default's, so that only the layout
//! differs, unless a row names a whole profile. `terrace bench layouts` runs it.
//!
//! Sizes are divided by [`Choice::scale`]: at 64, a memtable of 1 MiB stands for one of 64. Blocks and records are not, so a
//! table has fewer of them, the larger the scale. Each store is loaded once for a shape and a size, in
//! random order, and every mix starts from those files with cold caches (`course.rs`). The load is a mix of its own. What a mix
//! leaves to compact is part of its time: a store that puts work off gains nothing by it.

mod course;
mod mix;
mod text;

use serde::{Deserialize, Serialize};

pub use mix::{Mix, Shape};
pub use text::text;

use crate::Result;
use crate::paper::Machine;
use crate::paper::record::DeviceRecord;
use crate::report::Provenance;
use crate::store;

/// Divides the sizes of a store unless the user gives another number.
pub const SCALE: f64 = 64.0;

/// Memory of a store in bytes, before it is divided.
pub const MEMORY_BYTES: u64 = 512 << 20;

/// Layouts that are compared unless the user names others: the name of a row, and its options ([`store::options`]). The
/// first one is what the others are held against.
pub const LAYOUTS: &[(&str, &str)] = &[
    ("default", "default"),
    ("auto", "default:layout=auto"),
    ("leveled", "default:layout=leveled"),
    ("tiered", "default:picker=levels:layout=tiered:part_bytes=64M"),
    ("lazy", "default:picker=levels:layout=tiered:last_runs=1:part_bytes=64M"),
    ("prefixed", "default:layout=prefixed:picker=components:cutter=prefix:table_bytes=4M"),
    ("guarded", "default:layout=guarded:picker=guards:cutter=guards"),
];

/// What is to be mapped.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Rows: names, and options as [`store::options`] takes them.
    pub layouts: Vec<(String, String)>,
    /// Mixes.
    pub mixes: Vec<Mix>,
    /// Shapes of keys.
    pub shapes: Vec<Shape>,
    /// Bytes of data over bytes of memory.
    pub ratios: Vec<f64>,
    /// Divides the sizes of a store, at least 1.
    pub scale: f64,
    /// Memory of each store in bytes, at the scale of the run.
    pub memory_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// The machine, simulated or real.
    pub machine: Machine,
    /// Names the streams of random numbers.
    pub seed: u64,
}

/// A map, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutMap {
    /// Where it comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Names the streams of random numbers.
    pub seed: u64,
    /// What it ran on.
    pub device: DeviceRecord,
    /// Sizes of a store were divided by this.
    pub scale: f64,
    /// Memory of each store in bytes.
    pub memory_bytes: u64,
    /// The cells, by shape, ratio and mix.
    pub layout_map: Vec<Cell>,
}

/// One mix on one amount of data with one shape of keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Shape of the keys.
    pub shape: Shape,
    /// Bytes of data over bytes of memory.
    pub ratio: f64,
    /// Mix of the operations.
    pub mix: Mix,
    /// Each layout, in the order of the rows.
    pub layouts: Vec<Measured>,
}

/// What a layout was in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Name of the row.
    pub layout: String,
    /// Operations per second, with the time of the compactions that they leave.
    pub ops_per_s: f64,
    /// 99th percentile of all operations, in microseconds.
    pub p99_us: f64,
    /// Bytes that flushes and compactions wrote, over bytes that users wrote; 0 if users wrote nothing.
    pub write_amplification: f64,
    /// Bytes read from the device for users, per operation.
    pub read_bytes_per_op: f64,
    /// Bytes of the store's tables at the end, over those of the records that live.
    pub space_amplification: f64,
}

/// A quantity of [`Measured`] by which layouts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Operations per second.
    Speed,
    /// 99th percentile.
    Tail,
    /// Write amplification.
    Writes,
    /// Bytes read per operation.
    Reads,
    /// Space amplification.
    Space,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Speed, Self::Tail, Self::Writes, Self::Reads, Self::Space];

    /// How it is called in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Speed => "operations per second",
            Self::Tail => "99th percentile",
            Self::Writes => "write amplification",
            Self::Reads => "bytes read per operation",
            Self::Space => "space amplification",
        }
    }

    /// Of a layout in a cell.
    #[must_use]
    pub fn of(self, measured: &Measured) -> f64 {
        match self {
            Self::Speed => measured.ops_per_s,
            Self::Tail => measured.p99_us,
            Self::Writes => measured.write_amplification,
            Self::Reads => measured.read_bytes_per_op,
            Self::Space => measured.space_amplification,
        }
    }

    /// How many times better `measured` is than `reference`; 1 where neither has any of it.
    #[must_use]
    pub fn advantage(self, measured: &Measured, reference: &Measured) -> f64 {
        let (mine, theirs) = (self.of(measured), self.of(reference));
        let (better, worse) = match self {
            Self::Speed => (mine, theirs),
            _ => (theirs, mine),
        };
        if better == worse { 1.0 } else { better / worse.max(f64::MIN_POSITIVE) }
    }
}

impl Cell {
    /// What the others are held against: the first row.
    #[must_use]
    pub fn reference(&self) -> Option<&Measured> {
        self.layouts.first()
    }

    /// The layout that is best by `quantity`, and how many times better than the reference it is.
    #[must_use]
    pub fn best(&self, quantity: Quantity) -> Option<(&Measured, f64)> {
        let reference = self.reference()?;
        let advantages = self.layouts.iter().map(|layout| (layout, quantity.advantage(layout, reference)));
        advantages.max_by(|one, other| one.1.total_cmp(&other.1))
    }
}

/// Runs all cells. `told` hears of each store before it is loaded.
///
/// # Errors
/// Options that do not exist; whatever a store reports, and a value that is not what was written.
pub fn run(choice: &Choice, told: &mut dyn FnMut(&str)) -> Result<LayoutMap> {
    let options = (choice.layouts.iter())
        .map(|(name, text)| Ok((name.as_str(), store::options(text)?)))
        .collect::<Result<Vec<_>>>()?;
    let mut cells = Vec::new();
    for &shape in &choice.shapes {
        for &ratio in &choice.ratios {
            let mut these: Vec<Cell> =
                (choice.mixes.iter()).map(|&mix| Cell { shape, ratio, mix, layouts: Vec::new() }).collect();
            for (name, options) in &options {
                told(&format!("{shape}, {ratio} times the memory: {name}"));
                let measured = course::run(choice, shape, ratio, options)?;
                for (cell, measured) in these.iter_mut().zip(measured) {
                    cell.layouts.push(Measured { layout: (*name).to_owned(), ..measured });
                }
            }
            cells.extend(these);
        }
    }
    Ok(LayoutMap {
        provenance: Provenance::here(),
        seed: choice.seed,
        device: choice.machine.record(),
        scale: choice.scale,
        memory_bytes: choice.memory_bytes,
        layout_map: cells,
    })
}

#[cfg(test)]
mod tests;
