//! A turn in a process of its own, which dies with this one, and is killed when the run is interrupted.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::results::PhaseResult;
use crate::turn::{Job, Said};

/// First argument of a process that is to run a turn, given as the second.
pub const TURN: &str = "--turn";

/// The process that runs now, or 0.
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// Whether the run is to end.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// What a turn has measured.
#[derive(Debug, Default)]
pub struct Measured {
    pub version: String,
    pub phases: Vec<PhaseResult>,
}

/// From now on, an interrupt or a request to terminate ends the turn that runs, and the run after it.
///
/// # Errors
/// Handlers cannot be set.
pub fn handle_interrupts() -> Result<()> {
    Ok(ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::SeqCst);
        if let Some(pid) = Pid::from_raw(RUNNING.load(Ordering::SeqCst)) {
            // It may have ended just now.
            kill_process(pid, Signal::KILL).ok();
        }
    })?)
}

/// Runs `job` in a process of its own; `hear` is told what it does next.
///
/// # Errors
/// The turn failed or was interrupted.
pub fn run(job: &Job, hear: &mut dyn FnMut(&str)) -> Result<Measured> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(TURN).arg(serde_json::to_string(job)?).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    RUNNING.store(child.id().cast_signed(), Ordering::SeqCst);
    if is_interrupted() {
        child.kill()?;
    }
    let mut doing = "opening".to_owned();
    let heard = listen(&mut child, &mut |what| {
        what.clone_into(&mut doing);
        hear(what);
    });
    if heard.is_err() {
        child.kill().ok();
    }
    // Its id may be given to another process once it has been waited for.
    RUNNING.store(0, Ordering::SeqCst);
    let status = child.wait()?;
    if is_interrupted() {
        bail!("interrupted");
    }
    let failed = || format!("{} failed in {doing}", job.engine.name());
    match heard.with_context(failed)? {
        Some(measured) if status.success() => Ok(measured),
        _ => bail!("{}: {status}", failed()),
    }
}

/// Waits for `child`, which an interrupt kills, and takes what it says.
///
/// # Errors
/// It cannot be waited for, or the run was interrupted.
pub fn watched(mut child: Child) -> Result<Output> {
    RUNNING.store(child.id().cast_signed(), Ordering::SeqCst);
    if is_interrupted() {
        child.kill()?;
    }
    let mut stdout = Vec::new();
    child.stdout.take().context("no output")?.read_to_end(&mut stdout)?;
    RUNNING.store(0, Ordering::SeqCst);
    let status = child.wait()?;
    if is_interrupted() {
        bail!("interrupted");
    }
    Ok(Output { status, stdout, stderr: Vec::new() })
}

/// From now on, this process is killed when the one that runs it ends.
///
/// # Errors
/// The system refuses.
pub fn die_with_parent() -> Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// What was measured, if the turn came to its end.
fn listen(child: &mut Child, hear: &mut dyn FnMut(&str)) -> Result<Option<Measured>> {
    let mut phases = Vec::new();
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        match serde_json::from_str(&line?)? {
            Said::Begins(what) => hear(&what),
            Said::Measured(result) => phases.push(result),
            Said::Done(version) => return Ok(Some(Measured { version, phases })),
            Said::Failed(why) => bail!(why),
        }
    }
    Ok(None)
}

/// Whether the user wants the run to end.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// What the process does that [`run`] started.
///
/// # Errors
/// The one that runs it is gone, or asked for what is no turn.
pub fn main(job: &str) -> Result<()> {
    die_with_parent()?;
    let job: Job = serde_json::from_str(job)?;
    let mut out = std::io::stdout();
    let mut say = |said| {
        writeln!(out, "{}", serde_json::to_string(&said)?)?;
        Ok(out.flush()?)
    };
    job.run(&mut say).or_else(|error| say(Said::Failed(format!("{error:#}"))))
}
