//! A volume for real where that is possible: as root, where there are loop devices.
#![expect(clippy::unwrap_used, reason = "a test's helpers")]

use std::path::Path;
use std::process::{Command, Output};

fn slow_disk(dir: &Path, options: &[&str], command: &[&str]) -> Output {
    let mut run = Command::new(env!("CARGO_BIN_EXE_slow-disk"));
    run.args(["--size-mb", "32", "--dir"]).arg(dir).args(options).arg("--").args(command);
    run.output().unwrap()
}

/// Whether there are loop devices, and the right to mount what is on them: a container's root may have neither.
fn may_mount() -> bool {
    let capabilities = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = capabilities.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    // CAP_SYS_ADMIN, linux/capability.h.
    let is_admin = u64::from_str_radix(effective.trim(), 16).unwrap() >> 21 & 1 == 1;
    is_admin && Path::new("/dev/loop-control").exists() && Path::new("/dev/fuse").exists()
}

#[test]
fn command_has_a_volume_and_nothing_is_left_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let script = "test -d $SLOW_DISK/lost+found && echo $SLOW_DISK && echo x > {}/file && exit 3";
    let out = slow_disk(dir.path(), &[], &["sh", "-c", script]);
    let stderr = String::from_utf8_lossy(&out.stderr);
    if !rustix::process::geteuid().is_root() {
        assert!(out.status.code() == Some(125) && stderr.contains("needs root"), "{out:?}");
    } else if out.status.code() == Some(125) && !may_mount() {
        eprintln!("SKIPPED: no volume can be mounted here: {stderr}");
    } else {
        assert_eq!(out.status.code(), Some(3), "{out:?}");
        let place = String::from_utf8(out.stdout).unwrap();
        let run = Path::new(place.trim()).parent().unwrap();
        assert!(place.starts_with("/run/terrace-slow-disk/") && !run.exists(), "{place}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the image is still there");
}

#[test]
fn impossible_disks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for options in [["--write-mb", "0"], ["--sync-ms", "-1"], ["--size-mb", "1"]] {
        let out = slow_disk(dir.path(), &options, &["true"]);
        assert_eq!(out.status.code(), Some(2), "{out:?}");
    }
}
