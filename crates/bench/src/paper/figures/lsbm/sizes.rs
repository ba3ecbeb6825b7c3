//! The buffer adapts to the load (section IV-D): nothing is kept where nothing is read, or nothing written.

use super::stores::Store;
use super::workload::{Load, held, over_time, run};
use crate::Result;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::figures::series;
use crate::paper::record::{Axis, Relation};

/// Bytes of the buffer under writes alone, and under reads alone.
pub fn adapts(setting: &Setting) -> Result<Findings> {
    let options = Store::Lsbm.options(setting);
    let written = run(setting, Load::WritesAlone, Store::Lsbm)?;
    let read = held(&run(setting, Load::ReadsAlone, Store::Lsbm)?);
    let live = written.last().map_or(0.0, |last| last.seen.space.live_bytes as f64 / 1e6);
    let written = held(&written);
    let last = |points: &[[f64; 2]]| points.last().map_or(0.0, |point| point[1]);
    let largest = read.iter().map(|point| point[1]).fold(0.0, f64::max);
    let relations = vec![
        Relation::within(
            "writes alone: buffer at the end / tables",
            "shrinks to nothing (what came within three periods stays)",
            0.0..=0.01,
            last(&written) / live,
        ),
        Relation::within("reads alone: buffer, at most, MB", "stays empty", 0.0..=0.0, largest),
    ];
    let y = || Axis::linear("held by the buffer", "MB");
    let series =
        vec![series("writes alone", &options, y(), written), series("reads alone", &options, y(), read)];
    Ok(over_time(setting, series, relations))
}
