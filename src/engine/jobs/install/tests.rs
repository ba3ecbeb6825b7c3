//! Results that would hide newer entries are refused before anything of them is written, and nothing else suffers.

use std::path::{Path, PathBuf};

use super::*;
use crate::batch::{DEFAULT_KEYSPACE, WriteBatch};
use crate::engine::jobs::compaction_iterator::Sink;
use crate::engine::jobs::output::{Finished, Output, Writing};
use crate::engine::keyspace::tree::Tree;
use crate::engine::shared::job::Job;
use crate::engine::{Engine, Opening, open};
use crate::env::simulated::{SimConfig, SimEnv};
use crate::format::edit::{PackRecord, TableRecord};
use crate::format::names::FileName;
use crate::options::Durability;
use crate::types::{Kind, Seq, Stamp, UpperBound};

const DIR: &str = "/db";

fn opened(env: &Arc<SimEnv>) -> Arc<Engine> {
    open(&Opening::of_test(env.clone(), Default::default(), false)).unwrap()
}

fn put(engine: &Engine, key: &str, value: &str) {
    let mut batch = WriteBatch::new();
    batch.put(key, value);
    engine.write.commit(&batch, Durability::Buffered).unwrap();
}

fn flush(engine: &Engine) -> Result<()> {
    engine.write.seal_all().and_then(|()| engine.background.wait_flushed())
}

/// A table of level 0 with `key`, numbered `number`, as an ingest would bring it.
fn ingested(engine: &Engine, tree: &Tree, key: &str, number: Seq) -> Change {
    let epoch = engine.jobs.ids.epoch();
    let mut output = Output::new(&*engine.jobs, Writing::Ingest, engine.jobs.table_settings(tree, 0, epoch));
    output.add(key.as_bytes(), Stamp::new(Seq::ZERO, Kind::Put), b"new", None).unwrap();
    output.cut(&UpperBound::Unbounded).unwrap();
    let Finished { tables, packs, .. } = output.finish().unwrap();
    let placed = |table| (0, TableRecord { min_seq: number, max_seq: number, epoch, ..table });
    let add = tables.into_iter().map(placed).collect();
    let mut change = Change::of_tree(TreeEdit { keyspace: tree.id(), add, ..TreeEdit::default() });
    change.edit.packs = packs.records().to_vec();
    change.packs = Some(packs);
    change
}

/// The manifest, and which of `packs` are there.
fn left(env: &SimEnv, packs: &[PackRecord]) -> (Vec<u8>, Vec<PathBuf>) {
    let packs: Vec<PathBuf> =
        packs.iter().map(|pack| Path::new(DIR).join(FileName::Pack(pack.id).to_string())).collect();
    let (mut manifest, mut found) = (Vec::new(), Vec::new());
    for (path, _) in env.files() {
        if path.to_string_lossy().contains("MANIFEST") {
            manifest.extend(env.read_file(&path).unwrap());
        }
        found.extend(packs.contains(&path).then_some(path));
    }
    assert!(!manifest.is_empty());
    (manifest, found)
}

#[test]
fn i3_a_result_that_would_hide_newer_entries_is_refused_before_it_is_written() {
    SimEnv::run(SimConfig::default(), |env| {
        let engine = opened(&env);
        let tree = engine.keyspaces.tree(DEFAULT_KEYSPACE).unwrap();
        put(&engine, "key", "old");
        put(&engine, "key", "newer");
        flush(&engine).unwrap();
        let (newest, number) = (engine.read.visible(), engine.jobs.catalog.lock().catalog.number);
        let change = ingested(&engine, &tree, "key", newest);
        let packs = change.edit.packs.clone();
        let (manifest, found) = left(&env, &packs);
        assert_eq!(found.len(), 1);
        let error = engine.jobs.install(change).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Inconsistent);
        for part in ["keyspace \"default\"", "I3", "new table t", "would stand before t"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(left(&env, &packs), (manifest, Vec::new()), "nothing is left of it");
        assert_eq!(engine.jobs.catalog.lock().catalog.number, number);
        engine.health.check_writable().unwrap();
        engine.jobs.install(ingested(&engine, &tree, "key", newest.plus(1))).unwrap();
        engine.close().unwrap();
    });
}

/// What a flush must not be told of: an ingest that came before it and is newer. (A fault in the wait of ingests did that.)
#[test]
fn i3_a_flush_that_would_hide_an_ingest_is_refused_and_the_store_goes_on() {
    SimEnv::run(SimConfig::default(), |env| {
        let engine = opened(&env);
        let tree = engine.keyspaces.tree(DEFAULT_KEYSPACE).unwrap();
        put(&engine, "key", "old");
        let number = engine.read.visible().plus(1);
        put(&engine, "other key", "of the ingest's number");
        engine.jobs.install(ingested(&engine, &tree, "key", number)).unwrap();
        for _ in 0..3 {
            let error = flush(&engine).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Inconsistent, "{error}");
        }
        assert!(engine.background.trouble(Job::Flush, |_| true).is_some());
        // Left alone, it is tried at longer and longer intervals.
        let failed = engine.stats().background_errors;
        engine.jobs.env.sleep(std::time::Duration::from_secs(60));
        let tries = engine.stats().background_errors - failed;
        assert!((1..20).contains(&tries), "{tries} tries within a minute");
        // Neither reads nor writes suffer, nor what is opened after it.
        engine.health.check_writable().unwrap();
        put(&engine, "written", "since");
        engine.write.sync().unwrap();
        engine.close().unwrap();
        drop((engine, tree));
        let engine = opened(&env);
        let tree = engine.keyspaces.tree(DEFAULT_KEYSPACE).unwrap();
        assert_eq!(tree.view().version.len(), 1);
        assert!(tree.first_unflushed(None).is_some(), "the log has what no table has");
        engine.close().unwrap();
    });
}
