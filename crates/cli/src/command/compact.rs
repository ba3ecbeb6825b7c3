//! `terrace compact`: compacts everything into the last level, in the layout that there is or in another one.
//!
//! With `--layout` the store is opened with that layout, and every record is written once more: also what lies in the
//! last level already, for its tables are to be cut as the layout has them. Then background work goes on until
//! nothing is due. A store does not record its layout, so whoever opens it next has to ask for the same one.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::Args;
use terrace::{Builder, CompactionFilter, Db, Decision, Keyspace, LevelShape, Options, Shape};
use terrace_bench::layouts::LAYOUTS;
use terrace_bench::store;

use super::Answer;
use crate::place::{existing_keyspace, open, open_to_read};

/// Compact every record into the last level and drop what is overwritten or deleted
#[derive(Args)]
#[command(after_help = "\
With --layout the whole store is written in that layout, whatever it had before: what has several
runs in a level becomes one, tables are cut as the layout has them, and no level is left over its
limits. The levels before and after are printed. Where runs hang together by their overlaps, they
take their space twice for a while.

A layout is default, auto, leveled, tiered, lazy (lazy leveling), prefixed (PTierDB's), guarded
(PebblesDB's), or a profile by its name. Parts of it may be set otherwise behind it, as for
terrace bench. It is one of the whole store: with --keyspace the other keyspaces are compacted as
far as it has them due. A store does not record its layout, so open it with the same options
afterwards. Opened with others it is as sound, and takes their shape little by little.

Examples:
  terrace compact people.db
  terrace compact people.db --keyspace photos
  terrace compact people.db --layout leveled
  terrace compact people.db --layout tiered:runs=4:last_runs=1")]
pub struct Arguments {
    /// Directory of the store
    db: PathBuf,

    /// Only this keyspace; all keyspaces otherwise
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,

    /// Into this layout of levels
    #[arg(long, value_name = "NAME[:PART=VALUE]...", value_parser = layout)]
    layout: Option<Options>,
}

/// The options of a layout, or of a profile, with parts set otherwise.
fn layout(text: &str) -> Result<Options> {
    let (name, parts) = text.split_at(text.find(':').unwrap_or(text.len()));
    let profile = LAYOUTS.iter().find(|(known, _)| *known == name).map(|(_, options)| *options);
    if profile.is_none() && Options::profile(name).is_none() {
        let names: Vec<_> = LAYOUTS.iter().map(|(name, _)| *name).collect();
        return Err(anyhow!("there are {}, and the profiles of terrace bench", names.join(", ")));
    }
    let options = store::options(&format!("{}{parts}", profile.unwrap_or(name)));
    options.map_err(|error| anyhow!("{error}"))
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let builder = Db::builder(&arguments.db).must_exist();
    let Some(options) = &arguments.layout else {
        let db = open(builder, &arguments.db)?;
        arguments.compact(&db)?;
        db.close()?;
        return Ok(Answer::Yes);
    };
    // Looked at without background work, which would begin at once in the new layout.
    let before = arguments.shapes(&open_to_read(&arguments.db)?)?;
    let builder =
        before.keys().fold(builder.options(options.clone()), |builder, name| rewritten(builder, name));
    let db = open(builder, &arguments.db)?;
    arguments.compact(&db)?;
    db.wait_idle()?;
    let after = arguments.shapes(&db)?;
    db.close()?;
    write_levels(&before, &after, &mut io::stdout().lock())?;
    Ok(Answer::Yes)
}

impl Arguments {
    fn compact(&self, db: &Db) -> Result<()> {
        match &self.keyspace {
            Some(_) => self.keyspaces(db)?.iter().try_for_each(|keyspace| keyspace.compact_range(..))?,
            None => db.compact()?,
        }
        Ok(())
    }

    /// The keyspaces to compact.
    fn keyspaces(&self, db: &Db) -> Result<Vec<Keyspace>> {
        let names = self.keyspace.clone().map_or_else(|| db.keyspaces(), |name| vec![name]);
        names.iter().map(|name| existing_keyspace(db, &self.db, name)).collect()
    }

    /// Their levels, by name.
    fn shapes(&self, db: &Db) -> Result<BTreeMap<String, Shape>> {
        let keyspaces = self.keyspaces(db)?.into_iter();
        Ok(keyspaces.map(|keyspace| (keyspace.name().to_owned(), keyspace.shape())).collect())
    }
}

/// Lets every value be. Where a keyspace has a filter, a compaction of everything shows it what lies in the last level
/// too, and so writes that again.
struct KeepAll;

impl CompactionFilter for KeepAll {
    fn decide(&self, _key: &[u8], _value: &[u8]) -> Decision {
        Decision::Keep
    }
}

fn rewritten(builder: Builder, keyspace: &str) -> Builder {
    builder.compaction_filter(keyspace, Arc::new(KeepAll))
}

/// The levels of each keyspace, before and after.
fn write_levels(
    before: &BTreeMap<String, Shape>,
    after: &BTreeMap<String, Shape>,
    out: &mut impl Write,
) -> io::Result<()> {
    for (name, before) in before {
        let (before, after) = (&before.levels, after.get(name).map_or(&[][..], |shape| &shape.levels));
        writeln!(out, "keyspace {name}")?;
        let head = ["runs", "tables", "bytes"].map(str::to_owned);
        writeln!(out, "{}", row("level", &head))?;
        for level in 0..before.len().max(after.len()) {
            let change = |of: fn(&LevelShape) -> u64| {
                let at = |levels: &[LevelShape]| levels.get(level).map_or(0, of);
                format!("{} -> {}", at(before), at(after))
            };
            let cells = [
                change(|level| level.runs as u64),
                change(|level| level.tables as u64),
                change(|level| level.bytes),
            ];
            writeln!(out, "{}", row(&level.to_string(), &cells))?;
        }
    }
    Ok(())
}

fn row(level: &str, [runs, tables, bytes]: &[String; 3]) -> String {
    format!("{level:>5} {runs:>14} {tables:>18} {bytes:>30}")
}
