//! Tests with a real volume, where that is possible: as root, and with loop devices.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test's helpers, which look at processes and devices from outside, in real time"
)]

mod running;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;

use crate::running::{RUNS, Running, Step, has_limits, may_mount, name, slow_disk};

/// One volume; with delayed syncs; and two of them.
const EACH: [&[&str]; 3] = [&[], &["--sync-ms", "1"], &["--sync-ms", "1", "--also", "size-mb=32,sync-ms=2"]];

/// A process that gets away from its parent and its session, survives the signals that end programs, keeps no descriptor but
/// one of a file on the volume, and writes to it. Then the command is ready.
const DAEMON: &str = r#"(setsid sh -c '
    trap "" HUP INT TERM
    exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>"$SLOW_DISK/held"
    cd "$SLOW_DISK"
    echo x >&9 && : >"$READY"
    while :; do echo x >&9; sleep 0.05; done' &)
"#;

/// The daemon beside a command that goes on.
fn with_daemon(script: &str) -> String {
    format!("{DAEMON} {script}")
}

fn run(dir: &Path, options: &[&str], command: &[&str]) -> Output {
    slow_disk(dir, options, command).output().unwrap()
}

/// Keeps others from clearing what is made by hand, until it is complete.
fn hold_runs() -> File {
    fs::create_dir_all(RUNS).unwrap();
    let runs = File::open(RUNS).unwrap();
    flock(&runs, FlockOperation::LockExclusive).unwrap();
    runs
}

/// The next start, of another run.
fn start_again() -> Output {
    let dir = tempfile::tempdir().unwrap();
    let out = run(dir.path(), &[], &["true"]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    out
}

#[test]
fn command_has_a_volume_and_nothing_is_left_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let script = "test -d $SLOW_DISK/lost+found && echo $SLOW_DISK && echo x > {}/file && exit 3";
    let out = run(dir.path(), &[], &["sh", "-c", script]);
    let stderr = String::from_utf8_lossy(&out.stderr);
    if !rustix::process::geteuid().is_root() {
        assert!(out.status.code() == Some(125) && stderr.contains("needs root"), "{out:?}");
    } else if out.status.code() == Some(125) && !may_mount() {
        eprintln!("SKIPPED: no volume can be mounted here: {stderr}");
    } else {
        assert_eq!(out.status.code(), Some(3), "{out:?}");
        let place = String::from_utf8(out.stdout).unwrap();
        let run = Path::new(place.trim()).parent().unwrap();
        assert!(place.starts_with(RUNS) && !run.exists(), "{place}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "the image is still there");
}

#[test]
fn two_volumes_have_a_device_and_limits_each() {
    if !has_limits() || !may_mount() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image_dir = dir.path().display().to_string();
    let also = format!("size-mb=64,write-mb=777001,write-iops=777002,dir={image_dir}");
    let script = "mountpoint -d {} && mountpoint -d {2} && mountpoint -d $SLOW_DISK_2 && echo x > {2}/file \
        && df --output=size {} {2} | tail -n 2 && test -z \"$SLOW_DISK_3\" && echo {3} && cat $RULES";
    let mut two = slow_disk(dir.path(), &["--write-mb", "777003", "--also", &also], &["sh", "-c", script]);
    let rules = ["write_bps", "write_iops"].map(running::rules).map(|file| file.display().to_string());
    let out = two.env("RULES", rules.join(" ")).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    let said: Vec<&str> = text.lines().map(str::trim).collect();
    let [first, second, again, first_size, second_size, "{3}", rules @ ..] = &said[..] else {
        panic!("{text}")
    };
    assert!(first != second && second == again, "{text}");
    assert!(first_size.parse::<u64>().unwrap() < second_size.parse().unwrap(), "{text}");
    let limits: Vec<String> =
        rules.iter().filter(|rule| rule.contains(" 77700")).map(|rule| (*rule).to_owned()).collect();
    let expected =
        [format!("{first} 777003000000"), format!("{second} 777001000000"), format!("{second} 777002")];
    assert!(limits.len() == 3 && expected.iter().all(|limit| limits.contains(limit)), "{limits:?}");
    let left = ["write_bps", "write_iops"].map(|rule| fs::read_to_string(running::rules(rule)).unwrap());
    assert!(!left.iter().any(|rules| rules.contains(" 77700")), "{left:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "an image is still there");
}

#[test]
fn impossible_disks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let impossible = [
        ["--write-mb", "0"],
        ["--sync-ms", "-1"],
        ["--size-mb", "1"],
        ["--also", "write-mb=0"],
        ["--also", "nothing=1"],
    ];
    for options in impossible {
        let out = run(dir.path(), &options, &["true"]);
        assert_eq!(out.status.code(), Some(2), "{out:?}");
    }
}

#[test]
fn end_of_the_command_ends_what_it_has_started() {
    let script = with_daemon("while [ ! -e $READY ]; do sleep 0.05; done; read go < $GO; exit 3");
    for options in EACH {
        let Some(mut running) = Running::start(options, &script) else { return };
        running.is_complete();
        let volumes = if options.contains(&"--also") { 2 } else { 1 };
        assert_eq!(running.count("loop device"), volumes);
        // It must not be left to itself.
        running.signal_helper("--guardian-of", Signal::STOP);
        fs::write(running.go(), "go\n").unwrap();
        assert_eq!(running.end().code(), Some(3));
        assert_eq!(running.traces(), [""; 0]);
        assert_eq!(running.stderr(), "");
    }
}

#[test]
fn signals_end_the_command_and_what_it_has_started() {
    for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
        // It is asked first.
        let script = with_daemon("trap 'exit 7' TERM; while :; do sleep 0.05; done");
        let Some(mut running) = Running::start(&[], &script) else { return };
        running.is_complete();
        running.signal(signal);
        assert_eq!(running.end().code(), Some(7), "{signal:?}");
        assert_eq!(running.traces(), [""; 0], "{signal:?}");
    }
}

#[test]
fn command_that_does_not_listen_is_killed() {
    let script = with_daemon("trap '' HUP INT TERM; while :; do sleep 0.05; done");
    let Some(mut running) = Running::start_with_patience(3, &script) else { return };
    running.signal(Signal::TERM);
    assert_eq!(running.end().code(), Some(128 + 9));
    assert_eq!(running.traces(), [""; 0]);
}

#[test]
fn run_that_is_killed_is_cleared() {
    for options in EACH {
        let script = with_daemon("dd if=/dev/zero of={}/written bs=1M count=10 2>/dev/null; sleep 1000");
        let Some(mut running) = Running::start(options, &script) else { return };
        running.is_complete();
        running.signal(Signal::KILL);
        running.end();
        running.leaves_nothing();
        // Whoever is first clears it: this run's guardian, or one of the tests beside this one, which then says so.
        let said = running.stderr();
        assert!(said.is_empty() || said.contains("clearing what"), "{said}");
    }
}

#[test]
fn run_survives_neither_its_init_nor_needs_its_guardian() {
    let Some(mut running) = Running::start(&[], &with_daemon("sleep 1000")) else { return };
    running.kill_helper("--guardian-of");
    running.kill_helper("--init-for");
    assert_eq!(running.end().code(), Some(128 + 9));
    assert_eq!(running.traces(), [""; 0]);
}

#[test]
fn volume_goes_without_who_answers_for_delayed_syncs() {
    let Some(mut running) = Running::start(&["--sync-ms", "1"], &with_daemon("sleep 1000")) else { return };
    for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
        running.signal_helper("--delay-for", signal);
    }
    running.kill_helper("--delay-for");
    running.signal(Signal::TERM);
    running.end();
    assert_eq!(running.traces(), [""; 0]);
}

#[test]
fn guardian_survives_what_ends_the_run_at_a_terminal() {
    let Some(mut running) = Running::start(&[], &with_daemon("sleep 1000")) else { return };
    for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
        running.signal_helper("--guardian-of", signal);
    }
    assert!(!running.is_in_session_of("--guardian-of"));
    running.signal(Signal::KILL);
    running.end();
    running.leaves_nothing();
}

#[test]
fn next_start_clears_a_run_whose_guardian_was_killed_too() {
    for options in EACH {
        let Some(mut running) = Running::start(options, &with_daemon("sleep 1000")) else { return };
        running.is_complete();
        running.kill_helper("--guardian-of");
        running.signal(Signal::KILL);
        running.end();
        // Who needs nobody: the kernel kills, unmounts, detaches and frees.
        running.leaves_only(&["directory", "rule"]);
        start_again();
        assert_eq!(running.traces(), [""; 0]);
    }
}

#[test]
fn run_that_is_killed_at_any_step_of_its_making_is_cleared() {
    for options in EACH {
        for step in Step::ALL {
            let Some(mut running) = Running::start_shot(options, step, "kill -9 $PPID") else { return };
            assert_eq!(running.end().signal(), Some(9), "{step:?}: {}", running.stderr());
            running.leaves_nothing();
        }
    }
}

#[test]
fn next_start_clears_a_run_that_is_killed_at_any_step_with_its_guardian() {
    let both = "for one in $(cat /proc/$PPID/task/*/children); do
        grep -qa guardian-of /proc/$one/cmdline && kill -9 $one
    done
    kill -9 $PPID";
    for options in EACH {
        for step in Step::ALL {
            let Some(mut running) = Running::start_shot(options, step, both) else { return };
            assert_eq!(running.end().signal(), Some(9), "{step:?}: {}", running.stderr());
            // A tool may run on; then nobody is left who could make anything, or clear it.
            running.leaves_only(&["directory", "image", "loop device"]);
            start_again();
            assert_eq!(running.traces(), [""; 0], "{step:?}");
        }
    }
}

#[test]
fn next_start_clears_what_was_killed_between_two_steps() {
    if !may_mount() {
        return;
    }
    let mut running = Running::stand_in();
    let run = Path::new(RUNS).join(running.id().to_string());
    let runs = hold_runs();
    fs::create_dir(&run).unwrap();
    let lock = File::create_new(run.join("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    drop(runs);
    let image = running.dir().join(name(running.id()) + ".img");
    fs::write(run.join("image"), image.as_os_str().as_encoded_bytes()).unwrap();
    File::create_new(&image).unwrap().set_len(32_000_000).unwrap();
    let losetup = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().unwrap();
    assert!(losetup.status.success(), "{losetup:?}");
    let device = String::from_utf8(losetup.stdout).unwrap();
    for place in ["volume", "delayed"] {
        fs::create_dir(run.join(place)).unwrap();
    }
    if has_limits() {
        let sys = Path::new("/sys/block").join(device.trim().trim_start_matches("/dev/"));
        let numbers = fs::read_to_string(sys.join("dev")).unwrap();
        fs::write(run.join("rules"), numbers.trim()).unwrap();
        running.limit(numbers.trim());
    }
    let made = running.traces();
    // As long as the lock is held, it is a run like any other.
    start_again();
    assert_eq!(running.traces(), made);
    assert!(made.len() >= 3 + usize::from(has_limits()), "{made:?}");
    running.signal(Signal::KILL);
    running.end();
    drop(lock);
    start_again();
    assert_eq!(running.traces(), [""; 0]);
}

#[test]
fn rules_of_a_device_that_is_another_runs_by_now_stay() {
    if !has_limits() {
        return;
    }
    let Some(mut running) = Running::start(&[], &with_daemon("sleep 1000")) else { return };
    running.is_complete();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let old = Path::new(RUNS).join(gone.id().to_string());
    let runs = hold_runs();
    fs::create_dir(&old).unwrap();
    fs::copy(Path::new(RUNS).join(running.id().to_string()).join("rules"), old.join("rules")).unwrap();
    drop(runs);
    start_again();
    assert!(!old.exists());
    running.is_complete();
    running.signal(Signal::TERM);
    running.end();
    assert_eq!(running.traces(), [""; 0]);
}

#[test]
fn volume_in_use_from_outside_goes_when_it_no_longer_is() {
    let Some(mut running) = Running::start_with_patience(3, &with_daemon("sleep 1000")) else { return };
    let inside = Path::new("/proc").join(running.helper("--init-for").to_string()).join("root");
    let place = format!("{}/{}/volume/held", RUNS.trim_start_matches('/'), running.id());
    let held = File::open(inside.join(place)).unwrap();
    running.signal(Signal::KILL);
    running.end();
    running.leaves_only(&["loop device"]);
    assert!(running.traces().iter().any(|trace| trace.starts_with("loop device")));
    drop(held);
    running.leaves_nothing();
    assert!(running.stderr().contains("still in use from outside"), "{}", running.stderr());
}

#[test]
fn command_that_cannot_be_run_is_told() {
    if !may_mount() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = run(dir.path(), &[], &["/no/such/command"]);
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(125) && stderr.contains("cannot run /no/such/command"), "{out:?}");
}

/// A memory group of version 1 with a limit; dropping it takes it away.
struct Group(PathBuf);

impl Group {
    fn with_limit(bytes: u64) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let place = mounts.lines().find_map(|line| {
            let fields: Vec<_> = line.split(' ').collect();
            (fields[2] == "cgroup" && fields[3].split(',').any(|one| one == "memory")).then_some(fields[1])
        });
        let Some(place) = place else {
            eprintln!("SKIPPED: no limit on memory, for want of cgroups of version 1");
            return None;
        };
        let group = Self(Path::new(place).join(format!("terrace-slow-disk-test-{}", std::process::id())));
        if let Err(error) = fs::create_dir(&group.0) {
            eprintln!("SKIPPED: no group for memory can be made: {error}");
            return None;
        }
        fs::write(group.0.join("memory.limit_in_bytes"), bytes.to_string()).unwrap();
        if fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1) {
            // A limit on memory alone would only make the command slow.
            let _ = fs::write(group.0.join("memory.memsw.limit_in_bytes"), bytes.to_string());
        }
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its members may still be dying.
        for _ in 0..500 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// The kernel says nothing to whom it kills, and a status of 137 does not say why.
#[test]
fn command_that_runs_out_of_memory_is_told() {
    if !rustix::process::geteuid().is_root() || !may_mount() {
        eprintln!("SKIPPED: no group for memory without root");
        return;
    }
    let Some(group) = Group::with_limit(48_000_000) else { return };
    let dir = tempfile::tempdir().unwrap();
    // `tail` holds the last line, which does not end. It could not take the whole machine's memory.
    let greedy = "ulimit -v 800000; exec tail -n 1 /dev/zero >/dev/null";
    for (script, status) in [(greedy.to_owned(), 137), (format!("(exec 2>&-; {greedy}); exit 4"), 4)] {
        let mut inside = Command::new("sh");
        inside.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(&group.0);
        let disk = slow_disk(dir.path(), &[], &["sh", "-c", &script]);
        let out = inside.arg(disk.get_program()).args(disk.get_args()).output().unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr);
        let verdict = format!("for want of memory: {} has a limit of 48 MB", group.0.display());
        assert!(
            stderr.contains("the kernel killed a process of the command") && stderr.contains(&verdict),
            "{out:?}"
        );
        assert_eq!(stderr.contains("the command was killed by signal 9"), status == 137, "{out:?}");
        assert_eq!(out.status.code(), Some(status), "{out:?}");
    }
}

/// Whoever answers for delayed syncs is not among those who share the command's memory: each would wait for the other.
#[test]
fn what_delays_syncs_has_memory_of_its_own() {
    if !rustix::process::geteuid().is_root() || !may_mount() {
        eprintln!("SKIPPED: no group for memory without root");
        return;
    }
    let Some(group) = Group::with_limit(48_000_000) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (ready, go) = (dir.path().join("ready"), dir.path().join("go"));
    let script = format!(": >{}; while [ ! -e {} ]; do sleep 0.05; done", ready.display(), go.display());
    let mut inside = Command::new("sh");
    inside.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(&group.0);
    let disk = slow_disk(dir.path(), &["--sync-ms", "1"], &["sh", "-c", &script]);
    let mut running = inside.arg(disk.get_program()).args(disk.get_args()).spawn().unwrap();
    while !ready.exists() {
        assert!(running.try_wait().unwrap().is_none(), "it ended before the command was ready");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let members = fs::read_to_string(group.0.join("cgroup.procs")).unwrap();
    let of = |id: &str| fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let has = |role: &str| members.lines().any(|id| of(id).contains(role));
    let (has_command, has_delay) = (has("--init-for"), has("--delay-for"));
    fs::write(go, "").unwrap();
    assert!(running.wait().unwrap().success());
    assert!(has_command && !has_delay, "{members}");
}

/// Runs it with `dir` for the image, prepared, and expects it to stop before it makes anything.
fn stops_at_once(dir: &Path, mut prepared: Command, options: &[&str], why: &str) {
    prepared.args(["--size-mb", "32", "--dir"]).arg(dir).args(options).args(["--", "touch"]);
    let out = prepared.arg(dir.join("ran")).output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(125) && stderr.contains(why), "{out:?}");
    assert!(!stderr.contains("clear"), "it had begun: {stderr}");
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
}

#[test]
fn without_root_it_stops_before_it_makes_anything() {
    if !rustix::process::geteuid().is_root() {
        // That is what `command_has_a_volume_and_nothing_is_left_of_it` sees then.
        return;
    }
    // Where others may run it.
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (program, images) = (dir.path().join("slow-disk"), dir.path().join("images"));
    fs::copy(env!("CARGO_BIN_EXE_slow-disk"), &program).unwrap();
    fs::create_dir(&images).unwrap();
    fs::set_permissions(&images, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new(program);
    command.uid(65534).gid(65534);
    stops_at_once(&images, command, &[], "needs root");
}

#[test]
fn without_loop_devices_fuse_or_throttling_it_stops_before_it_makes_anything() {
    if !may_mount() {
        return;
    }
    let unmounts = "for place in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts); do umount $place; done";
    for (lack, options, why) in [
        ("mount -t tmpfs none /dev", &[][..], "/dev/loop-control"),
        ("mount -t tmpfs none /dev; : >/dev/loop-control", &["--sync-ms", "1"], "/dev/fuse"),
        (unmounts, &["--write-mb", "1"], "no cgroup controller"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &format!("{lack}; exec \"$0\" \"$@\"")]);
        command.arg(env!("CARGO_BIN_EXE_slow-disk"));
        stops_at_once(dir.path(), command, options, why);
    }
}
