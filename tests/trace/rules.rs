//! The rules that every trace obeys, and the count of its barriers.
//!
//! The rules are those of the header of `tests/trace.rs`.

use std::collections::{BTreeMap, BTreeSet};

/// The thread that makes files before anybody needs them.
const PREALLOCATE: &str = "terrace-preallocate";

/// A call.
struct Line<'a> {
    action: &'a str,
    file: &'a str,
    /// The new name of a rename.
    to: &'a str,
    /// The background thread that made it; nothing for the others.
    by: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Self {
        let (call, by) = line.rsplit_once(" by ").unwrap_or((line, ""));
        let mut words = call.split([' ', ':']).filter(|word| !word.is_empty());
        let mut word = || words.next().unwrap_or_default();
        Self { action: word(), file: word(), to: word(), by }
    }

    fn is_of_pack(&self) -> bool {
        self.file.ends_with(".pack")
    }

    fn is_of_log(&self) -> bool {
        self.file.ends_with(".wal")
    }

    fn is_of_manifest(&self) -> bool {
        self.file.starts_with("MANIFEST")
    }
}

/// What of the files is not durable at a line of a trace.
#[derive(Default)]
struct Pending<'a> {
    /// Files with bytes that no sync has covered.
    unsynced: BTreeSet<&'a str>,
    /// Files whose names no sync of the directory has covered.
    unnamed: BTreeSet<&'a str>,
    /// Files that have been written under these names.
    written: BTreeSet<&'a str>,
    /// Whether a name has come, changed or gone since the directory was synced last.
    renamed: bool,
}

impl<'a> Pending<'a> {
    fn any(set: &BTreeSet<&str>, part: &str) -> bool {
        set.iter().any(|file| file.contains(part))
    }

    /// Whether a pack that holds anything has no durable name.
    fn has_unnamed_pack(&self) -> bool {
        self.unnamed.iter().any(|file| file.ends_with(".pack") && self.written.contains(file))
    }

    fn take_in(&mut self, line: &Line<'a>) {
        match line.action {
            "create" => {
                self.unnamed.insert(line.file);
                self.renamed = true;
            }
            "write" => {
                self.unsynced.insert(line.file);
                self.written.insert(line.file);
            }
            "sync" => {
                self.unsynced.remove(line.file);
            }
            "sync-dir" => {
                self.unnamed.clear();
                self.renamed = false;
            }
            "rename" => {
                self.unsynced.remove(line.file);
                self.unnamed.remove(line.file);
                self.unnamed.insert(line.to);
                self.renamed = true;
            }
            "remove" => self.renamed = true,
            _ => {}
        }
    }
}

/// Panics where `text`, the trace `name`, breaks a rule.
pub fn check(name: &str, text: &str) {
    let mut pending = Pending::default();
    for (line, text_of_line) in text.lines().map(|line| (Line::parse(line), line)) {
        let rule = |holds: bool, number: u32| {
            assert!(holds, "{name} breaks rule {number} at {text_of_line:?}:\n{text}");
        };
        match line.action {
            "write" if line.is_of_manifest() => {
                rule(!Pending::any(&pending.unsynced, ".pack") && !pending.has_unnamed_pack(), 1);
            }
            // A copy, in another directory, is no store until it is whole.
            "write" if line.is_of_log() && !line.file.starts_with('/') => {
                rule(!pending.unnamed.contains(line.file), 5);
            }
            "rename" => {
                // A dead file may lose what it likes.
                rule(line.to.ends_with(".recycled") || !pending.unsynced.contains(line.file), 3);
                rule(line.to != "CURRENT" || !Pending::any(&pending.unnamed, "MANIFEST"), 3);
            }
            "sync-dir" => rule(pending.renamed, 6),
            // Files that a replacement has prepared for itself.
            "remove" if line.file.ends_with(".new") => {}
            "remove" | "punch" => {
                rule(!Pending::any(&pending.unsynced, "MANIFEST") && !pending.unnamed.contains("CURRENT"), 4);
                rule(!Pending::any(&pending.unnamed, "MANIFEST"), 4);
            }
            _ => {}
        }
        pending.take_in(&line);
    }
}

/// How many syncs, of what. Those that nobody waits for stand by themselves.
pub fn barriers(text: &str) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines().map(Line::parse) {
        let kind = match line.action {
            "sync-dir" => "directory",
            "sync" if line.is_of_pack() => "pack",
            "sync" if line.is_of_log() => "log",
            "sync" if line.is_of_manifest() => "manifest",
            "sync" => "small file",
            _ => continue,
        };
        let when = if line.by == PREALLOCATE { " preallocate" } else { "" };
        *counts.entry(format!("{kind}{when}")).or_default() += 1;
    }
    let list: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    format!("barriers: {}\n", if list.is_empty() { "none".to_owned() } else { list.join(", ") })
}

/// The barriers of a flush, compaction, move or ingest, but for that of its edit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Job {
    /// Packs, each synced once.
    pub packs: usize,
    /// Syncs of the directory for names of its packs.
    pub names: usize,
    /// Segments of the log.
    pub log: usize,
}

/// The jobs whose edits `text` has, in order.
pub fn jobs(text: &str) -> Vec<Job> {
    let mut pending = Pending::default();
    let mut running: BTreeMap<&str, Job> = BTreeMap::new();
    let mut new_manifests = BTreeSet::new();
    let mut jobs = Vec::new();
    for line in text.lines().map(Line::parse) {
        let job = running.entry(line.by).or_default();
        match line.action {
            "create" if line.is_of_manifest() => drop(new_manifests.insert(line.file)),
            "sync" if line.is_of_pack() => job.packs += 1,
            "sync" if line.is_of_log() => job.log += 1,
            "sync-dir" if pending.has_unnamed_pack() => job.names += 1,
            // The first sync of a new manifest is of its snapshot.
            "sync" if line.is_of_manifest() && !new_manifests.remove(line.file) => {
                jobs.push(std::mem::take(job));
            }
            _ => {}
        }
        pending.take_in(&line);
    }
    jobs
}
