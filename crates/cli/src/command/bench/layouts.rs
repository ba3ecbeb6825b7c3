//! `terrace bench layouts`: maps which layout wins where.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use terrace_bench::layouts::{self, Choice, LAYOUTS, MEMORY_BYTES, Mix, SCALE, Shape};

use super::device;
use super::output::Output;
use crate::command::Answer;

/// Map which layout of levels wins where: over mixes of operations, sizes of data and shapes of keys
///
/// Each layout does the same work on the same simulated device, in virtual time, with all else as the default has it. The first
/// one is what the others are held against.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace bench layouts --ratios 1 --shapes uniform
  terrace bench layouts --json map.json --html map.html
  terrace bench layouts --layouts default,mine=default:group_bytes=64M --mixes half")]
pub struct Arguments {
    /// Layouts: names that are known, or NAME=PROFILE[:PART=VALUE]... [default: all that are known]
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    layouts: Vec<String>,

    /// Mixes of operations
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = named::<Mix>, default_values_t = MIXES)]
    mixes: Vec<Mix>,

    /// Shapes of keys
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = named::<Shape>, default_values_t = Shape::ALL)]
    shapes: Vec<Shape>,

    /// Bytes of data over bytes of memory
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1.0, 4.0, 16.0])]
    ratios: Vec<f64>,

    /// Divide all sizes of a store by this, at least 1
    #[arg(long, value_name = "S", default_value_t = SCALE)]
    scale: f64,

    /// Memory of each store in bytes [default: 512 MiB, divided]
    #[arg(long, value_name = "BYTES")]
    memory_bytes: Option<u64>,

    /// Size of every value in bytes, at least 12
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    value_bytes: usize,

    /// Simulated device, or `real` for the file system
    #[arg(long, value_name = "NAME", default_value = "datacenter-sata-ssd", value_parser = device::names())]
    device: String,

    /// Directory for the stores of --device real, which are removed afterwards [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    output: Output,
}

/// Mixes unless others are named: deletes are for those who ask.
const MIXES: [Mix; 5] = [Mix::Load, Mix::Writes, Mix::Half, Mix::Reads, Mix::Scans];

fn named<T: FromStr<Err = terrace_bench::Error>>(text: &str) -> Result<T> {
    text.parse().map_err(|error| anyhow!("{error}"))
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let watched = io::stderr().is_terminal();
    let mut told = |what: &str| {
        if watched {
            eprintln!("{what}");
        }
    };
    let map = layouts::run(&arguments.choice()?, &mut told).map_err(|error| anyhow!("{error}"))?;
    io::stdout().lock().write_all(layouts::text(&map).as_bytes())?;
    arguments.output.write("layouts", &map)?;
    Ok(Answer::Yes)
}

impl Arguments {
    fn choice(&self) -> Result<Choice> {
        if let Some(ratio) = self.ratios.iter().find(|ratio| !(ratio.is_finite() && **ratio > 0.0)) {
            bail!("--ratios: {ratio} is no amount of data");
        }
        if !(self.scale.is_finite() && self.scale >= 1.0) {
            bail!("--scale: {} is not 1 or more", self.scale);
        }
        Ok(Choice {
            layouts: self.rows()?,
            mixes: self.mixes.clone(),
            shapes: self.shapes.clone(),
            ratios: self.ratios.clone(),
            scale: self.scale,
            memory_bytes: self.memory_bytes.unwrap_or((MEMORY_BYTES as f64 / self.scale) as u64),
            value_bytes: self.value_bytes,
            machine: device::machine(&self.device, self.dir.as_ref())?,
            seed: self.seed,
        })
    }

    fn rows(&self) -> Result<Vec<(String, String)>> {
        let owned = |(name, options): (&str, &str)| (name.to_owned(), options.to_owned());
        if self.layouts.is_empty() {
            return Ok(LAYOUTS.iter().copied().map(owned).collect());
        }
        let row = |text: &String| {
            let known = LAYOUTS.iter().copied().find(|(name, _)| name == text);
            known.or_else(|| text.split_once('=')).map(owned)
        };
        let rows: Option<Vec<_>> = self.layouts.iter().map(row).collect();
        rows.ok_or_else(|| {
            let names: Vec<_> = LAYOUTS.iter().map(|(name, _)| *name).collect();
            anyhow!("--layouts: there are {}, or NAME=PROFILE", names.join(", "))
        })
    }
}
