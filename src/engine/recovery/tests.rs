//! What a reader makes of a writer that is quicker.

use super::*;
use crate::batch::WriteBatch;
use crate::env::simulated::{SimConfig, SimEnv};
use crate::options::Durability;
use crate::types::KeyRange;

/// Between a writer's question who holds a file and its rename a reader may take hold of it, in vain.
#[test]
fn i8_a_reader_that_held_too_late_is_told_by_the_manifest() {
    SimEnv::run(SimConfig::default(), |env| {
        let opening = |read_only| {
            let (dir, options) = (PathBuf::from("/db"), Options::default());
            let (listener, filters) = Default::default();
            Opening { dir, env: env.clone(), options, read_only, must_exist: false, listener, filters }
        };
        let writer = open(&opening(false)).unwrap();
        let flush = || {
            let mut batch = WriteBatch::new();
            batch.put("key", "value");
            writer.commit(&batch, Durability::Buffered, None).unwrap();
            writer.seal_all().and_then(|()| writer.wait_flushed()).unwrap();
        };
        let device = Device::new(env.clone(), "/db".into(), Arc::default());
        let (opening, chunks) = (opening(true), Arc::new(ChunkPool::new(0)));
        let store = Store { opening: &opening, device: Arc::new(device), chunks };
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
        writer.compact(&writer.tree(DEFAULT_KEYSPACE).unwrap(), &everything).unwrap();
        assert_eq!(see().counters.wal_floor, newer.counters.wal_floor);
        assert_eq!(verdict(&newer), Err(ErrorKind::Busy), "a pack is gone");
        assert_eq!(verdict(&see()), Ok(()));
        writer.close().unwrap();
    });
}
