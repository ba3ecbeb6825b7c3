//! Translates command lines of `db_bench`, as scripts write them, into those of [`super::db`].
//!
//! gflags accepts what clap does not: one dash for two, and `--nosync` for `--sync=false`. And most scripts set flags
//! that only RocksDB has. A flag that shapes RocksDB's internals or its output is ignored with a notice, so that such
//! scripts run here. A flag that changes the measured work is refused, unless its value is what is done here anyway.

use std::ffi::OsString;

/// Flags with a value that say how RocksDB is set up, runs or reports. They are ignored.
const PASSED_OVER: &[&str] = &[
    "block_align",
    "block_restart_interval",
    "block_size",
    "bloom_locality",
    "bytes_per_sync",
    "cache_high_pri_pool_ratio",
    "cache_low_pri_pool_ratio",
    "cache_numshardbits",
    "cache_type",
    "compaction_pri",
    "compaction_readahead_size",
    "compaction_style",
    "compression_level",
    "compression_max_dict_bytes",
    "compression_parallel_threads",
    "compression_threads",
    "compression_zstd_max_train_bytes",
    "delayed_write_rate",
    "delete_obsolete_files_period_micros",
    "file_opening_threads",
    "format_version",
    "hard_pending_compaction_bytes_limit",
    "hard_rate_limit",
    "index_shortening_mode",
    "index_type",
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
    "max_background_compactions",
    "max_background_flushes",
    "max_background_jobs",
    "max_bytes_for_level_base",
    "max_bytes_for_level_multiplier",
    "max_compaction_bytes",
    "max_successive_merges",
    "max_total_wal_size",
    "max_write_buffer_number",
    "max_write_buffer_size_to_maintain",
    "memtable_bloom_size_ratio",
    "memtablerep",
    "metadata_block_size",
    "min_level_to_compress",
    "min_write_buffer_number_to_merge",
    "num_high_pri_threads",
    "num_levels",
    "num_low_pri_threads",
    "open_files",
    "perf_level",
    "rate_limiter_bytes_per_sec",
    "read_cache_size",
    "report_file",
    "report_interval_seconds",
    "row_cache_size",
    "soft_pending_compaction_bytes_limit",
    "soft_rate_limit",
    "stats_dump_period_sec",
    "stats_interval",
    "stats_interval_seconds",
    "stats_level",
    "stats_per_interval",
    "subcompactions",
    "table_cache_numshardbits",
    "target_file_size_base",
    "target_file_size_multiplier",
    "thread_status_per_interval",
    "undefok",
    "universal_compression_size_percent",
    "universal_max_merge_width",
    "universal_max_size_amplification_percent",
    "universal_min_merge_width",
    "universal_size_ratio",
    "wal_bytes_per_sync",
    "wal_dir",
    "writable_file_max_buffer_size",
];

/// The same for Boolean flags: a value comes with an equals sign or not at all.
const PASSED_OVER_SWITCHES: &[&str] = &[
    "advise_random_on_open",
    "allow_concurrent_memtable_write",
    "cache_index_and_filter_blocks",
    "dump_malloc_stats",
    "enable_index_compression",
    "enable_pipelined_write",
    "enable_write_thread_adaptive_yield",
    "level_compaction_dynamic_level_bytes",
    "mmap_read",
    "mmap_write",
    "new_table_reader_for_compaction_inputs",
    "optimize_filters_for_hits",
    "partition_index",
    "partition_index_and_filters",
    "pin_l0_filter_and_index_blocks_in_cache",
    "pin_top_level_index_and_filter",
    "progress_reports",
    "report_bg_io_stats",
    "statistics",
    "universal_allow_trivial_move",
    "use_blob_cache",
    "use_cache_memkind_kmem_allocator",
    "use_direct_io_for_flush_and_compaction",
    "use_direct_reads",
    "use_fsync",
    "use_ribbon_filter",
    "whole_key_filtering",
];

/// Flags of the measured work, with the only value that is supported here.
const GIVEN: &[(&str, &str)] = &[
    ("batch_size", "1"),
    ("benchmark_read_rate_limit", "0"),
    ("benchmark_write_rate_limit", "0"),
    ("disable_wal", "false"),
    ("merge_operator", ""),
    ("num_column_families", "1"),
    ("num_multi_db", "0"),
    ("reverse_iterator", "false"),
    ("use_blob_db", "false"),
    ("value_size_distribution_type", "fixed"),
    ("verify_checksum", "true"),
];

/// The flags of [`super::db`] that are true or false.
const SWITCHES: &[&str] = &["histogram", "prefix_same_as_start", "sync", "use_existing_db"];

/// The arguments of `terrace` for clap, and the names of the flags of `bench db` that were ignored.
pub fn translate(arguments: impl IntoIterator<Item = OsString>) -> (Vec<OsString>, Vec<String>) {
    let mut arguments = arguments.into_iter();
    let mut kept: Vec<OsString> = arguments.by_ref().take(3).collect();
    if kept.get(1..) != Some(&["bench".into(), "db".into()]) {
        kept.extend(arguments);
        return (kept, Vec::new());
    }
    let mut passed_over = Vec::new();
    while let Some(argument) = arguments.next() {
        let Some((name, value)) = argument.to_str().and_then(flag) else {
            kept.push(argument);
            continue;
        };
        let positive = name.strip_prefix("no").unwrap_or(name);
        let is_switch = [name, positive].iter().any(|name| PASSED_OVER_SWITCHES.contains(name));
        let takes_next = value.is_none() && (PASSED_OVER.contains(&name) || takes_number(name));
        let next = if takes_next { arguments.next() } else { None };
        let value = value.or(next.as_ref().and_then(|next| next.to_str()));
        let is_given = is_given(name, value.unwrap_or("true"))
            || value.is_none() && name != positive && is_given(positive, "false");
        if is_switch || PASSED_OVER.contains(&name) || is_given {
            passed_over.push(name.to_owned());
        } else if value.is_none() && name != positive && SWITCHES.contains(&positive) {
            kept.push(format!("--{positive}=false").into());
        } else {
            kept.push(value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}")).into());
        }
    }
    (kept, passed_over)
}

/// Name and value of a flag with one dash or two; `None` for a negative number, a value, or a flag of one letter.
fn flag(argument: &str) -> Option<(&str, Option<&str>)> {
    let flag = argument.strip_prefix('-')?;
    let flag = flag.strip_prefix('-').unwrap_or(flag);
    let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
    (name.len() > 1 && name.starts_with(|first: char| first.is_ascii_alphabetic())).then_some((name, value))
}

/// Whether a flag of the work has a number or a word behind it, be it apart.
fn takes_number(name: &str) -> bool {
    GIVEN.iter().any(|&(of, only)| of == name && only != "true" && only != "false")
}

/// Whether a flag of the measured work has the value that is supported.
fn is_given(name: &str, value: &str) -> bool {
    let value = match value.to_ascii_lowercase().as_str() {
        "t" | "y" | "yes" => "true".to_owned(),
        "f" | "n" | "no" => "false".to_owned(),
        other => other.to_owned(),
    };
    GIVEN.iter().any(|&(of, only)| {
        let number = match only {
            "true" => "1",
            "false" => "0",
            only => only,
        };
        name == of && (value == only || value == number)
    })
}
