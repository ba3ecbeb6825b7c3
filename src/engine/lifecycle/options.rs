//! The options of an open store: read, and changed.

use std::sync::Arc;

use arc_swap::Guard;

use super::engine::Engine;
use crate::batch::DEFAULT_KEYSPACE;
use crate::engine::shared::settings::{Settings, options_of};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;

impl Engine {
    /// The settings in force.
    pub(crate) fn settings(&self) -> Guard<Arc<Settings>> {
        self.settings.load()
    }

    /// The options in force.
    pub(crate) fn options(&self) -> Options {
        let options = self.settings().options.clone();
        match self.keyspaces.all().get(&DEFAULT_KEYSPACE) {
            Some(tree) => Options { keyspace: options_of(&self.jobs.record_of(tree)), ..options },
            None => options,
        }
    }

    /// Goes on by other options; all that was decided by the old ones is looked at again.
    pub(crate) fn change_options(self: &Arc<Self>, change: impl FnOnce(&mut Options)) -> Result<()> {
        let _changing = self.closing.lock();
        self.health.check_open()?;
        let before = self.options();
        let mut options = before.clone();
        change(&mut options);
        options.validate()?;
        if options.keyspace != before.keyspace {
            let message = "options of a keyspace are changed by Keyspace::set_options";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if options.reserve_bytes != before.reserve_bytes {
            let message = "reserve_bytes is fixed while the store is open";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if options.tree.caching != before.tree.caching {
            let message = "tree.caching is fixed while the store is open";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let settings = Settings::new(&options, &*self.jobs.env);
        if settings.policy.files.descriptors != self.settings().policy.files.descriptors {
            let message = "tree.files.descriptors is fixed while the store is open";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        self.jobs.cache.set_capacity(settings.limits.cache_bytes);
        self.settings.store(Arc::new(settings));
        if self.write.writer.is_some() {
            self.background.start_compaction_threads()?;
        }
        self.background.sample_load();
        self.background.fit_recycled();
        self.jobs.drop_unwanted_buffers();
        self.background.scheduler.wake_all();
        self.background.wake_writers();
        Ok(())
    }
}
