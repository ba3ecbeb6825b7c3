//! Kills: a process that is shot at any moment loses nothing that it had acknowledged. A share of the suite `kill` of
//! `crates/torture`, whose header says how.
//!
//! `TERRACE_KILLS=1000` kills more often than the default, `TERRACE_SEED=n` at other moments of another history.

use terrace_torture::kill::{self, KILL, Kill};
use terrace_torture::number;
use terrace_torture::runner::pass_sample;

/// What the processes run that are killed. In the parent's own run of the tests it does nothing.
#[test]
fn child() {
    kill::child();
}

#[test]
fn every_acknowledged_write_survives_kills() {
    let kills = number("TERRACE_KILLS").unwrap_or(KILL.kills);
    pass_sample(Box::leak(Box::new(Kill { kills })), 1);
}

#[test]
fn a_killed_process_leaves_no_lock() {
    kill::check_that_kills_leave_no_lock();
}
