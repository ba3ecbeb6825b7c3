//! Reads one state of the store while it goes on changing.
//!
//! Run with `cargo run --example snapshot_scan [DIRECTORY]`.

use terrace::{Db, Result};

fn main() -> Result<()> {
    let path =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("terrace-snapshot"), Into::into);
    let db = Db::open(path)?;
    for number in 0..1000_u32 {
        db.put(format!("stock:{number:04}"), "10")?;
    }

    // A snapshot costs next to nothing to take and holds for as long as it lives.
    let snapshot = db.snapshot();
    for number in (0..1000_u32).step_by(3) {
        db.put(format!("stock:{number:04}"), "9")?;
    }
    db.delete("stock:0500")?;

    let (before, after) = (total(snapshot.iter()?)?, total(db.iter()?)?);
    println!("as of sequence number {}: {before} pieces", snapshot.seq());
    println!("now: {after} pieces");
    assert_eq!((before, after), (10_000, 10_000 - 334 - 10));
    assert!(snapshot.contains("stock:0500")? && !db.contains("stock:0500")?);

    drop(snapshot);
    db.close()
}

/// The sum of all values. `advance` lends keys and values instead of handing them out: the cheapest way to walk far.
fn total(mut iter: terrace::Iter) -> Result<u64> {
    let mut total = 0;
    while let Some((_, value)) = iter.advance()? {
        total += std::str::from_utf8(value).ok().and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(total)
}
