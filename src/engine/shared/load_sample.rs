//! Samples of the load as text, so that they can be kept in any file.
//!
//! A [`LoadSample`] is all that a pacer decides by. As text it is one line of `name=value`. [`replay`](crate::replay) says what
//! a pacer makes of samples that were taken earlier.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Costs, LoadClass, LoadState, Pace, Round, UserLoad};

/// A sample of the load, with all that pacers decide by. See [`EventListener::load_sample`](crate::EventListener::load_sample) and
/// [`replay`](crate::replay).
///
/// As text it is a line of names and values, without those that are zero:
///
/// ```
/// let line = "period=1000000000 written=4096 active=4096 active.max=67108864";
/// let sample: terrace::LoadSample = line.parse()?;
/// assert!(sample.to_string().starts_with(line));
/// assert_eq!(sample.to_string().parse::<terrace::LoadSample>()?, sample);
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LoadSample {
    /// The load, with what users did and what the pacer made of it.
    pub(in crate::engine) load: LoadState,
    /// What the pacer had made of the samples before.
    pub(in crate::engine) before: Pace,
}

impl fmt::Display for LoadSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::new();
        let mut sample = *self;
        each_field(&mut sample, &mut |name, value| {
            if let Some(value) = value.text() {
                let gap = if line.is_empty() { "" } else { " " };
                // To a string: it cannot fail.
                let _ = write!(line, "{gap}{name}={value}");
            }
        });
        f.write_str(&line)
    }
}

impl FromStr for LoadSample {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let wrong = |word: &str| {
            let message = format!("{word:?} is not a field of a sample of the load and its value");
            Error::new(ErrorKind::InvalidInput, message)
        };
        let mut sample = Self::default();
        for word in line.split_whitespace() {
            let (wanted, text) = word.split_once('=').ok_or_else(|| wrong(word))?;
            let mut is_read = false;
            each_field(&mut sample, &mut |name, value| {
                if name == wanted {
                    is_read = value.read(text);
                }
            });
            if !is_read {
                return Err(wrong(word));
            }
        }
        Ok(sample)
    }
}

/// A value that is one word of a line.
trait Field {
    /// None if it is what it is in a new sample.
    fn text(&self) -> Option<String>;

    /// Returns whether `text` is one.
    fn read(&mut self, text: &str) -> bool;
}

/// Takes `value` if there is one.
fn take<T>(field: &mut T, value: Option<T>) -> bool {
    value.is_some_and(|value| {
        *field = value;
        true
    })
}

impl Field for u64 {
    fn text(&self) -> Option<String> {
        (*self > 0).then(|| self.to_string())
    }
    fn read(&mut self, text: &str) -> bool {
        take(self, text.parse().ok())
    }
}

impl Field for u32 {
    fn text(&self) -> Option<String> {
        u64::from(*self).text()
    }
    fn read(&mut self, text: &str) -> bool {
        take(self, text.parse().ok())
    }
}

impl Field for bool {
    fn text(&self) -> Option<String> {
        self.then(|| "1".to_owned())
    }
    fn read(&mut self, text: &str) -> bool {
        *self = true;
        text == "1"
    }
}

/// In nanoseconds, at most 584 years.
impl Field for Duration {
    fn text(&self) -> Option<String> {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX).text()
    }
    fn read(&mut self, text: &str) -> bool {
        take(self, text.parse().ok().map(Self::from_nanos))
    }
}

impl Field for Option<u64> {
    fn text(&self) -> Option<String> {
        self.map(|value| value.to_string())
    }
    fn read(&mut self, text: &str) -> bool {
        take(self, text.parse().ok().map(Some))
    }
}

/// The shortest text that is the same number again.
impl Field for f64 {
    fn text(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
    fn read(&mut self, text: &str) -> bool {
        take(self, text.parse().ok())
    }
}

impl Field for LoadClass {
    fn text(&self) -> Option<String> {
        (*self == Self::High).text()
    }
    fn read(&mut self, text: &str) -> bool {
        *self = Self::High;
        text == "1"
    }
}

/// Tells `each` all fields with their names. No pattern leaves one out.
fn each_field(sample: &mut LoadSample, each: &mut dyn FnMut(&str, &mut dyn Field)) {
    let LoadSample { load, before } = sample;
    let LoadState {
        active_bytes,
        active_bytes_max,
        sealed_memtables,
        sealed_bytes,
        l0_runs,
        l0_run_bytes,
        l0_bytes,
        l0_flushed_runs,
        l0_part_runs,
        debt_bytes,
        value_bytes,
        dead_value_bytes,
        levels,
        flush_bytes_per_second,
        compaction_bytes_per_second,
        running,
        is_flushing,
        processors,
        compaction_threads,
        waiting_writers,
        is_awaited,
        users,
        pace,
        costs,
    } = load;
    users_fields(users, each);
    each("active", active_bytes);
    each("active.max", active_bytes_max);
    each("sealed", sealed_memtables);
    each("sealed.bytes", sealed_bytes);
    each("l0.runs", l0_runs);
    each("l0.run_bytes", l0_run_bytes);
    each("l0.bytes", l0_bytes);
    each("l0.flushed", l0_flushed_runs);
    each("l0.parts", l0_part_runs);
    each("debt", debt_bytes);
    each("values", value_bytes);
    each("values.dead", dead_value_bytes);
    for (at, level) in levels.iter_mut().enumerate() {
        each(&format!("l{at}.held"), &mut level.bytes);
        each(&format!("l{at}.max"), &mut level.bytes_max);
        each(&format!("l{at}.in"), &mut level.moved_in);
        each(&format!("l{at}.out"), &mut level.moved_out);
    }
    each("flush.rate", flush_bytes_per_second);
    each("compaction.rate", compaction_bytes_per_second);
    for (name, count) in ["l0", "within_l0", "deep", "upkeep", "manual"].into_iter().zip(&mut running.0) {
        each(&format!("running.{name}"), count);
    }
    each("flushing", is_flushing);
    each("processors", processors);
    each("threads", compaction_threads);
    each("waiting", waiting_writers);
    each("awaited", is_awaited);
    pace_fields("pace", pace, each);
    pace_fields("before", before, each);
    costs_fields(costs, each);
}

fn costs_fields(costs: &mut Costs, each: &mut dyn FnMut(&str, &mut dyn Field)) {
    let Costs {
        compacted_byte,
        seek_cached,
        filter_probe,
        asked_block,
        written_byte,
        memory_read_max,
        device,
    } = costs;
    each("cost.compacted_byte", compacted_byte);
    each("cost.seek_cached", seek_cached);
    each("cost.filter_probe", filter_probe);
    each("cost.asked_block", asked_block);
    each("cost.written_byte", written_byte);
    each("cost.memory_read_max", memory_read_max);
    each("cost.block_read", &mut device.block_read);
    each("cost.barrier", &mut device.barrier);
}

fn users_fields(users: &mut UserLoad, each: &mut dyn FnMut(&str, &mut dyn Field)) {
    let UserLoad {
        period,
        asked,
        reads,
        read_time,
        read_bytes,
        written_bytes,
        lookups,
        seeks,
        returned_bytes,
        missed_bytes,
        log_bytes,
        file_bytes,
        held_up,
    } = users;
    each("period", period);
    each("asked", asked);
    each("reads", reads);
    each("read.time", read_time);
    each("read.bytes", read_bytes);
    each("written", written_bytes);
    each("lookups", lookups);
    each("seeks", seeks);
    each("returned", returned_bytes);
    each("missed", missed_bytes);
    each("log", log_bytes);
    each("files", file_bytes);
    each("held_up", held_up);
}

fn pace_fields(of: &str, pace: &mut Pace, each: &mut dyn FnMut(&str, &mut dyn Field)) {
    let Pace {
        class,
        streak,
        is_repaying,
        client_bytes_per_second,
        background_bytes_per_second,
        device_bytes_per_second,
        quick_read_nanos,
        rounds,
    } = pace;
    each(&format!("{of}.high"), class);
    each(&format!("{of}.streak"), streak);
    each(&format!("{of}.repaying"), is_repaying);
    each(&format!("{of}.client"), client_bytes_per_second);
    each(&format!("{of}.background"), background_bytes_per_second);
    each(&format!("{of}.device"), device_bytes_per_second);
    each(&format!("{of}.quick_read"), quick_read_nanos);
    for (at, Round { bytes, moved_in, moved_out }) in rounds.iter_mut().enumerate() {
        each(&format!("{of}.l{at}.held"), bytes);
        each(&format!("{of}.l{at}.in"), moved_in);
        each(&format!("{of}.l{at}.out"), moved_out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each field by itself comes back, and no two have the same name.
    #[test]
    fn a_sample_comes_back_from_its_line() {
        let mut names = Vec::new();
        each_field(&mut LoadSample::default(), &mut |name, _| names.push(name.to_owned()));
        assert!(names.len() > 100);
        for name in &names {
            let value = if name.starts_with("cost.") { "0.1" } else { "1" };
            let sample: LoadSample = format!("{name}={value}").parse().unwrap();
            assert_ne!(sample, LoadSample::default(), "{name}");
            assert_eq!(sample.to_string().parse::<LoadSample>().unwrap(), sample, "{name}");
        }
        let all: Vec<_> = names.iter().map(|name| format!("{name}=1")).collect();
        let all: LoadSample = all.join(" ").parse().unwrap();
        assert_eq!(all.to_string().parse::<LoadSample>().unwrap(), all);
        assert_eq!(all.to_string().split(' ').count(), names.len());
        for wrong in ["period", "period=", "period=-1", "speed=1", "held_up=2"] {
            assert_eq!(wrong.parse::<LoadSample>().unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong}");
        }
    }
}
