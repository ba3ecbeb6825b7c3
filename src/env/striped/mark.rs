//! The mark of a stripe: a small text in each of its directories that says which stripe it is, and how it is laid out.
//!
//! ```text
//! terrace stripe 1
//! id 00c0ffee00c0ffee
//! member 1 of 2
//! chunk 262144
//! pattern 0 0 0 1 0 0
//! ```
//!
//! Invariant: while a directory has striped files, all marks are there and agree. They are durable before the first such file is
//! made. So a directory that is missing, swapped or of another stripe is refused, and so is another layout.

use std::io;
use std::path::{Path, PathBuf};

use super::layout::Layout;
use crate::env::{Access, Env};

/// Names of the mark, and of the next one, which is not in force yet.
pub(super) const NAMES: [&str; 2] = ["STRIPE", "STRIPE.new"];

fn text(layout: &Layout, id: &str, member: usize) -> String {
    let pattern: Vec<String> = layout.pattern().iter().map(ToString::to_string).collect();
    let (members, chunk) = (layout.members(), layout.chunk());
    format!(
        "terrace stripe 1\nid {id}\nmember {member} of {members}\nchunk {chunk}\npattern {}\n",
        pattern.join(" ")
    )
}

/// Checks the marks of `dirs`, or makes them where nothing is striped.
pub(super) fn check(env: &dyn Env, dirs: &[PathBuf], layout: &Layout, suffix: &str) -> io::Result<()> {
    let marks: Vec<Option<String>> = dirs.iter().map(|dir| read(env, dir)).collect::<io::Result<_>>()?;
    let id = |mark: &String| mark.lines().find_map(|line| line.strip_prefix("id ").map(str::to_owned));
    if let Some(id) = marks[0].as_ref().and_then(id)
        && marks.iter().enumerate().all(|(at, mark)| mark.as_deref() == Some(&text(layout, &id, at)))
    {
        return Ok(());
    }
    for dir in dirs {
        if let Some(name) = env.list(dir)?.into_iter().find(|name| name.ends_with(suffix)) {
            let why = format!(
                "{} is there, and the files {} of the directories of the stripe are not those of one stripe with this layout",
                dir.join(name).display(),
                NAMES[0],
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
    }
    let id = format!("{:016x}", env.random());
    for (member, dir) in dirs.iter().enumerate().rev() {
        write(env, dir, &text(layout, &id, member))?;
    }
    Ok(())
}

fn read(env: &dyn Env, dir: &Path) -> io::Result<Option<String>> {
    let file = match env.open(&dir.join(NAMES[0]), Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = vec![0; usize::try_from(file.len()?.min(1 << 16)).unwrap_or(0)];
    file.read_at(0, &mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The text is durable before it takes its name.
fn write(env: &dyn Env, dir: &Path, text: &str) -> io::Result<()> {
    let [to, aside] = NAMES.map(|name| dir.join(name));
    match env.remove(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = env.create(&aside)?;
    file.write_at(0, text.as_bytes())?;
    file.sync()?;
    env.rename(&aside, &to)?;
    env.sync_dir(dir)
}
