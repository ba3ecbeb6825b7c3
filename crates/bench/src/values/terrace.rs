//! Terrace as a subject: rows in the default keyspace.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Instant;

use ::terrace::{Db, Options};

use super::subject::{Drain, Engine, Role, SeeRow, Subject};
use crate::{Result, store};

/// From which size on values are separated from their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    /// As the options have it.
    Default,
    /// Never.
    Never,
    /// From so many bytes on.
    From(u32),
}

impl fmt::Display for Separation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.pad("default"),
            Self::Never => f.pad("never"),
            Self::From(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for Separation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => Ok(Self::Default),
            "never" => Ok(Self::Never),
            _ => text
                .parse()
                .map(Self::From)
                .map_err(|_| format!("{text:?} is neither default nor never nor bytes")),
        }
    }
}

/// Terrace with some options.
pub struct Terrace {
    name: String,
    options: Options,
}

impl Terrace {
    /// With options as [`store::options`] takes them, and values separated as `separation` says.
    ///
    /// # Errors
    /// Options that do not exist.
    pub fn new(options: &str, separation: Separation) -> Result<Self> {
        let base = if options == "default" { "terrace".to_owned() } else { format!("terrace@{options}") };
        let name = if separation == Separation::Default { base } else { format!("{base}-{separation}") };
        let mut options = store::options(options)?;
        match separation {
            Separation::Default => {}
            Separation::Never => options.keyspace.separate_from = None,
            Separation::From(bytes) => options.keyspace.separate_from = Some(bytes),
        }
        options.validate()?;
        Ok(Self { name, options })
    }
}

impl Engine for Terrace {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn role(&self) -> Role {
        if self.options.keyspace.separate_from.is_some() { Role::Separated } else { Role::Whole }
    }

    fn open(&self, path: &Path, memory_bytes: u64) -> Result<Box<dyn Subject>> {
        let options = Options { memory_bytes: Some(memory_bytes), ..self.options.clone() };
        Ok(Box::new(Open(Db::builder(path).options(options).open()?)))
    }
}

struct Open(Db);

impl Subject for Open {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.0.put(key, value)?)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        Ok(self.0.delete(key)?)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let found = self.0.get(key)?;
        if let Some(value) = &found {
            see(value);
        }
        Ok(found.is_some())
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.0.contains(key)?)
    }

    fn scan(&self, from: &[u8], see: SeeRow<'_>) -> Result<()> {
        let mut iter = self.0.range(from..)?;
        while let Some((key, value)) = iter.advance()? {
            if !see(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn scan_keys(&self, from: &[u8], see: &mut dyn FnMut(&[u8]) -> bool) -> Result<()> {
        let mut keys = self.0.range(from..)?.keys();
        while let Some(key) = keys.advance()? {
            if !see(key) {
                break;
            }
        }
        Ok(())
    }

    fn drain(&self) -> Result<Drain> {
        let started = Instant::now();
        self.0.wait_idle()?;
        Ok(Drain { seconds: started.elapsed().as_secs_f64(), is_cut_off: false })
    }

    fn told_written_bytes(&self) -> Option<u64> {
        Some(self.0.stats().written.total())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.0.close()?)
    }
}
