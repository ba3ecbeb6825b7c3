//! What the list of the latest writes knows, and what it has forgotten.

use super::*;

fn put(key: &str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key, "value");
    batch
}

fn wanted(last: u64) -> Recent {
    let mut recent = Recent::default();
    recent.want(Seq(last));
    recent
}

#[test]
fn it_does_not_claim_to_know_what_it_was_not_told() {
    let mut recent = wanted(7);
    assert!(recent.covers(Seq(7), Seq(7)) && !recent.covers(Seq(6), Seq(7)));
    recent.note(&put("a"), Seq(8));
    assert!(recent.covers(Seq(7), Seq(8)) && !recent.covers(Seq(6), Seq(8)));
    // Number 9 was an ingest.
    assert!(!recent.covers(Seq(8), Seq(9)));
    recent.note(&put("b"), Seq(10));
    assert!(!recent.covers(Seq(8), Seq(10)) && recent.covers(Seq(9), Seq(10)));
}

#[test]
fn it_is_bounded_and_knows_what_it_has_forgotten() {
    let mut recent = wanted(0);
    for seq in 1..=2 * WRITES_MAX as u64 {
        recent.want(Seq(seq));
        recent.note(&put("key"), Seq(seq));
    }
    let last = Seq(2 * WRITES_MAX as u64);
    assert!(recent.covers(Seq(WRITES_MAX as u64), last));
    assert!(!recent.covers(Seq(WRITES_MAX as u64 - 1), last));
    let long = "k".repeat(KEY_BYTES_MAX / 4 - 4096);
    (1..=6).for_each(|n| recent.note(&put(&long), last.plus(n)));
    assert!(recent.key_bytes <= KEY_BYTES_MAX && recent.writes.len() == 4);
    assert!(recent.covers(last.plus(2), last.plus(6)) && !recent.covers(last.plus(1), last.plus(6)));
    let mut large = WriteBatch::new();
    (0..=WRITES_MAX).for_each(|n| _ = large.put(n.to_le_bytes(), "value"));
    let (first, end) = (last.plus(7), last.plus(7 + WRITES_MAX as u64));
    recent.note(&large, first);
    assert!(recent.writes.is_empty() && !recent.covers(last.plus(6), end));
    recent.note(&put("key"), end.plus(1));
    assert!(recent.covers(end, end.plus(1)) && !recent.covers(first, end.plus(1)));
}

#[test]
fn it_is_kept_for_a_while_only() {
    let mut recent = wanted(0);
    for seq in 1..=WANTED_FOR + 1 {
        recent.note(&put("key"), Seq(seq));
    }
    assert!(recent.writes.is_empty() && !recent.covers(Seq(WANTED_FOR), Seq(WANTED_FOR + 1)));
    recent.want(Seq(WANTED_FOR + 1));
    recent.note(&put("key"), Seq(WANTED_FOR + 2));
    assert!(recent.covers(Seq(WANTED_FOR + 1), Seq(WANTED_FOR + 2)));
    assert!(!recent.covers(Seq(WANTED_FOR), Seq(WANTED_FOR + 2)));
}
