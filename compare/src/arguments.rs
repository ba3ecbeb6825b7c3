//! The command line.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;

use crate::records::VALUE_BYTES;
use crate::scorecard::Workload;
use crate::settings::Settings;
use crate::store::Engine;

/// Most threads of a load.
const LOAD_THREADS_MAX: usize = 64;

/// Least cache of a store.
const CACHE_BYTES_MIN: u64 = 1 << 20;

/// Measures Terrace beside other stores: a scorecard of twelve workloads, in interleaved rounds.
///
/// `terrace-compare calm` measures whether clients notice the work of the background, `terrace-compare deletes` what deletes
/// cost; their --help says more.
///
/// Databases live in a temporary directory below --dir, which is removed at the end, also of an interrupted or failed run.
#[derive(Parser)]
#[command(name = "terrace-compare")]
pub struct Arguments {
    /// Engines, in the order of the first round [default: terrace, leveldb, rocksdb, fjall, redb and lmdb; with --quick,
    /// terrace, rocksdb and lmdb]
    ///
    /// There are leveldb-2m, leveldb-unchecked, terrace-lz4, rocksdb-lz4, rocksdb-limited, fjall-lz4 and solistore besides, and Terrace in other shapes:
    /// terrace@PROFILE, with parts of its tree set otherwise, as in terrace@default:settle=off:group_bytes=64M.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = engine)]
    engines: Vec<Engine>,

    /// Workloads [default: all; with --quick, load-r, sync, get-u, scan, ycsb-a and overwrite-l]
    #[arg(long, value_enum, value_delimiter = ',')]
    workloads: Vec<Workload>,

    /// A run of 3 minutes: three engines, six workloads, one round, less data
    #[arg(long)]
    quick: bool,

    /// Rounds; each gives every engine its turns, in the opposite order of the one before [default: 3; with --quick, 1]
    #[arg(long)]
    rounds: Option<usize>,

    /// Time for the whole run, which the phases share; none takes longer than its full time [default: 40; with --quick, 3]
    #[arg(long)]
    minutes: Option<f64>,

    /// Small records [default: 10,000,000; with --quick, 2,000,000]
    #[arg(long)]
    records: Option<u64>,

    /// Size of the values of small records, behind keys of 16 bytes
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    value_bytes: usize,

    /// Large records, of 16 + 1,024 bytes; memory is limited to a quarter of them [default: 4,000,000; with --quick, 500,000]
    #[arg(long)]
    large_records: Option<u64>,

    /// Threads of load-r
    #[arg(long, default_value_t = 1, value_name = "THREADS")]
    load_threads: usize,

    /// Cache of the stores of small records, in bytes [default: twice their data, at most 3.75 GiB]
    #[arg(long, value_name = "BYTES")]
    cache_bytes: Option<u64>,

    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Change of disk or memory, in percent, that voids a turn
    #[arg(long, default_value_t = 10.0)]
    drift: f64,

    /// Processor time taken by other machines, in percent, that voids a turn
    #[arg(long, default_value_t = 2.0)]
    steal: f64,

    /// Times that a void turn is repeated, until it is left out
    #[arg(long, default_value_t = 1)]
    retries: usize,

    /// Reads and writes per second of the tail workload [default: half of the lookups and three tenths of the puts that
    /// the slowest engine manages]
    #[arg(long, value_delimiter = ',', value_name = "READS,WRITES")]
    tail_rates: Vec<f64>,

    /// Directory for the stores, on the disk to measure [default: that for temporary files]
    #[arg(long)]
    pub dir: Option<PathBuf>,

    /// Also write everything to this file, as one object
    #[arg(long)]
    pub json: Option<PathBuf>,

    /// Also draw the scorecard on a page of HTML in this file, which needs no other
    #[arg(long)]
    pub html: Option<PathBuf>,

    /// File in which finished turns are kept until the run is complete
    #[arg(long, default_value = "terrace-compare.state")]
    pub state: PathBuf,

    /// Go on where the run in the state file was cut off
    #[arg(long)]
    pub resume: bool,
}

impl Arguments {
    /// What they ask for.
    ///
    /// # Errors
    /// Numbers that make no sense.
    pub fn settings(&self) -> Result<Settings> {
        let (engines, workloads) = if self.quick {
            (vec![Engine::Terrace, Engine::Rocksdb, Engine::Lmdb], Workload::quick())
        } else {
            (peers(), Workload::scorecard())
        };
        let or = |given: Option<u64>, quick, full| given.unwrap_or(if self.quick { quick } else { full });
        let given = |given: &[Engine], default| if given.is_empty() { default } else { given.to_vec() };
        let mut settings = Settings {
            engines: given(&self.engines, engines),
            workloads: if self.workloads.is_empty() { workloads } else { self.workloads.clone() },
            rounds: self.rounds.unwrap_or(if self.quick { 1 } else { 3 }),
            records: or(self.records, 2_000_000, 10_000_000),
            value_bytes: self.value_bytes,
            large_records: or(self.large_records, 500_000, 4_000_000),
            load_threads: self.load_threads,
            cache_bytes: self.cache_bytes,
            seed: self.seed,
            seconds: f64::MAX,
            scale: 1.0,
            drift_max: self.drift / 100.0,
            steal_max: self.steal / 100.0,
            retries: self.retries,
            tail_rates: <[f64; 2]>::try_from(&self.tail_rates[..])
                .ok()
                .map(|[reads, writes]| (reads, writes)),
        };
        settings.engines.retain(|&engine| engine != Engine::Empty);
        ensure!(!settings.engines.is_empty() && settings.rounds > 0, "nothing to measure");
        ensure!(settings.records >= 1000 && settings.large_records >= 1000, "fewer than 1000 records");
        let (least, most) = (VALUE_BYTES.start(), VALUE_BYTES.end());
        ensure!(VALUE_BYTES.contains(&settings.value_bytes), "--value-bytes takes {least} to {most}");
        let most = LOAD_THREADS_MAX;
        ensure!((1..=most).contains(&settings.load_threads), "--load-threads takes 1 to {most}");
        ensure!(matches!(self.tail_rates.len(), 0 | 2), "--tail-rates takes two numbers");
        let least = CACHE_BYTES_MIN;
        ensure!(
            settings.cache_bytes.is_none_or(|bytes| bytes >= least),
            "--cache-bytes takes {least} and more"
        );
        let positive = |rates: (f64, f64)| rates.0 > 0.0 && rates.1 > 0.0;
        ensure!(settings.tail_rates.is_none_or(positive), "rates must be above 0");
        let told = [Workload::LoadR, Workload::GetU].iter().all(|one| settings.workloads.contains(one));
        ensure!(
            told || settings.tail_rates.is_some() || !settings.workloads.contains(&Workload::Tail),
            "the tail workload needs load-r and get-u, which tell its rates, or --tail-rates"
        );
        settings.fit(60.0 * self.minutes.unwrap_or(if self.quick { 3.0 } else { 40.0 }));
        Ok(settings)
    }
}

fn engine(name: &str) -> Result<Engine> {
    Engine::try_from(name.to_owned())
}

/// The engines of the scorecard, each once.
fn peers() -> Vec<Engine> {
    vec![Engine::Terrace, Engine::Leveldb, Engine::Rocksdb, Engine::Fjall, Engine::Redb, Engine::Lmdb]
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::settings::EMPTY_S;

    fn settings(words: &[&str]) -> Result<Settings> {
        let words = ["terrace-compare"].iter().chain(words);
        Arguments::try_parse_from(words).map_err(anyhow::Error::from)?.settings()
    }

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
        let full = settings(&[]).unwrap();
        assert_eq!((full.engines.len(), full.workloads.len(), full.rounds), (6, 12, 3));
        let quick = settings(&["--quick"]).unwrap();
        assert_eq!((quick.engines.len(), quick.workloads.len(), quick.rounds), (3, 6, 1));
    }

    #[test]
    fn three_rounds_of_everything_fit_forty_minutes_with_a_sixth_of_each_phase_at_least() {
        let full = settings(&[]).unwrap();
        let turns: f64 = full.groups().into_iter().map(|group| full.turn_s(group)).sum();
        let all = turns * (full.engines.len() * full.rounds) as f64 + EMPTY_S * full.groups().len() as f64;
        assert!((all - 2400.0).abs() < 1.0, "{all} s");
        assert!(full.scale > 1.0 / 6.0 && full.scale < 0.28, "{}", full.scale);
    }

    #[test]
    fn what_is_given_wins() {
        let words =
            ["--quick", "--engines", "fjall,terrace-lz4", "--workloads", "tail", "--tail-rates", "5,6"];
        let settings = settings(&words).unwrap();
        assert_eq!(settings.engines, [Engine::Fjall, Engine::TerraceLz4]);
        assert_eq!((settings.workloads, settings.tail_rates), (vec![Workload::Tail], Some((5.0, 6.0))));
    }

    #[test]
    fn terrace_has_other_shapes() {
        let engines = "terrace,terrace@leveldb-64m,terrace@default:settle=off:group_bytes=64M";
        let settings = settings(&["--engines", engines]).unwrap();
        let names: Vec<String> = settings.engines.iter().map(|engine| engine.name()).collect();
        assert_eq!(names.join(","), engines);
    }

    #[test]
    fn an_unknown_engine_or_shape_is_told_what_there_is() {
        for (name, told) in [
            ("sled", "leveldb-unchecked"),
            ("sled", "terrace@PROFILE"),
            ("empty@default", "terrace@PROFILE"),
            ("terrace@sled", "leveldb-64m"),
            ("terrace@default:settle=maybe", "settle=maybe"),
        ] {
            let error = format!("{:#}", settings(&["--engines", name]).unwrap_err());
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for words in [
            &["--rounds", "0"][..],
            &["--records", "5"],
            &["--value-bytes", "23"],
            &["--value-bytes", "65537"],
            &["--load-threads", "0"],
            &["--load-threads", "65"],
            &["--cache-bytes", "1048575"],
            &["--engines", "sled"],
            &["--tail-rates", "0,1"],
            &["--workloads", "tail"],
        ] {
            assert!(settings(words).is_err(), "{words:?}");
        }
    }
}
