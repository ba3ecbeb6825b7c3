//! A writer that counts, so that each moment of its store shows everything that must be there.
//!
//! Batch `n` puts `n` as the count and as a key of its own in two keyspaces, removes an old key, and is acknowledged
//! before `n + 1` begins. So at any moment the two counts are equal, and they determine every key.

use terrace::{Db, Durability, Snapshot, WriteBatch};

/// Number of keys that exist at any moment: the newest ones.
const KEPT: u64 = 150;

/// Writes batch `n`.
pub fn write_batch(db: &Db, n: u64) -> terrace::Result<()> {
    let other = db.keyspace("other")?;
    let mut batch = WriteBatch::new();
    batch.put("count", n.to_string()).put_in(&other, "count", n.to_string());
    batch.put(format!("key {n:08}"), vec![n as u8; 200]);
    batch.put_in(&other, format!("key {n:08}"), vec![n as u8; 20]);
    if n > KEPT {
        batch.delete(format!("key {:08}", n - KEPT));
        batch.delete_in(&other, format!("key {:08}", n - KEPT));
    }
    db.write_with(batch, if n.is_multiple_of(16) { Durability::Synced } else { Durability::Buffered })
}

/// Checks that a snapshot shows one moment, and returns its number.
pub fn moment(db: &Db, snapshot: &Snapshot) -> u64 {
    let Some(count) = snapshot.get("count").unwrap() else { return 0 };
    let count: u64 = std::str::from_utf8(&count).unwrap().parse().unwrap();
    let other = db.existing_keyspace("other").unwrap().unwrap();
    let keys = |iter: terrace::Iter| -> Vec<(Vec<u8>, u8)> {
        iter.map(|entry| entry.unwrap()).map(|(key, value)| (key.to_vec(), value[0])).collect()
    };
    let expected: Vec<(Vec<u8>, u8)> = (count.saturating_sub(KEPT) + 1..=count)
        .map(|n| (format!("key {n:08}").into_bytes(), n as u8))
        .collect();
    assert_eq!(keys(snapshot.prefix("key ").unwrap()), expected, "default at {count}");
    let in_other = snapshot.keyspace(&other);
    assert_eq!(in_other.get("count").unwrap().unwrap(), count.to_string().as_str());
    assert_eq!(keys(in_other.prefix("key ").unwrap()), expected, "other at {count}");
    count
}
