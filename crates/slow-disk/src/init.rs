//! The first process of the PID namespace in which the command runs.
//!
//! When it ends, the kernel kills all processes of the namespace, also those that have left their parents, and it
//! does not count as ended before they are gone. It ends with the command. The kernel kills it when the thread that
//! started it is dead.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command};

use anyhow::{Context, Result, bail};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};

use crate::system::{LOOK, Stop, complain, die_with, own_mounts};

/// First argument of this program as an init. Then follow the id of the process that starts it, the file that it writes
/// itself to, to be limited, which can be empty, and the command.
pub const ROLE: &str = "--init-for";

/// Starts an init, which this program must be called as, in a PID namespace of its own. Called by the main thread, with
/// which it dies.
pub fn start(init: &mut Command) -> Result<Child> {
    let own = File::open("/proc/self/ns/pid")?;
    unshare(CloneFlags::CLONE_NEWPID).context("cannot make a PID namespace")?;
    let child = init.spawn();
    // What is started later runs beside this process again.
    setns(own, CloneFlags::CLONE_NEWPID).context("cannot return to the own PID namespace")?;
    child.context("cannot start the init of the command")
}

/// Runs `command` to its end and returns the status to exit with.
pub fn run(parent: &str, members: &Path, command: &[OsString]) -> Result<u8> {
    if std::process::id() != 1 {
        bail!("{ROLE} is for this program's own use");
    }
    die_with(parent)?;
    let stop = Stop::listen()?;
    own_mounts()?;
    // The one from outside has other ids.
    mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), None::<&str>)
        .context("cannot mount /proc")?;
    if !members.as_os_str().is_empty() {
        fs::write(members, "0").with_context(|| format!("cannot join {}", members.display()))?;
    }
    let (program, arguments) = command.split_first().context("no command")?;
    let child = Command::new(program)
        .args(arguments)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    watch(Pid::from_child(&child), &stop)
}

/// Waits for the end of `command`, and for that of all orphans, which are this process's to wait for. The command is told to end
/// when this process is.
fn watch(command: Pid, stop: &Stop) -> Result<u8> {
    let mut is_told = false;
    loop {
        while let Some((ended, status)) = wait(WaitOptions::NOHANG)? {
            if ended == command {
                // Who is killed cannot say so. Who was told to end need not.
                if let Some(signal) = status.terminating_signal().filter(|_| !is_told) {
                    complain(&format!("the command was killed by signal {signal}"));
                }
                return Ok(exit_status(status));
            }
        }
        if stop.is_wanted() && !is_told {
            kill_process(command, Signal::TERM)?;
            is_told = true;
        }
        std::thread::sleep(LOOK);
    }
}

/// As a shell tells it.
fn exit_status(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
