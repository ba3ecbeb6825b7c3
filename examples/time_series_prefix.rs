//! Time series: keys of series and time, read by prefix, by range and backwards.
//!
//! Run with `cargo run --example time_series_prefix [DIRECTORY]`.

use terrace::{Db, Result, WriteBatch};

/// Seconds between two measurements.
const STEP: u64 = 60;

fn main() -> Result<()> {
    let path =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("terrace-series"), Into::into);
    let db = Db::open(path)?;

    let day = 1_700_000_000..1_700_086_400;
    for series in ["indoor", "outdoor"] {
        let mut batch = WriteBatch::new();
        for time in day.clone().step_by(STEP as usize) {
            let degrees = if series == "indoor" { 20.0 } else { (time % 86_400) as f64 / 7200.0 };
            batch.put(key(series, time), format!("{degrees:.2}"));
        }
        db.write(batch)?;
    }

    // One series: all keys that start with its name and the separator.
    println!("outdoor has {} measurements", db.prefix("outdoor/")?.count());

    // One hour of it.
    let hour = key("outdoor", day.start)..key("outdoor", day.start + 3600);
    let mut degrees = Vec::new();
    for record in db.range(hour)? {
        degrees.extend(String::from_utf8_lossy(&record?.1).parse::<f64>());
    }
    println!(
        "its first hour has {}, {:.2} on average",
        degrees.len(),
        degrees.iter().sum::<f64>() / degrees.len() as f64
    );

    // The newest three, newest first.
    for record in db.prefix("outdoor/")?.rev().take(3) {
        let (key, value) = record?;
        println!("  {} {}", time(&key), String::from_utf8_lossy(&value));
    }

    // Expiry: everything of the first half of the day goes, one batch per series.
    for series in ["indoor", "outdoor"] {
        let mut batch = WriteBatch::new();
        for record in db.range(key(series, 0)..key(series, day.start + 43_200))? {
            batch.delete(record?.0);
        }
        println!("{series}: {} measurements expire", batch.len());
        db.write(batch)?;
    }
    println!("{} measurements are left", db.iter()?.count());
    db.close()
}

/// Big-endian times sort as numbers do.
fn key(series: &str, time: u64) -> Vec<u8> {
    let mut key = format!("{series}/").into_bytes();
    key.extend((0..8).rev().map(|byte| (time >> (8 * byte)) as u8));
    key
}

/// The time in a key.
fn time(key: &[u8]) -> u64 {
    let digits = &key[key.len().saturating_sub(8)..];
    digits.iter().fold(0, |time, &byte| time << 8 | u64::from(byte))
}
