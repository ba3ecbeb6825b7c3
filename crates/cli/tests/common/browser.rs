//! Opens pages in a real browser without a window, and asks it where it has drawn what.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// The browsers that are looked for.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Before and behind what the script finds, in what becomes of the page.
const MARKS: (&str, &str) = ("BEGIN OF FAULTS", "END OF FAULTS");

/// Asks every part of every picture, and the page, where it is; tells the page around it.
const ON_EACH_PAGE: &str = include_str!("browser.js");

/// Leaves what the pages tell instead of itself, once all have.
const AROUND_THEM: &str = "\
const told = [];
addEventListener('message', ({ data }) => {
  told.push(data);
  if (told.length < PAGES) return;
  const found = document.createElement('pre');
  const pictures = told.reduce((sum, page) => sum + page.pictures, 0);
  found.textContent = [BEGIN, `pictures: ${pictures}`, ...told.flatMap(page => page.faults), END].join('\\n');
  document.body.replaceChildren(found);
});";

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

/// Nothing lies outside of its picture on any of `pages`, if there is a browser to ask.
pub fn assert_whole(pages: &[PathBuf]) {
    let Some(browser) = find() else { return };
    let faults = faults(browser, pages);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What lies outside of its picture, or of the page, on any of `pages`; a line each, with the page's name before it. One
/// browser opens all of them, each in a frame: it takes longer to start than to draw.
pub fn faults(browser: &str, pages: &[PathBuf]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut frames = String::new();
    let mut pictures = 0;
    for (index, page) in pages.iter().enumerate() {
        let text = std::fs::read_to_string(page).unwrap();
        assert!(text.contains("</body>"), "{} is no page", page.display());
        pictures += text.matches("<svg").count();
        let name = page.file_name().and_then(|name| name.to_str()).unwrap();
        let script = format!("<script>const NAME = {name:?};\n{ON_EACH_PAGE}</script>");
        let watched = format!("{index}.html");
        std::fs::write(folder.path().join(&watched), text.replace("</body>", &(script + "</body>"))).unwrap();
        frames += &format!("<iframe src={watched:?} width=1280 height=900></iframe>");
    }
    let (begin, end) = MARKS;
    let script = format!("const [BEGIN, END, PAGES] = [{begin:?}, {end:?}, {}];\n{AROUND_THEM}", pages.len());
    let all = format!("<!DOCTYPE html><html><body><script>{script}</script>{frames}</body></html>");
    std::fs::write(folder.path().join("all.html"), all).unwrap();
    let out = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1400,900"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .args(["--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("file://{}", folder.path().join("all.html").display()))
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&out.stdout);
    // The script itself stands in front of what it finds.
    let found = shown.rsplit_once(begin).and_then(|(_, rest)| rest.split_once(end));
    let (found, _) = found.unwrap_or_else(|| {
        panic!("{browser} has not looked at all of {pages:?}: {}", String::from_utf8_lossy(&out.stderr))
    });
    let mut lines = found.lines().map(str::trim).filter(|line| !line.is_empty());
    let seen = lines.next().and_then(|line| line.strip_prefix("pictures: ")).unwrap();
    assert_eq!(seen.parse::<usize>().unwrap(), pictures, "pictures");
    lines.map(str::to_owned).collect()
}
