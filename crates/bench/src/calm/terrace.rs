//! Terrace as the subject: opened, measured, closed.

use std::path::PathBuf;

use terrace::{Db, Durability, Options};

use super::{EngineReport, Settings, Stage, Subject, run};
use crate::Result;
use crate::store::{Store, TerraceStore, options};

/// How Terrace is opened.
#[derive(Clone, Debug, Default)]
pub struct TerraceSubject {
    /// Directory of the store, missing or empty; it stays. A temporary one, which does not, where there is none.
    pub path: Option<PathBuf>,
    /// What [`options`] takes; the defaults where there is none.
    pub profile: Option<String>,
    /// Cache in bytes; a quarter of the data where there is none. Three memtables come on top: one that fills, two that are
    /// flushed.
    pub cache_bytes: Option<u64>,
    /// Size of a full memtable; the profile's where there is none.
    pub memtable_bytes: Option<u64>,
    /// Durability of every put.
    pub durability: Durability,
}

impl TerraceSubject {
    /// Measures it; `stage` hears what is done next.
    ///
    /// # Errors
    /// Settings or options that make no sense, a directory that is not empty, or as [`run`].
    ///
    /// ```
    /// use terrace_bench::calm::{Settings, TerraceSubject};
    ///
    /// let settings = Settings { levels: Vec::new(), ..Settings::default() };
    /// let error = TerraceSubject::default().measure(&settings, &mut |_| {}).unwrap_err();
    /// assert!(error.to_string().starts_with("levels are above 0 %"));
    /// ```
    pub fn measure(&self, settings: &Settings, stage: &mut Stage) -> Result<EngineReport> {
        settings.check()?;
        let options = self.options(settings)?;
        let temporary;
        let directory = match &self.path {
            None => {
                temporary = tempfile::tempdir()?;
                temporary.path()
            }
            Some(path) => {
                let mut entries = path.read_dir().into_iter().flatten();
                if entries.next().is_some() {
                    return Err(format!("{} is not empty", path.display()).into());
                }
                path
            }
        };
        let store = Box::new(TerraceStore::build(Db::builder(directory), options)?);
        let subject = Subject { store: &*store, directory, version: String::new() };
        let report = run(&subject, settings, stage)?;
        store.close()?;
        Ok(EngineReport { profile: self.profile.clone().unwrap_or(report.profile), ..report })
    }

    fn options(&self, settings: &Settings) -> Result<Options> {
        let mut options = self.profile.as_deref().map_or_else(|| Ok(Options::default()), options)?;
        options.memtable_bytes = self.memtable_bytes.unwrap_or(options.memtable_bytes);
        let cache_bytes = self.cache_bytes.unwrap_or(settings.data_bytes() / 4);
        options.memory_bytes = Some(cache_bytes + 3 * options.memtable_bytes);
        options.durability = self.durability;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_is_a_quarter_of_the_data_unless_it_is_given() {
        let settings = Settings { records: 1000, key_bytes: 16, value_bytes: 384, ..Settings::default() };
        let memory = |subject: &TerraceSubject| subject.options(&settings).unwrap().memory_bytes.unwrap();
        let memtable_bytes = Some(1 << 20);
        let subject = TerraceSubject { memtable_bytes, ..TerraceSubject::default() };
        assert_eq!(memory(&subject), 100_000 + (3 << 20));
        assert_eq!(memory(&TerraceSubject { cache_bytes: Some(7), ..subject }), 7 + (3 << 20));
        let wrong = TerraceSubject { profile: Some("fancy".to_owned()), ..TerraceSubject::default() };
        assert!(wrong.options(&settings).is_err());
    }
}
