//! Every figure and table of the five papers, a file for each paper.

mod bolt;
mod dlc;
mod lsbm;
mod nvme;
mod ptier;

use super::experiment::Experiment;

/// All experiments, paper by paper.
pub fn experiments() -> impl Iterator<Item = &'static Experiment> {
    [bolt::EXPERIMENTS, lsbm::EXPERIMENTS, nvme::EXPERIMENTS, dlc::EXPERIMENTS, ptier::EXPERIMENTS]
        .into_iter()
        .flatten()
}
