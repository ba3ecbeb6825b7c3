/* Terrace, an embedded key-value store, in C. README.md has an introduction. */

#ifndef TERRACE_H
#define TERRACE_H

/* Made by cbindgen from the sources of the library. To change it, change those: see tests/headers.rs. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* An open database of leveldb/c.h. */
typedef struct leveldb_t leveldb_t;

/**
 * What the caller can do about an error.
 */
typedef enum terrace_error_kind {
    /**
     * A kind that this header does not know. The message tells.
     */
    TERRACE_ERROR_KIND_OTHER = 0,
    /**
     * Fix the argument or the option; nothing was changed.
     */
    TERRACE_ERROR_KIND_INVALID_INPUT = 1,
    /**
     * Another handle or process has the store; wait for it or open it read-only.
     */
    TERRACE_ERROR_KIND_BUSY = 2,
    /**
     * There is no store here, or no keyspace of that name.
     */
    TERRACE_ERROR_KIND_NOT_FOUND = 3,
    /**
     * Stored bytes are damaged; restore a backup, or repair.
     */
    TERRACE_ERROR_KIND_CORRUPTION = 4,
    /**
     * Free space on the device; then go on.
     */
    TERRACE_ERROR_KIND_DISK_FULL = 5,
    /**
     * The store's files would exceed its budget of space; nothing was changed.
     */
    TERRACE_ERROR_KIND_OVER_BUDGET = 6,
    /**
     * The operating system refused an operation; nothing was changed.
     */
    TERRACE_ERROR_KIND_IO = 7,
    /**
     * An earlier failure has left an unknown outcome: reads go on; to write, reopen the store.
     */
    TERRACE_ERROR_KIND_POISONED = 8,
    /**
     * A job's result contradicts what the store holds, and was refused. This is a bug in Terrace.
     */
    TERRACE_ERROR_KIND_INCONSISTENT = 9,
    /**
     * Data that a transaction depends on has changed since it began. Nothing was written; run it again.
     */
    TERRACE_ERROR_KIND_CONFLICT = 10,
    /**
     * The store has been closed.
     */
    TERRACE_ERROR_KIND_CLOSED = 11,
    /**
     * The store was opened read-only, or its directory cannot be written.
     */
    TERRACE_ERROR_KIND_READ_ONLY = 12,
    /**
     * A panic was caught at the border to C. This is a bug in Terrace. Close the store.
     */
    TERRACE_ERROR_KIND_PANIC = 13,
} terrace_error_kind;

/**
 * What must hold when a write returns.
 */
typedef enum terrace_durability {
    /**
     * As the options of the store say.
     */
    TERRACE_DURABILITY_DEFAULT = 0,
    /**
     * The write survives the death of the process. A power cut may take the latest such writes, always from the end.
     */
    TERRACE_DURABILITY_BUFFERED = 1,
    /**
     * The write, and every one before it, survives a power cut.
     */
    TERRACE_DURABILITY_SYNCED = 2,
} terrace_durability;

/**
 * Which writes by others make the commit of a transaction fail.
 */
typedef enum terrace_isolation {
    /**
     * Those of keys that it writes, too: the first to commit wins.
     */
    TERRACE_ISOLATION_SNAPSHOT = 0,
    /**
     * Those, and those of anything that it has read: keys, and ranges that it has asked for.
     */
    TERRACE_ISOLATION_SERIALIZABLE = 1,
} terrace_isolation;

/**
 * How blocks of tables are stored.
 */
typedef enum terrace_compression {
    /**
     * As they are.
     */
    TERRACE_COMPRESSION_NONE = 0,
    /**
     * With LZ4, where that saves at least an eighth.
     */
    TERRACE_COMPRESSION_LZ4 = 1,
} terrace_compression;

/**
 * By which rule keys have prefixes, for scans within one prefix.
 */
typedef enum terrace_prefix {
    /**
     * They have none.
     */
    TERRACE_PREFIX_NONE = 0,
    /**
     * The first `prefix_bytes` bytes.
     */
    TERRACE_PREFIX_FIXED = 1,
    /**
     * Up to and with the `prefix_count`th `prefix_delimiter`.
     */
    TERRACE_PREFIX_DELIMITED = 2,
} terrace_prefix;

/**
 * A group of writes that take effect together, or not at all: see terrace_batch_create().
 */
typedef struct terrace_batch terrace_batch;

/**
 * A position among the entries of a range, at one moment: see terrace_cursor_open().
 */
typedef struct terrace_cursor terrace_cursor;

/**
 * A handle of an open store. Any number of threads may use it.
 */
typedef struct terrace_db terrace_db;

/**
 * What went wrong. Functions return NULL if nothing did; release others with terrace_error_free().
 */
typedef struct terrace_error terrace_error;

/**
 * Sorted entries on their way into the tables of a keyspace: see terrace_ingest_begin().
 */
typedef struct terrace_ingest terrace_ingest;

/**
 * A keyspace: an ordered set of keys in a store. What is read and written is read and written in one of them. It shares log,
 * caches, snapshots and batches with the others, and holds the store open.
 */
typedef struct terrace_keyspace terrace_keyspace;

/**
 * Options of a store: see terrace_options_create().
 */
typedef struct terrace_options terrace_options;

/**
 * The store at one moment, over all keyspaces: see terrace_snapshot_create().
 */
typedef struct terrace_snapshot terrace_snapshot;

/**
 * Counters and sizes of a store at one moment: see terrace_stats_read().
 */
typedef struct terrace_stats terrace_stats;

/**
 * Says when a buffered write, and all before it, have become durable.
 */
typedef struct terrace_ticket terrace_ticket;

/**
 * Reads and writes that take effect together, or conflict: see terrace_transaction_begin().
 */
typedef struct terrace_transaction terrace_transaction;

/**
 * The entries of a range, as a transaction sees them: see terrace_transaction_iter().
 */
typedef struct terrace_transaction_iterator terrace_transaction_iterator;

/**
 * Bytes that somebody else has. Where `data` is NULL there are none: no key, no entry, no bound. The empty key has a `data`
 * that is not NULL.
 */
typedef struct terrace_slice {
    /**
     * The first byte.
     */
    const char *data;
    /**
     * How many there are.
     */
    size_t len;
} terrace_slice;

/**
 * A range of keys, in bytewise order. All zeros stand for all keys.
 */
typedef struct terrace_range {
    /**
     * Where it begins; with a `data` that is NULL, at the first key.
     */
    struct terrace_slice from;
    /**
     * Where it ends; with a `data` that is NULL, behind the last key.
     */
    struct terrace_slice to;
    /**
     * Whether `from` itself is left out.
     */
    bool from_excluded;
    /**
     * Whether `to` itself is in the range.
     */
    bool to_included;
} terrace_range;

/**
 * A value, where it lies: nothing is copied. It keeps the block or memtable that has it in memory until
 * terrace_value_free(). It may be moved, but not be copied and released twice.
 */
typedef struct terrace_value {
    /**
     * The first byte; NULL if there is no value.
     */
    const char *data;
    /**
     * How many there are.
     */
    size_t len;
    /**
     * The library's own.
     */
    size_t owner[6];
} terrace_value;

/**
 * An entry. The key's `data` is NULL if there is none.
 */
typedef struct terrace_entry {
    /**
     * The key.
     */
    struct terrace_slice key;
    /**
     * The value.
     */
    struct terrace_slice value;
} terrace_entry;

/**
 * Options of a keyspace. Start from terrace_keyspace_options_default().
 */
typedef struct terrace_keyspace_options {
    /**
     * A terrace_compression.
     */
    uint32_t compression;
    /**
     * A terrace_prefix. It cannot be changed later.
     */
    uint32_t prefix;
    /**
     * From which size on a value lies apart from its key, in bytes; 0: never.
     */
    uint32_t separate_from;
    /**
     * How long a value lives, in seconds; 0: for ever. Whether there is a time cannot be changed later.
     */
    uint32_t ttl_seconds;
    /**
     * See terrace_prefix.
     */
    uint16_t prefix_bytes;
    /**
     * See terrace_prefix.
     */
    uint8_t prefix_delimiter;
    /**
     * See terrace_prefix.
     */
    uint8_t prefix_count;
    /**
     * Bits of Bloom filter per key, 0 (no filter) to 20.
     */
    uint8_t filter_bits_per_key;
} terrace_keyspace_options;

/**
 * A count for each reason to write.
 */
typedef struct terrace_by_cause {
    /**
     * The write-ahead log.
     */
    uint64_t wal;
    /**
     * Flushes.
     */
    uint64_t flush;
    /**
     * Compactions.
     */
    uint64_t compaction;
    /**
     * Tables copied so that the space of dead ones is freed.
     */
    uint64_t rewrite;
    /**
     * The manifest.
     */
    uint64_t manifest;
    /**
     * Names of files; syncs only.
     */
    uint64_t directory;
    /**
     * Holes, where space was needed at once; syncs only.
     */
    uint64_t reclaim;
    /**
     * Names of preallocated files; syncs only.
     */
    uint64_t preallocate;
} terrace_by_cause;

/**
 * Counters since the store was opened, and sizes as of now.
 */
typedef struct terrace_counters {
    /**
     * Bytes of keys and values that callers have written.
     */
    uint64_t user_bytes_written;
    /**
     * Operations that callers have written.
     */
    uint64_t user_ops_written;
    /**
     * Lookups of a single key.
     */
    uint64_t gets;
    /**
     * Keys of lookups of many keys.
     */
    uint64_t multi_get_keys;
    /**
     * Keys of both that had a value.
     */
    uint64_t found;
    /**
     * Seeks of iterators and cursors that have been released.
     */
    uint64_t seeks;
    /**
     * Entries that these have returned.
     */
    uint64_t steps;
    /**
     * Bytes that callers have read.
     */
    uint64_t user_bytes_read;
    /**
     * Bytes handed to the operating system.
     */
    struct terrace_by_cause written;
    /**
     * Barriers.
     */
    struct terrace_by_cause syncs;
    /**
     * Bytes read from files by lookups.
     */
    uint64_t read_by_gets;
    /**
     * Bytes read from files by iterators and cursors.
     */
    uint64_t read_by_scans;
    /**
     * Bytes read from files by compactions and rewrites.
     */
    uint64_t read_by_compactions;
    /**
     * Bytes read from files to open the store and its tables.
     */
    uint64_t read_by_openings;
    /**
     * Blocks found in the cache.
     */
    uint64_t cache_hits;
    /**
     * Blocks read from a file instead.
     */
    uint64_t cache_misses;
    /**
     * Bytes that the cache holds, open tables included.
     */
    uint64_t cache_bytes;
    /**
     * Bytes that it may hold.
     */
    uint64_t cache_capacity;
    /**
     * Memtables flushed.
     */
    uint64_t flushes;
    /**
     * Bytes that flushes have written.
     */
    uint64_t flush_bytes;
    /**
     * Compactions finished.
     */
    uint64_t compactions;
    /**
     * Jobs that moved tables to the next level without rewriting them.
     */
    uint64_t moves;
    /**
     * Bytes that compactions have read.
     */
    uint64_t compaction_bytes_in;
    /**
     * Bytes that compactions have written.
     */
    uint64_t compaction_bytes_out;
    /**
     * Time that compactions have taken, in microseconds.
     */
    uint64_t compaction_micros;
    /**
     * Bytes of live tables and values.
     */
    uint64_t live_bytes;
    /**
     * Bytes of dead tables that are not freed yet.
     */
    uint64_t dead_bytes;
    /**
     * Bytes of the write-ahead log.
     */
    uint64_t wal_bytes;
    /**
     * Bytes of all files.
     */
    uint64_t total_bytes;
    /**
     * Files of tables.
     */
    uint64_t pack_files;
    /**
     * Bytes of all memtables.
     */
    uint64_t memtable_bytes;
    /**
     * Sequence number of the newest write.
     */
    uint64_t last_seq;
    /**
     * Snapshots and transactions that are open.
     */
    uint64_t snapshots;
    /**
     * Flushes that run.
     */
    uint64_t running_flushes;
    /**
     * Compactions and rewrites that run.
     */
    uint64_t running_compactions;
    /**
     * Background jobs that have failed and are tried again.
     */
    uint64_t background_errors;
    /**
     * Bytes written for each byte that callers have written; 0 before the first write.
     */
    double write_amplification;
} terrace_counters;

/**
 * Waits of writers for one reason.
 */
typedef struct terrace_stall {
    /**
     * The reason, a text of the statistics.
     */
    const char *reason;
    /**
     * Number of waits.
     */
    uint64_t count;
    /**
     * Duration of all waits together, in microseconds.
     */
    uint64_t micros;
} terrace_stall;

/**
 * One keyspace.
 */
typedef struct terrace_keyspace_stats {
    /**
     * Its name, a text of the statistics.
     */
    const char *name;
    /**
     * Bytes of its memtables.
     */
    uint64_t memtable_bytes;
    /**
     * Entries in its memtables, tombstones included.
     */
    uint64_t memtable_entries;
    /**
     * Memtables that wait for their flush.
     */
    uint64_t sealed_memtables;
    /**
     * Bytes that compactions must still move before all levels are within their limits.
     */
    uint64_t debt_bytes;
    /**
     * Number of levels of its tree.
     */
    size_t levels;
} terrace_keyspace_stats;

/**
 * One level of the tree of a keyspace.
 */
typedef struct terrace_level_stats {
    /**
     * Its number.
     */
    size_t level;
    /**
     * Sorted runs.
     */
    size_t runs;
    /**
     * Tables.
     */
    size_t tables;
    /**
     * Bytes of the tables.
     */
    uint64_t bytes;
    /**
     * Entries, tombstones included.
     */
    uint64_t entries;
    /**
     * Tombstones of single keys.
     */
    uint64_t tombstones;
    /**
     * Range tombstones.
     */
    uint64_t range_tombstones;
    /**
     * How urgent a compaction of the level is; due from 1.
     */
    double score;
} terrace_level_stats;

/**
 * One directory of the store.
 */
typedef struct terrace_device_stats {
    /**
     * The directory, a text of the statistics.
     */
    const char *dir;
    /**
     * Bytes of the tables there.
     */
    uint64_t table_bytes;
    /**
     * Bytes that are free there.
     */
    uint64_t free_bytes;
} terrace_device_stats;

/**
 * What terrace_verify() has read.
 */
typedef struct terrace_verify_report {
    /**
     * Tables.
     */
    uint64_t tables;
    /**
     * Data blocks of these tables.
     */
    uint64_t blocks;
    /**
     * Entries in them, tombstones included.
     */
    uint64_t entries;
    /**
     * Values that lie apart from their keys.
     */
    uint64_t values;
    /**
     * Bytes of the tables.
     */
    uint64_t bytes;
    /**
     * Bytes of storage that neither live tables nor dead ones that are not freed yet explain.
     */
    uint64_t unexplained_bytes;
    /**
     * How many problems there are; 0 when all is well.
     */
    uint64_t problems;
} terrace_verify_report;

/**
 * What terrace_repair() has saved.
 */
typedef struct terrace_repair_report {
    /**
     * Keyspaces of the new store.
     */
    uint64_t keyspaces;
    /**
     * Tables of the old store that were read.
     */
    uint64_t tables;
    /**
     * Entries in the new store.
     */
    uint64_t entries;
    /**
     * How many things could not be saved.
     */
    uint64_t lost;
    /**
     * Whether the old manifest could be read. If not, keyspaces may have lost their names, and what was deleted may be back.
     */
    bool whole_catalog;
} terrace_repair_report;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes an empty batch. Release it with terrace_batch_free(). An operation that breaks a limit fails the write of the batch.
 */
struct terrace_batch *terrace_batch_create(void);

/**
 * Releases a batch; nothing if it is NULL.
 *
 * Requires: It is NULL or from terrace_batch_create(), and is not used again.
 */
void terrace_batch_free(struct terrace_batch *batch);

/**
 * Empties a batch.
 *
 * Requires: The batch is valid, and no other thread uses it.
 */
void terrace_batch_clear(struct terrace_batch *batch);

/**
 * How many operations it has.
 *
 * Requires: The batch is valid, and no other thread changes it.
 */
size_t terrace_batch_len(const struct terrace_batch *batch);

/**
 * How many bytes it takes.
 *
 * Requires: The batch is valid, and no other thread changes it.
 */
size_t terrace_batch_bytes(const struct terrace_batch *batch);

/**
 * Appends: `key` gets the value `value` in `keyspace`.
 *
 * Requires: Batch and keyspace are valid, and no other thread uses the batch; key and value have as many bytes as they say.
 */
struct terrace_error *terrace_batch_put(struct terrace_batch *batch,
                                        const struct terrace_keyspace *keyspace,
                                        struct terrace_slice key,
                                        struct terrace_slice value);

/**
 * Appends: `key` is removed from `keyspace`.
 *
 * Requires: Batch and keyspace are valid, and no other thread uses the batch; the key has as many bytes as it says.
 */
struct terrace_error *terrace_batch_delete(struct terrace_batch *batch,
                                           const struct terrace_keyspace *keyspace,
                                           struct terrace_slice key);

/**
 * Appends: all keys of `range` are removed from `keyspace`, those included that the batch has put before.
 *
 * Requires: Batch and keyspace are valid, and no other thread uses the batch; the range's keys have as many bytes as it says.
 */
struct terrace_error *terrace_batch_delete_range(struct terrace_batch *batch,
                                                 const struct terrace_keyspace *keyspace,
                                                 struct terrace_range range);

/**
 * Applies all of the batch, or nothing of it, and empties it, also where that fails. `durability` is a terrace_durability.
 *
 * Requires: Handle and batch are valid, and no other thread uses the batch.
 */
struct terrace_error *terrace_write(const struct terrace_db *db,
                                    struct terrace_batch *batch,
                                    uint32_t durability);

/**
 * Applies the batch as terrace_write() does, buffered, and returns at once. The ticket says when it has become durable.
 * Release it with terrace_ticket_free().
 *
 * Requires: Handle and batch are valid, and no other thread uses the batch; `ticket` may be written.
 */
struct terrace_error *terrace_write_ticket(const struct terrace_db *db,
                                           struct terrace_batch *batch,
                                           struct terrace_ticket **ticket);

/**
 * Releases a value, which has none afterwards; nothing if it has none.
 *
 * Requires: The value is from a function of this header, or has a `data` of NULL.
 */
void terrace_value_free(struct terrace_value *value);

/**
 * Releases a text that a function of this header has returned for that.
 *
 * Requires: It is NULL or such a text, and is not used again.
 */
void terrace_free(void *text);

/**
 * The version of the library, such as "0.1.0"; never released.
 */
const char *terrace_version(void);

/**
 * A cursor over the entries of `range`: as they are now, or as `snapshot` sees them unless that is NULL. It stands before the
 * first one. Release it with terrace_cursor_free().
 *
 * Each movement writes the entry to which it leads, whose bytes are the cursor's and valid until it moves again. It leads
 * nowhere beyond an end of the range; from there a movement in the other direction leads back. After a failure the cursor
 * stands nowhere until the next seek.
 *
 * Requires: Keyspace and snapshot are valid; the range's keys have as many bytes as it says; `cursor` may be written.
 */
struct terrace_error *terrace_cursor_open(const struct terrace_keyspace *keyspace,
                                          const struct terrace_snapshot *snapshot,
                                          struct terrace_range range,
                                          struct terrace_cursor **cursor);

/**
 * As terrace_cursor_open(), over the entries whose keys begin with `prefix`.
 *
 * Requires: Keyspace and snapshot are valid; the prefix has as many bytes as it says; `cursor` may be written.
 */
struct terrace_error *terrace_cursor_open_prefix(const struct terrace_keyspace *keyspace,
                                                 const struct terrace_snapshot *snapshot,
                                                 struct terrace_slice prefix,
                                                 struct terrace_cursor **cursor);

/**
 * Releases a cursor; nothing if it is NULL.
 *
 * Requires: It is NULL or from a function of this header, and is not used again.
 */
void terrace_cursor_free(struct terrace_cursor *cursor);

/**
 * Moves to the first entry.
 *
 * Requires: The cursor is valid, and no other thread uses it; `entry` may be written.
 */
struct terrace_error *terrace_cursor_first(struct terrace_cursor *cursor, struct terrace_entry *entry);

/**
 * Moves to the last entry.
 *
 * Requires: The cursor is valid, and no other thread uses it; `entry` may be written.
 */
struct terrace_error *terrace_cursor_last(struct terrace_cursor *cursor, struct terrace_entry *entry);

/**
 * Moves to the first entry at or behind `key`, which may be one that the cursor lends.
 *
 * Requires: The cursor is valid, and no other thread uses it; the key has as many bytes as it says; `entry` may be written.
 */
struct terrace_error *terrace_cursor_seek(struct terrace_cursor *cursor,
                                          struct terrace_slice key,
                                          struct terrace_entry *entry);

/**
 * Moves to the last entry at or before `key`, which may be one that the cursor lends.
 *
 * Requires: The cursor is valid, and no other thread uses it; the key has as many bytes as it says; `entry` may be written.
 */
struct terrace_error *terrace_cursor_seek_for_prev(struct terrace_cursor *cursor,
                                                   struct terrace_slice key,
                                                   struct terrace_entry *entry);

/**
 * Moves to the next entry; from before the first entry, to the first one.
 *
 * Requires: The cursor is valid, and no other thread uses it; `entry` may be written.
 */
struct terrace_error *terrace_cursor_next(struct terrace_cursor *cursor, struct terrace_entry *entry);

/**
 * Moves to the previous entry; from behind the last entry, to the last one.
 *
 * Requires: The cursor is valid, and no other thread uses it; `entry` may be written.
 */
struct terrace_error *terrace_cursor_prev(struct terrace_cursor *cursor, struct terrace_entry *entry);

/**
 * Opens the store in the directory `path`, and creates it if there is none. Options may be NULL. Close it with
 * terrace_close().
 *
 * Requires: The path ends with a zero; the options are NULL or valid; `db` may be written.
 */
struct terrace_error *terrace_open(const char *path,
                                   const struct terrace_options *options,
                                   struct terrace_db **db);

/**
 * Another handle of a store that was opened by LevelDB's interface, for what that lacks. Release it with terrace_db_free().
 *
 * Requires: The database is valid; `db` may be written.
 */
struct terrace_error *terrace_db_of_leveldb(const leveldb_t *leveldb,
                                            struct terrace_db **db);

/**
 * Closes the store, and releases the handle in any case: makes every acknowledged write durable, ends the background
 * threads, and lets all later calls through other handles fail with TERRACE_ERROR_KIND_CLOSED. The directory can be opened
 * again once all of these are released, too: keyspaces, snapshots, cursors, transactions, ingests.
 *
 * Requires: The handle is from a function of this header, and is not used again.
 */
struct terrace_error *terrace_close(struct terrace_db *db);

/**
 * Releases a handle; nothing if it is NULL. The store closes when nothing holds it any more.
 *
 * Requires: It is NULL or from a function of this header, and is not used again.
 */
void terrace_db_free(struct terrace_db *db);

/**
 * Brings a handle of a store that was opened read-only up to date with the writer. Keyspaces, snapshots and cursors that
 * were made earlier keep their moment.
 *
 * Requires: The handle is valid, and no other thread uses it meanwhile.
 */
struct terrace_error *terrace_refresh(struct terrace_db *db);

/**
 * The keyspace `name`, created if there is none: with `options`, or with the defaults if they are NULL. A keyspace that
 * exists keeps its own. Every store has the keyspace "default". Release it with terrace_keyspace_free().
 *
 * Requires: The handle is valid; the name ends with a zero; the options are NULL or valid; `keyspace` may be written.
 */
struct terrace_error *terrace_keyspace_open(const struct terrace_db *db,
                                            const char *name,
                                            const struct terrace_keyspace_options *options,
                                            struct terrace_keyspace **keyspace);

/**
 * The keyspace `name`, or NULL if there is none.
 *
 * Requires: The handle is valid; the name ends with a zero; `keyspace` may be written.
 */
struct terrace_error *terrace_keyspace_find(const struct terrace_db *db,
                                            const char *name,
                                            struct terrace_keyspace **keyspace);

/**
 * Removes the keyspace `name` and everything in it. Open cursors go on; handles and snapshots of it fail from then on.
 *
 * Requires: The handle is valid; the name ends with a zero.
 */
struct terrace_error *terrace_keyspace_drop(const struct terrace_db *db,
                                            const char *name);

/**
 * Calls `each` with the name of each keyspace, in their order. A name is valid during the call.
 *
 * Requires: The handle is valid; `each` may be called with `state`, and returns to its caller.
 */
struct terrace_error *terrace_keyspaces(const struct terrace_db *db,
                                        void (*each)(void *state, const char *name),
                                        void *state);

/**
 * What the store tells of itself under a name such as "terrace.stats"; NULL if there is no such property. Release it with
 * terrace_free().
 *
 * Requires: The handle is valid; the name ends with a zero; `value` may be written.
 */
struct terrace_error *terrace_property(const struct terrace_db *db,
                                       const char *name,
                                       char **value);

/**
 * What the caller can do about the error.
 *
 * Requires: The error is valid.
 */
enum terrace_error_kind terrace_error_get_kind(const struct terrace_error *error);

/**
 * What happened, in a sentence; it is the error's.
 *
 * Requires: The error is valid.
 */
const char *terrace_error_message(const struct terrace_error *error);

/**
 * The file that the error is about, or NULL; it is the error's.
 *
 * Requires: The error is valid.
 */
const char *terrace_error_file(const struct terrace_error *error);

/**
 * Where in the file, in bytes; -1 if that is not known.
 *
 * Requires: The error is valid.
 */
int64_t terrace_error_offset(const struct terrace_error *error);

/**
 * Releases an error; nothing if it is NULL.
 *
 * Requires: It is NULL or from a function of this header, and is not used again.
 */
void terrace_error_free(struct terrace_error *error);

/**
 * Begins an ingest: the cheapest way to load much sorted data. Nothing is visible before terrace_ingest_finish();
 * terrace_ingest_free() gives it up.
 *
 * Requires: The keyspace is valid; `ingest` may be written.
 */
struct terrace_error *terrace_ingest_begin(const struct terrace_keyspace *keyspace,
                                           struct terrace_ingest **ingest);

/**
 * Appends an entry, whose key must lie behind the last one.
 *
 * Requires: The ingest is valid, and no other thread uses it; key and value have as many bytes as they say.
 */
struct terrace_error *terrace_ingest_put(struct terrace_ingest *ingest,
                                         struct terrace_slice key,
                                         struct terrace_slice value);

/**
 * Removes a key, which must lie behind the last one; fine if it has no value.
 *
 * Requires: The ingest is valid, and no other thread uses it; the key has as many bytes as it says.
 */
struct terrace_error *terrace_ingest_delete(struct terrace_ingest *ingest, struct terrace_slice key);

/**
 * Makes all entries durable, and visible at one moment, and releases the ingest in any case.
 *
 * Requires: The ingest is from terrace_ingest_begin(), and is not used again.
 */
struct terrace_error *terrace_ingest_finish(struct terrace_ingest *ingest);

/**
 * Gives an ingest up; nothing if it is NULL.
 *
 * Requires: It is NULL or from terrace_ingest_begin(), and is not used again.
 */
void terrace_ingest_free(struct terrace_ingest *ingest);

/**
 * Releases the handle of a keyspace; nothing if it is NULL.
 *
 * Requires: It is NULL or from a function of this header, and is not used again.
 */
void terrace_keyspace_free(struct terrace_keyspace *keyspace);

/**
 * Its name, which is the handle's.
 *
 * Requires: The keyspace is valid.
 */
const char *terrace_keyspace_name(const struct terrace_keyspace *keyspace);

/**
 * Its id, never used again in this store.
 *
 * Requires: The keyspace is valid.
 */
uint32_t terrace_keyspace_id(const struct terrace_keyspace *keyspace);

/**
 * Its options.
 *
 * Requires: The keyspace is valid; `options` may be written.
 */
struct terrace_error *terrace_keyspace_get_options(const struct terrace_keyspace *keyspace,
                                                   struct terrace_keyspace_options *options);

/**
 * Changes its options, for what is written from now on. The change is durable when the call returns.
 *
 * Requires: Both are valid.
 */
struct terrace_error *terrace_keyspace_set_options(const struct terrace_keyspace *keyspace,
                                                   const struct terrace_keyspace_options *options);

/**
 * About how many entries it has; nothing is read for that.
 *
 * Requires: The keyspace is valid.
 */
uint64_t terrace_keyspace_approximate_len(const struct terrace_keyspace *keyspace);

/**
 * About how many bytes of tables its entries in `range` take; nothing is read for that.
 *
 * Requires: The keyspace is valid; the range's keys have as many bytes as it says.
 */
uint64_t terrace_keyspace_approximate_bytes(const struct terrace_keyspace *keyspace,
                                            struct terrace_range range);

/**
 * Compacts the tables that hold keys of `range` into the deepest level, and waits for it.
 *
 * Requires: The keyspace is valid; the range's keys have as many bytes as it says.
 */
struct terrace_error *terrace_compact_range(const struct terrace_keyspace *keyspace,
                                            struct terrace_range range);

/**
 * Makes options with their defaults, which suit most uses. Release them with terrace_options_free(). What is out of its range
 * is refused by terrace_open().
 */
struct terrace_options *terrace_options_create(void);

/**
 * Releases options; nothing if they are NULL.
 *
 * Requires: They are NULL or from terrace_options_create(), and are not used again.
 */
void terrace_options_free(struct terrace_options *options);

/**
 * Sets the durability of writes that ask for TERRACE_DURABILITY_DEFAULT. Default: buffered.
 *
 * Requires: The options are valid.
 */
struct terrace_error *terrace_options_set_durability(struct terrace_options *options, uint32_t durability);

/**
 * Sets the one budget for cache, open tables and memtables, in bytes, at least 1 MiB; 0 for the default: a quarter of the
 * machine's memory, at most 1 GiB.
 *
 * Requires: The options are valid.
 */
void terrace_options_set_memory_bytes(struct terrace_options *options,
                                      uint64_t bytes);

/**
 * Sets the budget for files, in bytes, at least 1 MiB; 0 for none, which is the default.
 *
 * Requires: The options are valid.
 */
void terrace_options_set_space_bytes(struct terrace_options *options, uint64_t bytes);

/**
 * Sets the size at which a memtable is flushed, in bytes, 4 KiB to 4 GiB. Default: 64 MiB.
 *
 * Requires: The options are valid.
 */
void terrace_options_set_memtable_bytes(struct terrace_options *options, uint64_t bytes);

/**
 * Sets the size of the log at which memtables are flushed, in bytes, at least 64 KiB. Default: 256 MiB.
 *
 * Requires: The options are valid.
 */
void terrace_options_set_wal_bytes_max(struct terrace_options *options, uint64_t bytes);

/**
 * Sets the size of a file that keeps space free for a full disk, in bytes. Default: 0, none.
 *
 * Requires: The options are valid.
 */
void terrace_options_set_reserve_bytes(struct terrace_options *options, uint64_t bytes);

/**
 * Sets how many threads compact, 1 to 64; 0 for the default: 2, on machines with one processor 1.
 *
 * Requires: The options are valid.
 */
void terrace_options_set_background_threads(struct terrace_options *options, size_t threads);

/**
 * Sets the options of the keyspace "default", used when the store is created.
 *
 * Requires: Both are valid.
 */
struct terrace_error *terrace_options_set_keyspace(struct terrace_options *options,
                                                   const struct terrace_keyspace_options *keyspace);

/**
 * Sets all that a named profile sets, such as "default" or "leveldb-2m": call it before the other setters.
 *
 * Requires: The options are valid; the name ends with a zero.
 */
struct terrace_error *terrace_options_set_profile(struct terrace_options *options, const char *name);

/**
 * Adds a directory for tables, on another device.
 *
 * Requires: The options are valid; the path ends with a zero.
 */
struct terrace_error *terrace_options_add_device(struct terrace_options *options, const char *dir);

/**
 * Sets whether terrace_open() fails where there is no store. Default: false, it creates one.
 *
 * Requires: The options are valid.
 */
void terrace_options_set_must_exist(struct terrace_options *options, bool must_exist);

/**
 * Sets whether the store is opened for reading alone, also beside a process that writes. It shows one moment then, until
 * terrace_refresh(). Default: false.
 *
 * Requires: The options are valid.
 */
void terrace_options_set_read_only(struct terrace_options *options,
                                   bool read_only);

/**
 * The default options of a keyspace.
 */
struct terrace_keyspace_options terrace_keyspace_options_default(void);

/**
 * A snapshot of the store as it is now. Release it with terrace_snapshot_free(); until then it keeps what it sees.
 *
 * Requires: The handle is valid; `snapshot` may be written.
 */
struct terrace_error *terrace_snapshot_create(const struct terrace_db *db,
                                              struct terrace_snapshot **snapshot);

/**
 * Sequence number of the newest write that the snapshot sees.
 *
 * Requires: The snapshot is valid.
 */
uint64_t terrace_snapshot_seq(const struct terrace_snapshot *snapshot);

/**
 * Releases a snapshot; nothing if it is NULL.
 *
 * Requires: It is NULL or from terrace_snapshot_create(), and is not used again.
 */
void terrace_snapshot_free(struct terrace_snapshot *snapshot);

/**
 * The value of `key`: of now, or as `snapshot` sees it unless that is NULL. Its `data` is NULL if there is none. Release it
 * with terrace_value_free().
 *
 * Requires: Keyspace and snapshot are valid; the key has as many bytes as it says; `value` may be written, and what is there is not
 * released.
 */
struct terrace_error *terrace_get(const struct terrace_keyspace *keyspace,
                                  const struct terrace_snapshot *snapshot,
                                  struct terrace_slice key,
                                  struct terrace_value *value);

/**
 * Whether `key` has a value: now, or as `snapshot` sees it unless that is NULL.
 *
 * Requires: Keyspace and snapshot are valid; the key has as many bytes as it says; `found` may be written.
 */
struct terrace_error *terrace_contains(const struct terrace_keyspace *keyspace,
                                       const struct terrace_snapshot *snapshot,
                                       struct terrace_slice key,
                                       bool *found);

/**
 * The values of `count` keys at one moment, in their order: cheaper than terrace_get() for each. Release each of them with
 * terrace_value_free(). After a failure there are none to release.
 *
 * Requires: Keyspace and snapshot are valid; there are `count` keys with as many bytes as they say; as many values may be written.
 */
struct terrace_error *terrace_multi_get(const struct terrace_keyspace *keyspace,
                                        const struct terrace_snapshot *snapshot,
                                        const struct terrace_slice *keys,
                                        size_t count,
                                        struct terrace_value *values);

/**
 * The statistics of the store as of now. Release them with terrace_stats_free().
 *
 * Requires: The handle is valid; `stats` may be written.
 */
struct terrace_error *terrace_stats_read(const struct terrace_db *db, struct terrace_stats **stats);

/**
 * Releases statistics, with the texts in them; nothing if they are NULL.
 *
 * Requires: They are NULL or from terrace_stats_read(), and are not used again.
 */
void terrace_stats_free(struct terrace_stats *stats);

/**
 * The counters and sizes.
 *
 * Requires: The statistics are valid; `counters` may be written.
 */
struct terrace_error *terrace_stats_counters(const struct terrace_stats *stats,
                                             struct terrace_counters *counters);

/**
 * For how many reasons writers have waited.
 *
 * Requires: The statistics are valid.
 */
size_t terrace_stats_stalls(const struct terrace_stats *stats);

/**
 * The waits of writers for the reason with number `index`.
 *
 * Requires: The statistics are valid; `stall` may be written.
 */
struct terrace_error *terrace_stats_stall(const struct terrace_stats *stats,
                                          size_t index,
                                          struct terrace_stall *stall);

/**
 * How many keyspaces there are.
 *
 * Requires: The statistics are valid.
 */
size_t terrace_stats_keyspaces(const struct terrace_stats *stats);

/**
 * The keyspace with number `index`; "default" is the first.
 *
 * Requires: The statistics are valid; `keyspace` may be written.
 */
struct terrace_error *terrace_stats_keyspace(const struct terrace_stats *stats,
                                             size_t index,
                                             struct terrace_keyspace_stats *keyspace);

/**
 * The level with number `level` of the keyspace with number `index`.
 *
 * Requires: The statistics are valid; `shape` may be written.
 */
struct terrace_error *terrace_stats_level(const struct terrace_stats *stats,
                                          size_t index,
                                          size_t level,
                                          struct terrace_level_stats *shape);

/**
 * How many directories the store has.
 *
 * Requires: The statistics are valid.
 */
size_t terrace_stats_devices(const struct terrace_stats *stats);

/**
 * The directory with number `index`; the one with log and manifest is the first.
 *
 * Requires: The statistics are valid; `device` may be written.
 */
struct terrace_error *terrace_stats_device(const struct terrace_stats *stats,
                                           size_t index,
                                           struct terrace_device_stats *device);

/**
 * Makes all acknowledged writes durable: they survive a power cut.
 *
 * Requires: The handle is valid.
 */
struct terrace_error *terrace_sync(const struct terrace_db *db);

/**
 * As terrace_sync(), without waiting: the ticket says when everything that is acknowledged by now has become durable.
 * Release it with terrace_ticket_free().
 *
 * Requires: The handle is valid; `ticket` may be written.
 */
struct terrace_error *terrace_sync_ticket(const struct terrace_db *db,
                                          struct terrace_ticket **ticket);

/**
 * Whether the write is known to be durable. Does not wait.
 *
 * Requires: The ticket is valid.
 */
bool terrace_ticket_is_durable(const struct terrace_ticket *ticket);

/**
 * Waits until the write is durable, or fails if it is unknown whether it survives a power cut.
 *
 * Requires: The ticket is valid.
 */
struct terrace_error *terrace_ticket_wait(const struct terrace_ticket *ticket);

/**
 * Has `callback` called once, on a thread of the store: with NULL when the write is durable, with an error, which is valid
 * during the call, when it is known that it may not be. It may use the store. The ticket may be released meanwhile.
 *
 * Requires: The ticket is valid; the function may be called with `state` on any thread, and returns to its caller.
 */
struct terrace_error *terrace_ticket_on_durable(const struct terrace_ticket *ticket,
                                                void (*callback)(void *state,
                                                                 const struct terrace_error *error),
                                                void *state);

/**
 * Releases a ticket; nothing if it is NULL. The sync happens all the same.
 *
 * Requires: It is NULL or from a function of this header, and is not used again.
 */
void terrace_ticket_free(struct terrace_ticket *ticket);

/**
 * Begins a transaction: it sees the store as it is now, and its own writes. `isolation` is a terrace_isolation. It ends with
 * terrace_transaction_commit(), terrace_transaction_commit_ticket() or terrace_transaction_free().
 *
 * Requires: The handle is valid; `transaction` may be written.
 */
struct terrace_error *terrace_transaction_begin(const struct terrace_db *db,
                                                uint32_t isolation,
                                                struct terrace_transaction **transaction);

/**
 * Ends a transaction without writing anything; nothing if it is NULL.
 *
 * Requires: It is NULL or from terrace_transaction_begin(), and is not used again.
 */
void terrace_transaction_free(struct terrace_transaction *transaction);

/**
 * The value of `key`, as terrace_get() has it.
 *
 * Requires: Transaction and keyspace are valid, and no other thread uses the transaction; the key has as many bytes as it says; `value`
 * may be written, and what is there is not released.
 */
struct terrace_error *terrace_transaction_get(struct terrace_transaction *transaction,
                                              const struct terrace_keyspace *keyspace,
                                              struct terrace_slice key,
                                              struct terrace_value *value);

/**
 * Gives `key` the value `value`, when the transaction commits.
 *
 * Requires: Transaction and keyspace are valid, and no other thread uses the transaction; key and value have as many bytes as they say.
 */
struct terrace_error *terrace_transaction_put(struct terrace_transaction *transaction,
                                              const struct terrace_keyspace *keyspace,
                                              struct terrace_slice key,
                                              struct terrace_slice value);

/**
 * Removes `key`, when the transaction commits.
 *
 * Requires: Transaction and keyspace are valid, and no other thread uses the transaction; the key has as many bytes as it says.
 */
struct terrace_error *terrace_transaction_delete(struct terrace_transaction *transaction,
                                                 const struct terrace_keyspace *keyspace,
                                                 struct terrace_slice key);

/**
 * Removes all keys of `range`, when the transaction commits. It counts as a write of the whole range.
 *
 * Requires: Transaction and keyspace are valid, and no other thread uses the transaction; the range's keys have as many bytes as it
 * says.
 */
struct terrace_error *terrace_transaction_delete_range(struct terrace_transaction *transaction,
                                                       const struct terrace_keyspace *keyspace,
                                                       struct terrace_range range);

/**
 * The entries of `range`, with the transaction's own writes so far. For a serialisable transaction this counts as a read of
 * the whole range. Release it with terrace_transaction_iterator_free(); it may outlive the transaction.
 *
 * Requires: Transaction and keyspace are valid, and no other thread uses the transaction; the range's keys have as many bytes as it
 * says; `iterator` may be written.
 */
struct terrace_error *terrace_transaction_iter(struct terrace_transaction *transaction,
                                               const struct terrace_keyspace *keyspace,
                                               struct terrace_range range,
                                               struct terrace_transaction_iterator **iterator);

/**
 * The next entry from the front, which is the iterator's and valid until the next call; with a key of NULL at the end.
 *
 * Requires: The iterator is valid, and no other thread uses it; `entry` may be written.
 */
struct terrace_error *terrace_transaction_iterator_next(struct terrace_transaction_iterator *iterator,
                                                        struct terrace_entry *entry);

/**
 * The next entry from the back, as terrace_transaction_iterator_next() has it. The two ends meet.
 *
 * Requires: The iterator is valid, and no other thread uses it; `entry` may be written.
 */
struct terrace_error *terrace_transaction_iterator_next_back(struct terrace_transaction_iterator *iterator,
                                                             struct terrace_entry *entry);

/**
 * Releases an iterator; nothing if it is NULL.
 *
 * Requires: It is NULL or from terrace_transaction_iter(), and is not used again.
 */
void terrace_transaction_iterator_free(struct terrace_transaction_iterator *iterator);

/**
 * Applies all writes of the transaction, or none of them, and releases it in any case. `durability` is a terrace_durability.
 * With an error of TERRACE_ERROR_KIND_CONFLICT nothing was written: run the transaction again.
 *
 * Requires: The transaction is from terrace_transaction_begin(), and is not used again.
 */
struct terrace_error *terrace_transaction_commit(struct terrace_transaction *transaction,
                                                 uint32_t durability);

/**
 * As terrace_transaction_commit(), buffered; the ticket says when the writes have become durable. Release it with
 * terrace_ticket_free().
 *
 * Requires: The transaction is from terrace_transaction_begin(), and is not used again; `ticket` may be written.
 */
struct terrace_error *terrace_transaction_commit_ticket(struct terrace_transaction *transaction,
                                                        struct terrace_ticket **ticket);

/**
 * Writes all memtables to tables, in all keyspaces.
 *
 * Requires: The handle is valid.
 */
struct terrace_error *terrace_flush(const struct terrace_db *db);

/**
 * Compacts everything that is there now into the deepest level, in all keyspaces.
 *
 * Requires: The handle is valid.
 */
struct terrace_error *terrace_compact(const struct terrace_db *db);

/**
 * Waits until no flush, compaction or reclaim is due.
 *
 * Requires: The handle is valid.
 */
struct terrace_error *terrace_wait_idle(const struct terrace_db *db);

/**
 * Copies the store as it is now to the directory `dir`, which must be empty or not exist: an independent store, durable when
 * the call returns. Writes go on meanwhile.
 *
 * Requires: The handle is valid; the path ends with a zero.
 */
struct terrace_error *terrace_checkpoint(const struct terrace_db *db,
                                         const char *dir);

/**
 * Reads the whole store and checks every block against its checksum, its neighbours and the manifest. Calls `each`, unless it
 * is NULL, with each problem, which is valid during the call. Damage is no error of this function.
 *
 * Requires: The handle is valid; `each` is NULL or may be called with `state`, and returns to its caller; `report` may be written.
 */
struct terrace_error *terrace_verify(const struct terrace_db *db,
                                     void (*each)(void *state, const struct terrace_error *problem),
                                     void *state,
                                     struct terrace_verify_report *report);

/**
 * Builds a new store in `target`, an empty or new directory, from everything in the store in `path` whose checksums are
 * right. The old store is not changed. Calls `each`, unless it is NULL, with all that is lost.
 *
 * Requires: The paths end with a zero; `each` is NULL or may be called with `state`, and returns to its caller; `report` may be written.
 */
struct terrace_error *terrace_repair(const char *path,
                                     const char *target,
                                     void (*each)(void *state, const struct terrace_error *problem),
                                     void *state,
                                     struct terrace_repair_report *report);

/**
 * Makes the directory `dir`, on another device, one of the store's while it is in use.
 *
 * Requires: The handle is valid; the path ends with a zero.
 */
struct terrace_error *terrace_add_device(const struct terrace_db *db, const char *dir);

/**
 * Moves all tables away from the device in `dir`, and lets it go.
 *
 * Requires: The handle is valid; the path ends with a zero.
 */
struct terrace_error *terrace_remove_device(const struct terrace_db *db, const char *dir);

/**
 * Gives `key` the value `value`. `durability` is a terrace_durability.
 *
 * Requires: The keyspace is valid; key and value have as many bytes as they say.
 */
struct terrace_error *terrace_put(const struct terrace_keyspace *keyspace,
                                  struct terrace_slice key,
                                  struct terrace_slice value,
                                  uint32_t durability);

/**
 * Removes `key`; fine if it has no value. `durability` is a terrace_durability.
 *
 * Requires: The keyspace is valid; the key has as many bytes as it says.
 */
struct terrace_error *terrace_delete(const struct terrace_keyspace *keyspace,
                                     struct terrace_slice key,
                                     uint32_t durability);

/**
 * Removes all keys of `range`, at the cost of one write. `durability` is a terrace_durability.
 *
 * Requires: The keyspace is valid; the range's keys have as many bytes as it says.
 */
struct terrace_error *terrace_delete_range(const struct terrace_keyspace *keyspace,
                                           struct terrace_range range,
                                           uint32_t durability);

/**
 * Removes all keys that begin with `prefix`, with the durability of the options.
 *
 * Requires: The keyspace is valid; the prefix has as many bytes as it says.
 */
struct terrace_error *terrace_delete_prefix(const struct terrace_keyspace *keyspace,
                                            struct terrace_slice prefix);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TERRACE_H */

#ifndef TERRACE_H_HELPERS
#define TERRACE_H_HELPERS

/* The bytes of a text, without the zero at its end. */
static inline terrace_slice terrace_text(const char *text) {
    terrace_slice slice = {text, strlen(text)};
    return slice;
}

/* The bytes at data, of which there are len. */
static inline terrace_slice terrace_bytes(const void *data, size_t len) {
    terrace_slice slice = {(const char *)data, len};
    return slice;
}

/* All keys. */
static inline terrace_range terrace_all(void) {
    terrace_range range = {{NULL, 0}, {NULL, 0}, false, false};
    return range;
}

/* The keys from one up to and without another. */
static inline terrace_range terrace_between(terrace_slice from, terrace_slice to) {
    terrace_range range = {from, to, false, false};
    return range;
}

#endif
