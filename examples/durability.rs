//! What survives what, and what it costs.
//!
//! - `Buffered`, the default: the write survives the death of the process; the operating system has it.
//! - `Synced`: it survives power loss; the device has it. Threads that commit together share the wait.
//! - `Db::sync`: everything acknowledged so far survives power loss, at the moment of your choice.
//!
//! Run with `cargo run --release --example durability [DIRECTORY]`.

use terrace::{Db, Durability, ErrorKind, Options, Result, WriteBatch};

const WRITES: u32 = 200;

fn main() -> Result<()> {
    let path = std::env::args_os()
        .nth(1)
        .map_or_else(|| std::env::temp_dir().join("terrace-durability"), Into::into);
    let db = Db::open(&path)?;

    let before = syncs(&db);
    for number in 0..WRITES {
        db.put(format!("click:{number}"), "worth little")?;
    }
    println!("{WRITES} buffered writes: {} syncs", syncs(&db) - before);

    let before = syncs(&db);
    for number in 0..WRITES {
        let mut order = WriteBatch::new();
        order.put(format!("order:{number}"), "worth a lot");
        db.write_with(order, Durability::Synced)?;
    }
    println!("{WRITES} synced writes: {} syncs", syncs(&db) - before);

    let before = syncs(&db);
    for number in 0..WRITES {
        db.put(format!("import:{number}"), "repeatable")?;
    }
    db.sync()?;
    println!("{WRITES} buffered writes and one sync: {} syncs", syncs(&db) - before);
    db.close()?;

    // A store whose every write is to be synced says so once.
    let options = Options { durability: Durability::Synced, ..Options::default() };
    let db = Db::builder(&path).options(options).open()?;
    db.put("ledger", "synced")?;

    // After an error the kind says what to do.
    match db.put("k".repeat(100_000), "too long a key") {
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            println!("refused, nothing has changed: {error}")
        }
        Err(error) if error.kind() == ErrorKind::DiskFull => println!("free some space, then go on: {error}"),
        Err(error) if error.kind() == ErrorKind::Poisoned => println!("reopen the store: {error}"),
        other => other?,
    }
    db.close()
}

fn syncs(db: &Db) -> u64 {
    db.stats().syncs.total()
}
