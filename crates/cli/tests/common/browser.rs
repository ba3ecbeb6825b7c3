//! Opens pages in a real browser without a window, and asks it where it has drawn what.

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// The browsers that are looked for.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Before and behind what the script finds, in what becomes of the page.
const MARKS: (&str, &str) = ("BEGIN OF FAULTS", "END OF FAULTS");

/// Asks every part of every picture, and the page, where it is; leaves what it finds instead of the page.
const SCRIPT: &str = include_str!("browser.js");

/// The name of a browser; where there is none, says so even if the test's output is not shown.
pub fn find() -> Option<&'static str> {
    let is_there =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    let found = BROWSERS.into_iter().find(is_there);
    if found.is_none() {
        // Not by a macro, whose output is shown only of tests that fail.
        let _ = writeln!(
            std::io::stderr(),
            "\n!!! SKIPPED: no Chromium, so no page is looked at. `apt-get install chromium` mends that."
        );
    }
    found
}

/// What lies outside of its picture, or of the page, on `page`; a line each.
pub fn faults(browser: &str, page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let (begin, end) = MARKS;
    let watched = page.with_extension("watched.html");
    let script = format!("<script>const [BEGIN, END] = [{begin:?}, {end:?}];\n{SCRIPT}</script>");
    assert!(text.contains("</body>"), "{} is no page", page.display());
    std::fs::write(&watched, text.replace("</body>", &(script + "</body>"))).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let out = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1280,900"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", watched.display()))
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&out.stdout);
    // The script itself stands in front of what it finds.
    let found = shown.rsplit_once(begin).and_then(|(_, rest)| rest.split_once(end));
    let (found, _) = found.unwrap_or_else(|| {
        panic!(
            "{browser} has not run the script on {}: {}",
            page.display(),
            String::from_utf8_lossy(&out.stderr)
        )
    });
    let mut lines = found.lines().map(str::trim).filter(|line| !line.is_empty());
    let pictures = lines.next().and_then(|line| line.strip_prefix("pictures: ")).unwrap();
    assert!(text.matches("<svg").count() == pictures.parse::<usize>().unwrap(), "{pictures} pictures");
    lines.map(str::to_owned).collect()
}
