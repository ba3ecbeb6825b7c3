//! Statistics and reports as dataclasses of Python. Made by tools/generate_stats.py from the store's own structs.

use crate::record::records;

records! {
    Stats {
        user_bytes_written, user_ops_written, user_reads, written, syncs, read, packs_opened, stalls, cache,
        prefix_filter, compaction, flush, rewrite, space, devices, punch, costs, load, memtable_bytes,
        last_seq, snapshots, oldest_snapshot, running_flushes, running_compactions, background_errors,
        keyspaces
    }
    UserReads {
        gets, tables_asked, multi_get_keys, found_in_buffer, found, seeks, steps, bytes
    }
    ByCause {
        wal, flush, compaction, rewrite, manifest, directory, reclaim, preallocate
    }
    ReadByCause {
        get, scan, compaction, open
    }
    StallStats {
        reason, count, micros
    }
    CacheStats {
        hits, misses, bytes, capacity
    }
    PrefixFilterStats {
        asked, denied
    }
    CompactionStats {
        jobs, intra_l0, moves, moved_bytes, passed, releases, given_up, expired_tables, deleted_tables,
        hidden_tables, trimmed_tables, records_in, records_out, bytes_in, bytes_out, micros
    }
    PassedBytes {
        moved, merged
    }
    FlushStats {
        jobs, records, bytes, micros
    }
    RewriteStats {
        jobs, packs, bytes, micros
    }
    SpaceStats {
        live_bytes, value_bytes, values, value_tables, collected_bytes, dead_bytes, kept_bytes, pack_files,
        data_ranges, data_ranges_max, preallocated_files, wal_bytes, total_bytes
    }
    PunchStats {
        punches, bytes, micros, failures, unsupported
    }
    CostStats {
        compacted_mebibyte_micros, seek_cached_nanos, filter_probe_nanos, block_read_nanos, barrier_micros
    }
    KeyspaceStats {
        name, memtable_bytes, sealed_bytes, sealed_memtables, memtable_entries, debt_bytes, shape, buffer
    }
    Shape {
        levels
    }
    LevelShape {
        level, runs, tables, bytes, value_bytes, entries, tombstones, range_tombstones, held_bytes,
        released_bytes, limit_bytes, score
    }
    VerifyReport {
        tables, blocks, entries, range_tombstones, values, bytes, packs, allocated_bytes, hole_bytes,
        zero_bytes, unexplained_bytes, hole_unknown_packs, problems
    }
    RepairReport {
        keyspaces, tables, entries, whole_catalog, lost, zeroed_tables
    }
    BufferStats {
        tables, bytes, held_bytes, cached_bytes, gone_ranges, frozen_levels, memory_bytes
    }
    DeviceStats {
        id, dir, table_bytes, given_bytes, brought_bytes, read_nanos, pending_bytes, rated_bandwidth,
        bandwidth, free_bytes
    }
    LoadStats {
        interval, lookups, seeks, returned_bytes, written_bytes, read_bytes, reads, read_time, missed_bytes,
        log_bytes, file_bytes, held_up, waiting_writers, active_bytes, sealed_memtables, level0_runs,
        level0_bytes, debt_bytes, flush_rate, compaction_rate, running_jobs, is_high, client_rate,
        background_rate, device_rate
    }
}
