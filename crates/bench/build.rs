//! Passes the commit that the crate is built from to the compiler.

use std::process::Command;

fn main() {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    println!("cargo::rustc-env=TERRACE_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    // Whatever moves HEAD writes to its log; what changes the measured sources makes them dirty.
    let log = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]);
    for path in log.iter().map(String::as_str).chain(["../../src", "src", "build.rs"]) {
        if std::path::Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
