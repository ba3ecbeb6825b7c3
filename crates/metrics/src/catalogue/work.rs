//! What users and the background have done: reads, writes, jobs, stalls, the cache, space.

use super::Source::{ByLabel, Stalls, Store};
use super::Unit::{Bytes, Count, None, Seconds};
use super::{Metric, counter, field, gauge};

pub(super) static METRICS: &[Metric] = &[
    // What users do.
    counter(
        "terrace_user_written_bytes_total",
        Bytes,
        "Bytes of keys and values that callers have written.",
        Store(field!(count, user_bytes_written)),
    ),
    counter(
        "terrace_user_writes_total",
        Count,
        "Puts and deletes, of a key or of a range, that callers have written.",
        Store(field!(count, user_ops_written)),
    ),
    counter(
        "terrace_user_lookups_total",
        Count,
        "Keys that callers have looked up, one at a time or many in a call.",
        ByLabel(
            "call",
            &[field!(count, user_reads.gets, "get"), field!(count, user_reads.multi_get_keys, "multi_get")],
        ),
    ),
    counter(
        "terrace_user_lookups_found_total",
        Count,
        "Keys that callers have looked up and that had a value.",
        Store(field!(count, user_reads.found)),
    ),
    counter(
        "terrace_user_lookups_found_in_buffer_total",
        Count,
        "Keys that callers have looked up and that were found in a compaction buffer.",
        Store(field!(count, user_reads.found_in_buffer)),
    ),
    counter(
        "terrace_user_lookup_tables_total",
        Count,
        "Tables that lookups of single keys have asked.",
        Store(field!(count, user_reads.tables_asked)),
    ),
    counter(
        "terrace_user_seeks_total",
        Count,
        "Seeks of iterators and cursors, counted when these are dropped.",
        Store(field!(count, user_reads.seeks)),
    ),
    counter(
        "terrace_user_steps_total",
        Count,
        "Entries that iterators and cursors have returned, counted when these are dropped.",
        Store(field!(count, user_reads.steps)),
    ),
    counter(
        "terrace_user_read_bytes_total",
        Bytes,
        "Bytes that lookups have found, and that iterators and cursors have returned.",
        Store(field!(count, user_reads.bytes)),
    ),
    // Files.
    counter(
        "terrace_written_bytes_total",
        Bytes,
        "Bytes handed to the operating system. Over terrace_user_written_bytes_total it is the write amplification.",
        ByLabel(
            "cause",
            &[
                field!(count, written.wal, "wal"),
                field!(count, written.flush, "flush"),
                field!(count, written.compaction, "compaction"),
                field!(count, written.rewrite, "rewrite"),
                field!(count, written.manifest, "manifest"),
                field!(count, written.directory, "directory"),
                field!(count, written.reclaim, "reclaim"),
                field!(count, written.preallocate, "preallocate"),
            ],
        ),
    ),
    counter(
        "terrace_syncs_total",
        Count,
        "Barriers: fdatasync of a file, fsync of a directory.",
        ByLabel(
            "cause",
            &[
                field!(count, syncs.wal, "wal"),
                field!(count, syncs.flush, "flush"),
                field!(count, syncs.compaction, "compaction"),
                field!(count, syncs.rewrite, "rewrite"),
                field!(count, syncs.manifest, "manifest"),
                field!(count, syncs.directory, "directory"),
                field!(count, syncs.reclaim, "reclaim"),
                field!(count, syncs.preallocate, "preallocate"),
            ],
        ),
    ),
    counter(
        "terrace_read_bytes_total",
        Bytes,
        "Bytes read from files.",
        ByLabel(
            "cause",
            &[
                field!(count, read.get, "get"),
                field!(count, read.scan, "scan"),
                field!(count, read.compaction, "compaction"),
                field!(count, read.open, "open"),
            ],
        ),
    ),
    counter(
        "terrace_packs_opened_total",
        Count,
        "How often a pack was opened for reading because it was not open.",
        Store(field!(count, packs_opened)),
    ),
    // Stalls.
    counter(
        "terrace_stalls_total",
        Count,
        "Waits of writers that were slowed down or stopped, by reason.",
        Stalls(field!(count, count)),
    ),
    counter(
        "terrace_stall_seconds_total",
        Seconds,
        "Time that writers have waited because they were slowed down or stopped, by reason.",
        Stalls(field!(micros, micros)),
    ),
    // Cache.
    counter(
        "terrace_cache_hits_total",
        Count,
        "Blocks found in the block cache.",
        Store(field!(count, cache.hits)),
    ),
    counter(
        "terrace_cache_misses_total",
        Count,
        "Blocks read from a file, since they were not in the block cache.",
        Store(field!(count, cache.misses)),
    ),
    gauge(
        "terrace_cache_bytes",
        Bytes,
        "What the block cache holds, open tables included.",
        Store(field!(count, cache.bytes)),
    ),
    gauge(
        "terrace_cache_capacity_bytes",
        Bytes,
        "What the block cache may hold.",
        Store(field!(count, cache.capacity)),
    ),
    counter(
        "terrace_prefix_filter_asked_total",
        Count,
        "Tables whose filter was asked for the prefix of a scan.",
        Store(field!(count, prefix_filter.asked)),
    ),
    counter(
        "terrace_prefix_filter_denied_total",
        Count,
        "Tables whose filter said that they do not have the prefix of a scan.",
        Store(field!(count, prefix_filter.denied)),
    ),
    // Jobs.
    counter("terrace_flushes_total", Count, "Memtables flushed.", Store(field!(count, flush.jobs))),
    counter(
        "terrace_flush_records_total",
        Count,
        "Entries that flushes have written.",
        Store(field!(count, flush.records)),
    ),
    counter(
        "terrace_flush_bytes_total",
        Bytes,
        "Bytes of the packs that flushes have written.",
        Store(field!(count, flush.bytes)),
    ),
    counter(
        "terrace_flush_seconds_total",
        Seconds,
        "Time that flushes have taken.",
        Store(field!(micros, flush.micros)),
    ),
    counter(
        "terrace_compactions_total",
        Count,
        "Compactions finished.",
        Store(field!(count, compaction.jobs)),
    ),
    counter(
        "terrace_compactions_intra_level0_total",
        Count,
        "Compactions that joined runs of level 0.",
        Store(field!(count, compaction.intra_l0)),
    ),
    counter(
        "terrace_compactions_released_total",
        Count,
        "Compactions of tables that held many entries for readers that had gone.",
        Store(field!(count, compaction.releases)),
    ),
    counter(
        "terrace_compaction_records_total",
        Count,
        "Entries that compactions have read (in) and written (out).",
        ByLabel(
            "direction",
            &[field!(count, compaction.records_in, "in"), field!(count, compaction.records_out, "out")],
        ),
    ),
    counter(
        "terrace_compaction_bytes_total",
        Bytes,
        "Bytes that compactions have read (in) and written (out).",
        ByLabel(
            "direction",
            &[field!(count, compaction.bytes_in, "in"), field!(count, compaction.bytes_out, "out")],
        ),
    ),
    counter(
        "terrace_compaction_seconds_total",
        Seconds,
        "Time that compactions have taken.",
        Store(field!(micros, compaction.micros)),
    ),
    counter(
        "terrace_moves_total",
        Count,
        "Jobs that moved tables to the next level without rewriting them.",
        Store(field!(count, compaction.moves)),
    ),
    counter(
        "terrace_moved_bytes_total",
        Bytes,
        "Bytes of the tables that were moved without being rewritten.",
        Store(field!(count, compaction.moved_bytes)),
    ),
    counter(
        "terrace_dropped_tables_total",
        Count,
        "Tables dropped unread: all of it had expired, was deleted, or was hidden by newer tables.",
        ByLabel(
            "reason",
            &[
                field!(count, compaction.expired_tables, "expired"),
                field!(count, compaction.deleted_tables, "deleted"),
                field!(count, compaction.hidden_tables, "hidden"),
            ],
        ),
    ),
    counter(
        "terrace_buffer_trimmed_tables_total",
        Count,
        "Tables removed from compaction buffers.",
        Store(field!(count, compaction.trimmed_tables)),
    ),
    counter(
        "terrace_jobs_given_up_total",
        Count,
        "Compactions and rewrites given up because the pacer had suspended them for too long.",
        Store(field!(count, compaction.given_up)),
    ),
    counter(
        "terrace_rewrites_total",
        Count,
        "Rewrites finished: packs given up by copying their live tables.",
        Store(field!(count, rewrite.jobs)),
    ),
    counter(
        "terrace_rewrite_packs_total",
        Count,
        "Packs that rewrites have left without a live table.",
        Store(field!(count, rewrite.packs)),
    ),
    counter(
        "terrace_rewrite_bytes_total",
        Bytes,
        "Bytes of the tables that rewrites have copied.",
        Store(field!(count, rewrite.bytes)),
    ),
    counter(
        "terrace_rewrite_seconds_total",
        Seconds,
        "Time that rewrites have taken.",
        Store(field!(micros, rewrite.micros)),
    ),
    gauge(
        "terrace_running_jobs",
        Count,
        "Jobs that run now: flushes; compactions and rewrites.",
        ByLabel(
            "kind",
            &[field!(count, running_flushes, "flush"), field!(count, running_compactions, "compaction")],
        ),
    ),
    counter(
        "terrace_background_errors_total",
        Count,
        "Background jobs that failed and were, or will be, tried again.",
        Store(field!(count, background_errors)),
    ),
    // Memory and readers.
    gauge("terrace_memtable_bytes", Bytes, "Memory of all memtables.", Store(field!(count, memtable_bytes))),
    gauge(
        "terrace_last_sequence_number",
        None,
        "Sequence number of the newest write.",
        Store(field!(count, last_seq)),
    ),
    gauge("terrace_snapshots", Count, "Snapshots and transactions open.", Store(field!(count, snapshots))),
    gauge(
        "terrace_oldest_snapshot_sequence_number",
        None,
        "Sequence number of the newest write that the oldest snapshot or transaction sees; 0 if none is open.",
        Store(field!(count, oldest_snapshot)),
    ),
    // Space.
    gauge(
        "terrace_space_total_bytes",
        Bytes,
        "Packs, log and recycled files.",
        Store(field!(count, space.total_bytes)),
    ),
    gauge(
        "terrace_space_live_bytes",
        Bytes,
        "Tables in force, and the values that lie apart and that they point to.",
        Store(field!(count, space.live_bytes)),
    ),
    gauge(
        "terrace_space_dead_bytes",
        Bytes,
        "Dead tables that share a pack with live ones, and padding.",
        Store(field!(count, space.dead_bytes)),
    ),
    gauge(
        "terrace_space_kept_bytes",
        Bytes,
        "Of the dead bytes, those that could not be freed at the last attempt.",
        Store(field!(count, space.kept_bytes)),
    ),
    gauge("terrace_space_wal_bytes", Bytes, "The write-ahead log.", Store(field!(count, space.wal_bytes))),
    gauge(
        "terrace_space_value_bytes",
        Bytes,
        "Of the live bytes, values that lie apart from their keys.",
        Store(field!(count, space.value_bytes)),
    ),
    gauge(
        "terrace_space_values",
        Count,
        "Values that lie apart from their keys.",
        Store(field!(count, space.values)),
    ),
    gauge(
        "terrace_space_value_tables",
        Count,
        "Value tables, in which values lie apart from their keys.",
        Store(field!(count, space.value_tables)),
    ),
    counter(
        "terrace_values_collected_bytes_total",
        Bytes,
        "Bytes of values that background work has written anew, since their value tables were mostly dead.",
        Store(field!(count, space.collected_bytes)),
    ),
    gauge("terrace_space_packs", Count, "Packs.", Store(field!(count, space.pack_files))),
    gauge(
        "terrace_space_data_ranges",
        Count,
        "Pieces of packs between holes, in all packs.",
        Store(field!(count, space.data_ranges)),
    ),
    gauge(
        "terrace_space_data_ranges_max",
        Count,
        "Pieces between holes of the pack that has most of them.",
        Store(field!(count, space.data_ranges_max)),
    ),
    gauge(
        "terrace_space_preallocated_packs",
        Count,
        "Packs that were made ahead and hold nothing yet.",
        Store(field!(count, space.preallocated_files)),
    ),
    counter("terrace_punches_total", Count, "Holes punched into packs.", Store(field!(count, punch.punches))),
    counter("terrace_punched_bytes_total", Bytes, "Bytes freed by holes.", Store(field!(count, punch.bytes))),
    counter(
        "terrace_punch_seconds_total",
        Seconds,
        "Time that punching has taken, syncs included.",
        Store(field!(micros, punch.micros)),
    ),
    counter(
        "terrace_punch_failures_total",
        Count,
        "Attempts to punch that the operating system refused. They are repeated.",
        Store(field!(count, punch.failures)),
    ),
    gauge(
        "terrace_punch_unsupported",
        None,
        "1 if the file system has no holes, so that packs are rewritten instead.",
        Store(field!(flag, punch.unsupported)),
    ),
];
