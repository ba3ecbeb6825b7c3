//! How a store is to be opened.

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::shared::events::Listener;
use crate::env::Env;
use crate::filter::Filters;
use crate::options::Options;

/// How a store is to be opened.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) dir: PathBuf,
    /// Directories besides that one.
    pub(crate) devices: Vec<PathBuf>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) options: Options,
    pub(crate) read_only: bool,
    pub(crate) must_exist: bool,
    pub(crate) listener: Listener,
    pub(crate) filters: Filters,
}

#[cfg(test)]
impl Opening {
    /// That of the store of a test, in `/db`, to be written or only read.
    pub(crate) fn of_test(env: Arc<dyn Env>, options: Options, read_only: bool) -> Self {
        let (devices, must_exist, listener, filters) = Default::default();
        Self { dir: "/db".into(), devices, env, options, read_only, must_exist, listener, filters }
    }
}
