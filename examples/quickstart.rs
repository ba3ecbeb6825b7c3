//! Opens a store, writes, reads, walks and deletes.
//!
//! Run with `cargo run --example quickstart [DIRECTORY]`.

use terrace::{Db, Result};

fn main() -> Result<()> {
    let path = std::env::args_os()
        .nth(1)
        .map_or_else(|| std::env::temp_dir().join("terrace-quickstart"), Into::into);
    let db = Db::open(&path)?;
    println!("opened {}", path.display());

    db.put("planet:mercury", "57.9 million km")?;
    db.put("planet:venus", "108.2 million km")?;
    db.put("planet:earth", "149.6 million km")?;
    db.put("star:sun", "0")?;

    if let Some(distance) = db.get("planet:earth")? {
        println!("earth is {} away from the sun", String::from_utf8_lossy(&distance));
    }

    db.delete("planet:venus")?;
    assert!(!db.contains("planet:venus")?);

    // Keys come in bytewise order, whatever the order they were written in.
    println!("planets:");
    for record in db.prefix("planet:")? {
        let (key, value) = record?;
        println!("  {} -> {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
    }

    // Ranges have bounds of any kind, and every walk goes both ways.
    if let Some(record) = db.range("planet:".."planet;")?.next_back() {
        println!("last planet: {}", String::from_utf8_lossy(&record?.0));
    }

    // Closing syncs and reports errors; dropping the last handle closes too, but has nobody to report to.
    db.close()
}
