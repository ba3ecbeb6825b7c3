//! The course of one store through a shape and a size: its load, then every mix from the loaded files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use terrace::{Db, Options};

use super::mix::Draw;
use super::{Choice, Measured, Mix, Shape};
use crate::Result;
use crate::paper::{Kept, Lab, Latencies, Records, Setting, at_scale, closed_loop};
use crate::workload::{Action, Permutation};

/// Bytes of a key.
const KEY_BYTES: usize = 16;

/// Clients at a time.
const CLIENTS: u64 = 2;

/// One store, on its way.
#[derive(Clone)]
struct Course {
    records: u64,
    value_bytes: usize,
    shape: Shape,
    seed: u64,
    options: Options,
}

/// What a store with `options` was in each mix of `choice`.
pub(super) fn run(choice: &Choice, shape: Shape, ratio: f64, options: &Options) -> Result<Vec<Measured>> {
    let record_bytes = (KEY_BYTES + choice.value_bytes) as u64;
    let setting = Setting { machine: choice.machine.clone(), scale: choice.scale, seed: choice.seed };
    let course = Course {
        records: ((choice.memory_bytes as f64 * ratio) as u64 / record_bytes).max(1),
        value_bytes: choice.value_bytes,
        shape,
        seed: choice.seed,
        options: at_scale(options, &setting, choice.memory_bytes),
    };
    let (load, kept) = {
        let course = course.clone();
        choice.machine.run(choice.seed, move |lab| {
            let db = lab.open(course.options.clone())?;
            let load = course.measure(lab, &db, Mix::Load)?;
            db.close()?;
            Ok((load, lab.keep()))
        })?
    };
    let of_mix =
        |&mix: &Mix| if mix == Mix::Load { Ok(load.clone()) } else { course.mix(choice, kept.as_ref(), mix) };
    choice.mixes.iter().map(of_mix).collect()
}

impl Course {
    /// One mix, from the loaded files. A real machine keeps none: it loads anew.
    fn mix(&self, choice: &Choice, kept: Option<&Kept>, mix: Mix) -> Result<Measured> {
        let (course, is_loaded) = (self.clone(), kept.is_some());
        choice.machine.run_from(kept, choice.seed, move |lab| {
            let db = lab.open(course.options.clone())?;
            if !is_loaded {
                course.measure(lab, &db, Mix::Load)?;
            }
            let measured = course.measure(lab, &db, mix)?;
            db.close()?;
            Ok(measured)
        })
    }

    fn measure(&self, lab: &Lab, db: &Db, mix: Mix) -> Result<Measured> {
        let records = Arc::new(Records::new(self.shape.order(), KEY_BYTES, self.value_bytes)?);
        let inserted = Arc::new(AtomicU64::new(self.records));
        let (operations, draw) = self.draw(mix, &inserted);
        let (started, before) = (lab.env().now(), db.stats());
        let latencies: Latencies = closed_loop(lab, db, &records, (CLIENTS, operations, self.seed), draw)?;
        db.wait_idle()?;
        let time = (lab.env().now() - started).as_secs_f64();
        let after = db.stats();
        let written = |stats: &terrace::Stats| (stats.written.flush + stats.written.compaction) as f64;
        let user = (after.user_bytes_written - before.user_bytes_written) as f64;
        let read = (after.read.get + after.read.scan - before.read.get - before.read.scan) as f64;
        let live = (inserted.load(Relaxed) * (KEY_BYTES + self.value_bytes) as u64) as f64;
        Ok(Measured {
            layout: String::new(),
            ops_per_s: operations as f64 / time,
            p99_us: latencies.percentile(99.0),
            write_amplification: if user > 0.0 { (written(&after) - written(&before)) / user } else { 0.0 },
            read_bytes_per_op: read / operations as f64,
            space_amplification: after.space.live_bytes as f64 / live,
        })
    }

    /// Number of operations, and what they are.
    fn draw(&self, mix: Mix, inserted: &Arc<AtomicU64>) -> (u64, Draw) {
        let operations = mix.operations(self.records);
        match mix {
            Mix::Load => {
                let (shape, order) = (self.shape, Permutation::new(self.records, self.seed));
                let place = move |number| if shape == Shape::Recent { number } else { order.at(number) };
                (operations, Arc::new(move |number, _| Action::Put(place(number))))
            }
            _ => (operations, mix.draw(self.shape, inserted.clone())),
        }
    }
}
