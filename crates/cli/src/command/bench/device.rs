//! `--device` and `--dir`: the machine that an experiment runs on.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use terrace::env::simulated::DeviceModel;
use terrace_bench::paper::Machine;

/// The name of the real device, which is not a simulated one.
pub const REAL: &str = "real";

/// What `--device` may be.
pub fn names() -> Vec<&'static str> {
    DeviceModel::presets().chain([REAL]).collect()
}

/// The machine that `--device` names, with its stores in `--dir`, which only the real one has.
pub fn machine(name: &str, dir: Option<&PathBuf>) -> Result<Machine> {
    if name == REAL {
        return Ok(Machine::Real { dir: dir.cloned() });
    }
    if dir.is_some() {
        bail!("--dir needs --device {REAL}");
    }
    Machine::preset(name).map_err(|error| anyhow!("{error}"))
}
