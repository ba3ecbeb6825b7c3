//! The same keys, ingested again and again: each ingest takes the place of the last one, and nothing is merged.
//!
//! Run with `cargo run --release --example ingest_again [DIRECTORY]`.

use terrace::{Db, Result};

fn main() -> Result<()> {
    let path =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("terrace-again"), Into::into);
    let db = Db::open(path)?;
    let prices = db.keyspace("prices")?;
    for night in 0..10 {
        let mut ingest = prices.ingest()?;
        for item in 0..500_000 {
            ingest.push(format!("{item:016}"), format!("{:0100}", item * 7 + night))?;
        }
        ingest.finish()?;
        db.wait_idle()?;
        let runs: usize = prices.shape().levels.iter().map(|level| level.runs).sum();
        let compaction = db.stats().compaction;
        println!(
            "night {night}: {} items in {runs} runs; {} tables were dropped unread, {} MB merged",
            prices.iter()?.count(),
            compaction.hidden_tables,
            compaction.bytes_out / 1_000_000,
        );
    }
    db.close()
}
