//! YCSB's property files: `name=value` lines, as `java.util.Properties` reads them (escapes and continuations aside).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use crate::Result;

/// Properties that shape a workload here.
const USED: &[&str] = &[
    "recordcount",
    "operationcount",
    "insertstart",
    "insertcount",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "readproportion",
    "updateproportion",
    "scanproportion",
    "insertproportion",
    "readmodifywriteproportion",
    "requestdistribution",
    "hotspotdatafraction",
    "hotspotopnfraction",
    // Ours: for updates without a read; YCSB draws them as it draws reads.
    "updatedistribution",
    "minscanlength",
    "maxscanlength",
    "scanlengthdistribution",
    "insertorder",
    "zeropadding",
];

/// Properties that a store of whole values gives no meaning: fields are read and written together, and every value
/// is verified anyway.
const WITHOUT_EFFECT: &[&str] =
    &["workload", "table", "readallfields", "readallfieldsbyname", "writeallfields", "dataintegrity"];

/// Named settings; a later one replaces an earlier one of the same name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    values: BTreeMap<String, String>,
}

impl Properties {
    /// Reads the text of the property file `name`. A byte-order mark in front, as editors on Windows write it, is no part of it.
    ///
    /// # Errors
    /// A line that is no comment and has no `=` or `:`.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let mut properties = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let (key, value) = line
                .split_once(['=', ':'])
                .ok_or_else(|| format!("{name}:{}: expected name=value, found {line:?}", index + 1))?;
            properties.set(key.trim(), value.trim());
        }
        Ok(properties)
    }

    /// Sets one property.
    pub fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    /// Takes over all of `other`, which win.
    pub fn extend(&mut self, other: &Self) {
        self.values.extend(other.values.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    /// The value of `name`, or `default` where it is not set.
    ///
    /// # Errors
    /// A value that is no `T`.
    pub fn get<T: FromStr<Err: Display>>(&self, name: &str, default: T) -> Result<T> {
        let Some(value) = self.values.get(name) else { return Ok(default) };
        value.parse().map_err(|error| format!("property {name}={value}: {error}").into())
    }

    /// The text of `name`, or `default` where it is not set.
    #[must_use]
    pub fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.values.get(name).map_or(default, String::as_str)
    }

    /// Names that mean nothing here.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let known = |name: &str| USED.contains(&name) || WITHOUT_EFFECT.contains(&name);
        self.values.keys().map(String::as_str).filter(move |name| !known(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_spaces_and_both_separators_are_read() {
        let text = "# comment\n! too\n\n recordcount = 12 \nrequestdistribution:latest\nhotness=3\n";
        let properties = Properties::parse("w", text).unwrap();
        assert_eq!(properties.get("recordcount", 0_u64).unwrap(), 12);
        assert_eq!(properties.get("operationcount", 7_u64).unwrap(), 7);
        assert_eq!(properties.text("requestdistribution", ""), "latest");
        assert_eq!(properties.unknown().collect::<Vec<_>>(), ["hotness"]);
    }

    #[test]
    fn text_from_windows_is_read_as_any_other() {
        let properties =
            Properties::parse("w", "\u{FEFF}recordcount=12\r\nrequestdistribution=latest\r\n").unwrap();
        assert_eq!(
            properties,
            Properties::parse("w", "recordcount=12\nrequestdistribution=latest\n").unwrap()
        );
    }

    #[test]
    fn malformed_lines_and_values_are_named() {
        let error = Properties::parse("w", "a=1\nnonsense\n").unwrap_err().to_string();
        assert!(error.starts_with("w:2: "), "{error}");
        let error =
            Properties::parse("w", "recordcount=many").unwrap().get("recordcount", 0_u64).unwrap_err();
        assert!(error.to_string().contains("recordcount=many"), "{error}");
    }

    #[test]
    fn later_properties_win() {
        let mut first = Properties::parse("a", "x=1\ny=1").unwrap();
        first.extend(&Properties::parse("b", "y=2").unwrap());
        assert_eq!((first.text("x", ""), first.text("y", "")), ("1", "2"));
    }
}
