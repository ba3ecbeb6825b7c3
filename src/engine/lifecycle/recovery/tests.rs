//! A reader beside a writer that changes files while the reader opens them.

use super::*;
use crate::batch::WriteBatch;
use crate::env::simulated::{SimConfig, SimEnv};
use crate::options::{
    Adaptive, Cutter, Durability, Flushes, Governor, Layout, Options, Pacer, TableSize, TreeOptions,
};
use crate::types::KeyRange;

fn opening(env: &Arc<SimEnv>, options: Options, read_only: bool) -> Opening {
    Opening::of_test(env.clone(), options, read_only)
}

/// Between a writer's question who holds a file and its rename a reader may take hold of it, in vain.
#[test]
fn i8_a_reader_that_held_too_late_is_told_by_the_manifest() {
    SimEnv::run(SimConfig::default(), |env| {
        let writer = open(&opening(&env, Options::default(), false)).unwrap();
        let flush = || {
            let mut batch = WriteBatch::new();
            batch.put("key", "value");
            writer.write.commit(&batch, Durability::Buffered).unwrap();
            writer.write.seal_all().and_then(|()| writer.background.wait_flushed()).unwrap();
        };
        let device = Arc::new(Device::new(env.clone(), "/db".into(), Arc::default()));
        let devices = Arc::new(Devices::alone(device.clone()));
        let (opening, chunks) = (opening(&env, Options::default(), true), Arc::new(ChunkPool::new(0)));
        let store = Store { opening: &opening, device, devices, id: StoreId(0), chunks };
        let see = || store.assemble(&Manifest::load(&store.device).unwrap()).unwrap();
        let verdict = |seen: &Catalog| store.check_held(seen).map_err(|error| error.kind());

        flush();
        let seen = see();
        assert_eq!(verdict(&seen), Ok(()));
        flush();
        let newer = see();
        assert!(seen.packs().all(|pack| newer.pack(pack.record.id).is_some()));
        assert_eq!(verdict(&seen), Err(ErrorKind::Busy), "the log begins later");
        let everything = KeyRange::new(&b"a"[..], &b"z"[..]);
        writer.background.compact(&writer.keyspaces.tree(DEFAULT_KEYSPACE).unwrap(), &everything).unwrap();
        assert_eq!(see().counters.wal_floor, newer.counters.wal_floor);
        assert_eq!(verdict(&newer), Err(ErrorKind::Busy), "a pack is gone");
        assert_eq!(verdict(&see()), Ok(()));
        writer.close().unwrap();
    });
}

/// A table that a compaction has dropped may be punched out of its pack, though the pack and the log stay.
#[test]
fn i8_a_reader_that_held_too_late_for_one_table_of_a_pack_is_told_by_the_manifest() {
    SimEnv::run(SimConfig::default(), |env| {
        let tree = TreeOptions {
            layout: Layout::Adaptive(Adaptive { l0_runs: 100, ..Adaptive::default() }),
            cutter: Cutter::Size(TableSize { table_bytes: 4096, flushes: Flushes::Cut }),
            pacer: Pacer::Governor(Governor { l0_slow: 100, l0_stop: 200, ..Governor::default() }),
            block_bytes: 512,
            ..TreeOptions::default()
        };
        let options = Options { tree, ..Options::default() };
        let writer = open(&opening(&env, options.clone(), false)).unwrap();
        let mut batch = WriteBatch::new();
        for n in 0..40 {
            batch.put(format!("{n:02}"), [n; 1000]);
        }
        writer.write.commit(&batch, Durability::Buffered).unwrap();
        writer.write.seal_all().and_then(|()| writer.background.wait_flushed()).unwrap();
        let device = Arc::new(Device::new(env.clone(), "/db".into(), Arc::default()));
        let devices = Arc::new(Devices::alone(device.clone()));
        let (opening, chunks) = (opening(&env, options, true), Arc::new(ChunkPool::new(0)));
        let store = Store { opening: &opening, device, devices, id: StoreId(0), chunks };
        let see = || store.assemble(&Manifest::load(&store.device).unwrap()).unwrap();

        let seen = see();
        assert!(store.check_held(&seen).is_ok());
        let range = KeyRange::new(&b"00"[..], &b"01"[..]);
        writer.background.compact(&writer.keyspaces.tree(DEFAULT_KEYSPACE).unwrap(), &range).unwrap();
        let newer = see();
        assert!(seen.packs().all(|pack| newer.pack(pack.record.id).is_some()), "the pack lives on");
        assert_eq!(seen.counters.wal_floor, newer.counters.wal_floor);
        assert_eq!(store.check_held(&seen).unwrap_err().kind(), ErrorKind::Busy);
        writer.close().unwrap();
    });
}
