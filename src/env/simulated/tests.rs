//! Tests of the simulator against its own promises.

mod crash;
mod faults;
mod files;
mod read_ahead;
mod threads;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Journal, SimConfig, SimEnv};
use crate::env::{Env, File};

fn p(path: &str) -> &Path {
    Path::new(path)
}

fn machine(journal: Journal) -> Arc<SimEnv> {
    SimEnv::new(SimConfig { journal, ..SimConfig::default() })
}

/// A file whose name is durable, and nothing else.
fn named(env: &SimEnv, path: &str) -> Arc<dyn File> {
    let file = env.create(p(path)).unwrap();
    env.sync_dir(p("/")).unwrap();
    file
}

fn paths(env: &SimEnv) -> Vec<PathBuf> {
    env.files().into_iter().map(|(path, _)| path).collect()
}
