//! Settings: the dataclasses of the Python module `terrace.options`, and the words for durability and isolation.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use terrace::{Compression, Isolation, Prefix};

use crate::bytes::Bytes;
use crate::errors::{InvalidInputError, invalid};
use crate::record::options_class;

/// The value that one of `words` stands for.
fn word<T: Copy>(given: &Bound<'_, PyAny>, what: &str, words: &[(&str, T)]) -> PyResult<T> {
    let given: String = given.extract()?;
    let found = words.iter().find(|(word, _)| *word == given);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<String> = words.iter().map(|(word, _)| format!("'{word}'")).collect();
        InvalidInputError::new_err(format!("{what} is '{given}', not {}", known.join(" or ")))
    })
}

const DURABILITIES: &[(&str, terrace::Durability)] =
    &[("buffered", terrace::Durability::Buffered), ("synced", terrace::Durability::Synced)];

const ISOLATIONS: &[(&str, Isolation)] =
    &[("snapshot", Isolation::Snapshot), ("serializable", Isolation::Serializable)];

const COMPRESSIONS: &[(&str, Compression)] = &[("none", Compression::None), ("lz4", Compression::Lz4)];

/// The word for `value`, which is among `words`.
fn word_for<T: PartialEq>(value: &T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("unknown", |(word, _)| word)
}

/// "buffered" or "synced".
#[derive(Clone, Copy)]
pub struct Durability(pub terrace::Durability);

impl FromPyObject<'_, '_> for Durability {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        word(&object, "durability", DURABILITIES).map(Self)
    }
}

/// "snapshot" or "serializable".
pub struct IsolationWord(pub Isolation);

impl FromPyObject<'_, '_> for IsolationWord {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        word(&object, "isolation", ISOLATIONS).map(Self)
    }
}

/// `terrace.KeyspaceOptions`.
#[derive(FromPyObject)]
pub struct KeyspaceOptions<'py> {
    compression: Bound<'py, PyAny>,
    filter_bits_per_key: u8,
    prefix: Option<PrefixRule<'py>>,
    separate_from: Option<u32>,
    ttl: Option<Duration>,
}

/// A length, or a delimiter and how many of it.
#[derive(FromPyObject)]
enum PrefixRule<'py> {
    Fixed(u16),
    Delimited(Bytes<'py>, u8),
}

impl KeyspaceOptions<'_> {
    /// As the store has them.
    pub fn settings(&self) -> PyResult<terrace::KeyspaceOptions> {
        let prefix = match &self.prefix {
            None => None,
            Some(PrefixRule::Fixed(bytes)) => Some(Prefix::Fixed(*bytes)),
            Some(PrefixRule::Delimited(delimiter, count)) => {
                let [delimiter] = **delimiter else { return Err(invalid("a delimiter is one byte")) };
                Some(Prefix::Delimited { delimiter, count: *count })
            }
        };
        Ok(terrace::KeyspaceOptions {
            compression: word(&self.compression, "compression", COMPRESSIONS)?,
            filter_bits_per_key: self.filter_bits_per_key,
            prefix,
            separate_from: self.separate_from,
            ttl: self.ttl,
        })
    }
}

/// The settings of a keyspace as `terrace.KeyspaceOptions`.
pub fn keyspace_options<'py>(
    py: Python<'py>,
    settings: &terrace::KeyspaceOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let prefix = match settings.prefix {
        None => py.None().into_bound(py),
        Some(Prefix::Fixed(bytes)) => bytes.into_pyobject(py)?.into_any(),
        Some(Prefix::Delimited { delimiter, count }) => {
            (PyBytes::new(py, &[delimiter]), count).into_pyobject(py)?.into_any()
        }
        Some(_) => {
            return Err(invalid("the keyspace has a rule for prefixes that this version does not know"));
        }
    };
    let fields = PyDict::new(py);
    fields.set_item("compression", word_for(&settings.compression, COMPRESSIONS))?;
    fields.set_item("filter_bits_per_key", settings.filter_bits_per_key)?;
    fields.set_item("prefix", prefix)?;
    fields.set_item("separate_from", settings.separate_from)?;
    fields.set_item("ttl", settings.ttl)?;
    options_class(py, "KeyspaceOptions", &fields)
}

/// `terrace.Options`.
#[derive(FromPyObject)]
pub struct Options<'py> {
    durability: Bound<'py, PyAny>,
    memory_bytes: Option<u64>,
    space_bytes: Option<u64>,
    memtable_bytes: u64,
    wal_bytes_max: u64,
    reserve_bytes: u64,
    background_threads: Option<usize>,
    keyspace: KeyspaceOptions<'py>,
    tree: String,
}

impl Options<'_> {
    /// As the store has them. A tree called "custom" is that of `current`.
    pub fn settings(&self, current: &terrace::Options) -> PyResult<terrace::Options> {
        let tree = if self.tree == current.profile_name() {
            current.tree.clone()
        } else {
            let profile = terrace::Options::profile(&self.tree).ok_or_else(|| {
                invalid(format!(
                    "tree is '{}', not one of {}",
                    self.tree,
                    terrace::Options::profiles().join(", ")
                ))
            })?;
            profile.tree
        };
        Ok(terrace::Options {
            durability: word(&self.durability, "durability", DURABILITIES)?,
            memory_bytes: self.memory_bytes,
            space_bytes: self.space_bytes,
            memtable_bytes: self.memtable_bytes,
            wal_bytes_max: self.wal_bytes_max,
            reserve_bytes: self.reserve_bytes,
            background_threads: self.background_threads,
            keyspace: self.keyspace.settings()?,
            tree,
        })
    }
}

/// The settings of a store as `terrace.Options`.
pub fn options<'py>(py: Python<'py>, settings: &terrace::Options) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("durability", word_for(&settings.durability, DURABILITIES))?;
    fields.set_item("memory_bytes", settings.memory_bytes)?;
    fields.set_item("space_bytes", settings.space_bytes)?;
    fields.set_item("memtable_bytes", settings.memtable_bytes)?;
    fields.set_item("wal_bytes_max", settings.wal_bytes_max)?;
    fields.set_item("reserve_bytes", settings.reserve_bytes)?;
    fields.set_item("background_threads", settings.background_threads)?;
    fields.set_item("keyspace", keyspace_options(py, &settings.keyspace)?)?;
    fields.set_item("tree", settings.profile_name())?;
    options_class(py, "Options", &fields)
}
