//! Skewed reads on two devices, of which the fast one holds a tenth of the data: do the tables that are read come near?
//!
//! The comparison is that of Qiu et al., "HotRAP: Hot Record Retention and Promotion for LSM-trees with Tiered Storage" (2024): a small
//! fast device, a large slow one, and nearly all reads in a twentieth of the keys. Here the hot keys are neighbours.

use std::sync::Arc;
use std::time::Duration;

use terrace::Options;
use terrace::env::simulated::DeviceModel;
use terrace::tree::{Placer, Unit};

use super::nvme::{self, Disks};
use super::{memory_for, series};
use crate::Result;
use crate::generator::{Hotspot, Rng};
use crate::paper::client::{Client, Records};
use crate::paper::experiment::{Findings, Setting};
use crate::paper::machine::{Body, Lab};
use crate::paper::record::{Axis, Relation};
use crate::workload::Action;
use crate::ycsb::keys::InsertOrder;

const READERS: u64 = 16;

/// Part of the keys that is hot, and of the reads that go there.
const HOT_KEYS: f64 = 0.05;
const HOT_READS: f64 = 0.98;

/// A disk for which reads wait 4.5 times as long as for the fast one.
fn slow() -> DeviceModel {
    DeviceModel { read_latency: nvme::fast().read_latency * 9 / 2, ..nvme::slow() }
}

/// Reads a second once tables have had the time to move, with all keys read alike or a few of them.
fn reads_per_second(setting: &Setting, opened: Options, is_skewed: bool) -> Result<f64> {
    let records = setting.scaled(nvme::RECORDS);
    let disks = Disks::Two(nvme::fast(), slow());
    nvme::run(setting, disks, move |lab: &Lab| {
        let db = nvme::open(lab, disks, opened)?;
        let format = Arc::new(Records::new(InsertOrder::Ordered, nvme::KEY_BYTES, nvme::VALUE_BYTES)?);
        lab.limit_free_bytes(records * 1024 / 10)?;
        format.ingest_range(&db, 0..records)?;
        db.wait_idle()?;
        let read = |count: u64| -> Result<f64> {
            let reader = |reader: u64| -> Body<()> {
                let mut client = Client::new(lab, &db, format.clone());
                let mut rng = Rng::stream(1, reader);
                let (from, width) = if is_skewed { (records / 2, records / 2) } else { (0, records) };
                let hot = Hotspot::new(from, width, if is_skewed { 2.0 * HOT_KEYS } else { 1.0 }, HOT_READS);
                Box::new(move || {
                    for _ in 0..count / READERS {
                        // What is not hot is anywhere.
                        let is_cold = is_skewed && rng.below(100) >= (HOT_READS * 100.0) as u64;
                        let n = if is_cold { rng.below(records) } else { hot.next(&mut rng) };
                        client.perform(Action::Get(n))?;
                    }
                    Ok(())
                })
            };
            let before = lab.env().now();
            lab.threads((0..READERS).map(reader).collect())?;
            Ok(count as f64 / (lab.env().now() - before).as_secs_f64())
        };
        // Rounds with pauses, so that the store looks.
        for _ in 0..8 {
            read(records / 2)?;
            lab.env().sleep(Duration::from_secs(1));
        }
        let rate = read(records)?;
        db.close()?;
        Ok(rate)
    })
}

/// Reads of all keys and of a few, by placer (`nvme-heat`).
pub fn skewed_reads(setting: &Setting) -> Result<Findings> {
    let unit = Unit::Table;
    let placers = [
        ("Mod2", Placer::Mod { n: 2, unit }),
        ("dynamic", Placer::Dynamic { unit }),
        ("heat", Placer::Heat { unit }),
    ];
    let mut lines = Vec::new();
    let mut found = Vec::new();
    for (name, placer) in placers {
        let mut with = nvme::options(placer, 256 << 10, false);
        with.memory_bytes = Some(memory_for(2 << 20, 16 << 20));
        let uniform = reads_per_second(setting, with.clone(), false)?;
        let skewed = reads_per_second(setting, with.clone(), true)?;
        found.push([uniform, skewed]);
        lines.push(series(name, &with, Axis::linear("reads", "1/s"), vec![[0.0, uniform], [1.0, skewed]]));
    }
    let [mod2, dynamic, heat] = found[..] else { return Err("three placers".into()) };
    let relations = vec![
        Relation::within(
            "skewed reads, heat / Mod2",
            "ours: at least 3",
            3.0..=f64::INFINITY,
            heat[1] / mod2[1],
        ),
        Relation::within(
            "uniform reads, heat / dynamic",
            "ours: not worse",
            0.95..=f64::INFINITY,
            heat[0] / dynamic[0],
        ),
    ];
    let x = Axis::named("reads", &["of all keys alike", "98 % of 5 % of the keys"]);
    let mut findings = nvme::findings(x, lines, relations)?;
    findings.deviations.extend([
        "reads wait 4.5 times as long for the slow disk",
        "the fast disk has room for a tenth of the records",
    ]);
    Ok(findings)
}
