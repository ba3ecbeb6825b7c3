//! `terrace keyspace`: the options of a keyspace, and the keyspaces themselves.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use terrace::{Compression, Db, Keyspace, KeyspaceOptions, Prefix};

use super::Answer;
use crate::place::{open_to_change, open_to_read};

/// Create a keyspace, change its options, drop it, or show what it has
#[derive(Args)]
#[command(after_help = "\
Without options it shows those of the keyspace; without a name, those of all. With options, it creates
a keyspace that does not exist. Of one that does, compression and filters may change, for tables that
are written from then on, and how long values live, for all that have not expired by then.

Examples:
  terrace keyspace people.db
  terrace keyspace people.db photos --compression lz4 --filter-bits 14
  terrace keyspace people.db sessions --ttl 86400
  terrace keyspace people.db events --prefix-delimiter /
  terrace keyspace people.db sessions --drop
  terrace keyspace people.db --drop sessions events")]
pub struct Arguments {
    /// Directory of the store, which must exist
    db: PathBuf,

    /// The keyspace
    name: Option<String>,

    /// Compression of new tables
    #[arg(long, requires = "name")]
    compression: Option<Codec>,

    /// Bits of Bloom filter per key in new tables, 0 to 20
    #[arg(long, value_name = "BITS", requires = "name")]
    filter_bits: Option<u8>,

    /// Least bytes of a value that lies apart from its key; 0 for none
    #[arg(long, value_name = "BYTES", requires = "name")]
    separate_from: Option<u32>,

    /// Seconds that a value lives from its write on; for ever unless it was created with this
    #[arg(long, value_name = "SECONDS", requires = "name")]
    ttl: Option<u64>,

    /// Keys have a prefix of so many bytes, fixed at creation
    #[arg(long, value_name = "BYTES", requires = "name", conflicts_with = "prefix_delimiter")]
    prefix_bytes: Option<u16>,

    /// Keys have a prefix that ends in this character (of ASCII), fixed at creation
    #[arg(long, value_name = "CHARACTER", requires = "name")]
    prefix_delimiter: Option<char>,

    /// The prefix ends in the so manieth delimiter
    #[arg(long, value_name = "COUNT", requires = "prefix_delimiter", default_value_t = 1)]
    prefix_count: u8,

    /// Remove the keyspace and all that is in it
    #[arg(long, requires = "name", conflicts_with_all = ["compression", "filter_bits", "separate_from", "ttl", "prefix_bytes", "prefix_delimiter"])]
    drop: bool,

    /// More keyspaces to remove together with it: all or none
    #[arg(requires = "drop", value_name = "NAME")]
    others: Vec<String>,
}

/// [`Compression`], as it is asked for.
#[derive(Clone, Copy, ValueEnum)]
enum Codec {
    None,
    Lz4,
}

impl Arguments {
    /// `options` with what was asked for in its place.
    fn applied(&self, options: KeyspaceOptions) -> Result<KeyspaceOptions> {
        let compression = self.compression.map(|codec| match codec {
            Codec::None => Compression::None,
            Codec::Lz4 => Compression::Lz4,
        });
        let prefix = match (self.prefix_bytes, self.prefix_delimiter.map(u8::try_from)) {
            (_, Some(Ok(delimiter))) if delimiter.is_ascii() => {
                Some(Prefix::Delimited { delimiter, count: self.prefix_count })
            }
            (_, Some(_)) => bail!("the delimiter is no character of ASCII"),
            (Some(bytes), None) => Some(Prefix::Fixed(bytes)),
            (None, None) => None,
        };
        Ok(KeyspaceOptions {
            compression: compression.unwrap_or(options.compression),
            filter_bits_per_key: self.filter_bits.unwrap_or(options.filter_bits_per_key),
            prefix: prefix.or(options.prefix),
            separate_from: match self.separate_from {
                Some(0) => None,
                from => from.or(options.separate_from),
            },
            ttl: self.ttl.map(Duration::from_secs).or(options.ttl),
        })
    }

    fn asks_for_something(&self) -> bool {
        self.compression.is_some()
            || self.filter_bits.is_some()
            || self.separate_from.is_some()
            || self.ttl.is_some()
            || self.prefix_bytes.is_some()
            || self.prefix_delimiter.is_some()
    }
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let Some(name) = &arguments.name else {
        let db = open_to_read(&arguments.db)?;
        return show_all(&db);
    };
    if !arguments.asks_for_something() && !arguments.drop {
        let db = open_to_read(&arguments.db)?;
        return show(&existing(&db, name)?);
    }
    let db = open_to_change(&arguments.db)?;
    if arguments.drop {
        let others = arguments.others.iter();
        db.drop_keyspaces(&others.chain([name]).collect::<Vec<_>>())?;
    } else if let Some(keyspace) = db.existing_keyspace(name)? {
        keyspace.set_options(&arguments.applied(keyspace.options())?)?;
        show(&keyspace)?;
    } else {
        show(&db.keyspace_with(name, arguments.applied(KeyspaceOptions::default())?)?)?;
    }
    db.close()?;
    Ok(Answer::Yes)
}

fn existing(db: &Db, name: &str) -> Result<Keyspace> {
    match db.existing_keyspace(name)? {
        Some(keyspace) => Ok(keyspace),
        None => bail!("there is no keyspace {name:?}: there are {}", db.keyspaces().join(", ")),
    }
}

fn show_all(db: &Db) -> Result<Answer> {
    for name in db.keyspaces() {
        show(&existing(db, &name)?)?;
    }
    Ok(Answer::Yes)
}

/// One line: the name, then each option by its name.
fn show(keyspace: &Keyspace) -> Result<Answer> {
    let KeyspaceOptions { compression, filter_bits_per_key, prefix, separate_from, ttl } = keyspace.options();
    let compression = format!("{compression:?}").to_lowercase();
    let prefix = prefix.map_or_else(|| "none".into(), |rule| rule.to_string());
    let separate_from = separate_from.map_or_else(|| "none".into(), |bytes| bytes.to_string());
    let ttl = ttl.map_or_else(|| "none".into(), |ttl| ttl.as_secs().to_string());
    let name = keyspace.name();
    writeln!(
        stdout(),
        "{name}\tcompression={compression}\tfilter_bits={filter_bits_per_key}\tprefix={prefix}\tseparate_from={separate_from}\tttl={ttl}"
    )?;
    Ok(Answer::Yes)
}
