//! Samples of the suites `kill`, `power` and `blocks` of `crates/torture`, whose headers describe them.
//!
//! A process that is killed at any moment loses nothing that it had acknowledged. A process whose file system or disk
//! is stopped, where the tests may do that, loses nothing that was acknowledged as synced.
//!
//! `TERRACE_KILLS=1000` kills more often than the default; `TERRACE_SEED=n` kills at other moments of another
//! history.

use terrace_torture::blocks::Blocks;
use terrace_torture::kill::{self, KILL, Kill};
use terrace_torture::power::Power;
use terrace_torture::runner::pass_sample;
use terrace_torture::suite::Suite;
use terrace_torture::writer;
use terrace_torture::{number, schedules};

/// What the processes run that are killed. In the parent's own run of the tests it does nothing.
#[test]
fn child() {
    writer::child();
}

#[test]
fn every_acknowledged_write_survives_kills() {
    let kills = number("TERRACE_KILLS").unwrap_or(schedules(12, KILL.kills));
    pass_sample(Box::leak(Box::new(Kill { kills })), 1);
}

#[test]
fn a_killed_process_leaves_no_lock() {
    kill::check_that_kills_leave_no_lock();
}

#[test]
fn every_synced_write_survives_the_end_of_a_file_system() {
    pass_if_possible(&Power);
}

#[test]
fn every_synced_write_survives_what_a_disk_loses() {
    pass_if_possible(&Blocks);
}

fn pass_if_possible(suite: &'static dyn Suite) {
    match suite.hindrance() {
        Some(hindrance) => println!("!!! SKIPPED: {hindrance}"),
        None => pass_sample(suite, 1),
    }
}
