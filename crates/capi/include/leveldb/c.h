/* LevelDB's interface in C, by Terrace. README.md lists what differs. */

#ifndef TERRACE_LEVELDB_C_H
#define TERRACE_LEVELDB_C_H

/* Made by cbindgen from the sources of the library. To change it, change those: see tests/headers.rs. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "leveldb/export.h"

/* For leveldb_options_set_compression(). */
enum { leveldb_no_compression = 0, leveldb_snappy_compression = 1 };

/* Types of LevelDB's header that no function has. */
typedef struct leveldb_filelock_t leveldb_filelock_t;
typedef struct leveldb_randomfile_t leveldb_randomfile_t;
typedef struct leveldb_seqfile_t leveldb_seqfile_t;
typedef struct leveldb_writablefile_t leveldb_writablefile_t;

/**
 * A cache of blocks: see leveldb_cache_create_lru().
 */
typedef struct leveldb_cache_t leveldb_cache_t;

/**
 * An order of keys: see leveldb_comparator_create().
 */
typedef struct leveldb_comparator_t leveldb_comparator_t;

/**
 * The operating system: see leveldb_create_default_env().
 */
typedef struct leveldb_env_t leveldb_env_t;

/**
 * A way to make filters: see leveldb_filterpolicy_create_bloom().
 */
typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;

/**
 * A position among the entries of a database at one moment: see leveldb_create_iterator().
 */
typedef struct leveldb_iterator_t leveldb_iterator_t;

/**
 * A log for messages. No function makes one.
 */
typedef struct leveldb_logger_t leveldb_logger_t;

/**
 * Options of a database: see leveldb_options_create().
 */
typedef struct leveldb_options_t leveldb_options_t;

/**
 * Options of reads: see leveldb_readoptions_create().
 */
typedef struct leveldb_readoptions_t leveldb_readoptions_t;

/**
 * A database at one moment: see leveldb_create_snapshot().
 */
typedef struct leveldb_snapshot_t leveldb_snapshot_t;

/**
 * An open database: the keyspace "default" of a store.
 */
typedef struct leveldb_t leveldb_t;

/**
 * A group of writes that take effect together: see leveldb_writebatch_create().
 */
typedef struct leveldb_writebatch_t leveldb_writebatch_t;

/**
 * Options of writes: see leveldb_writeoptions_create().
 */
typedef struct leveldb_writeoptions_t leveldb_writeoptions_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes an empty batch. Release it with leveldb_writebatch_destroy().
 */
LEVELDB_EXPORT struct leveldb_writebatch_t *leveldb_writebatch_create(void);

/**
 * Releases a batch.
 *
 * Requires: It is from leveldb_writebatch_create(), and is not used again.
 */
LEVELDB_EXPORT void leveldb_writebatch_destroy(struct leveldb_writebatch_t *batch);

/**
 * Empties a batch.
 *
 * Requires: The batch is valid, and no other thread uses it.
 */
LEVELDB_EXPORT void leveldb_writebatch_clear(struct leveldb_writebatch_t *batch);

/**
 * Appends: `key` gets the value `val`. A key or value that is too long fails the write of the batch.
 *
 * Requires: The batch is valid, and no other thread uses it; key and value have as many bytes as is said.
 */
LEVELDB_EXPORT
void leveldb_writebatch_put(struct leveldb_writebatch_t *batch,
                            const char *key,
                            size_t klen,
                            const char *val,
                            size_t vlen);

/**
 * Appends: `key` is removed.
 *
 * Requires: The batch is valid, and no other thread uses it; the key has as many bytes as is said.
 */
LEVELDB_EXPORT
void leveldb_writebatch_delete(struct leveldb_writebatch_t *batch,
                               const char *key,
                               size_t klen);

/**
 * Calls `put` or `deleted` for each operation, in their order. What they are passed is theirs during the call.
 *
 * Requires: The batch is valid and does not change meanwhile; the functions may be called with `state`, and return to their caller.
 */
LEVELDB_EXPORT
void leveldb_writebatch_iterate(const struct leveldb_writebatch_t *batch,
                                void *state,
                                void (*put)(void *state,
                                            const char *k,
                                            size_t klen,
                                            const char *v,
                                            size_t vlen),
                                void (*deleted)(void *state, const char *k, size_t klen));

/**
 * Appends all operations of `source`, which stays as it is.
 *
 * Requires: The batches are valid; no other thread uses `destination`, and none changes `source`.
 */
LEVELDB_EXPORT
void leveldb_writebatch_append(struct leveldb_writebatch_t *destination,
                               const struct leveldb_writebatch_t *source);

/**
 * Opens the database `name`, a directory. Returns NULL if that fails. Close it with leveldb_close().
 *
 * Requires: The options are valid; `name` ends with a zero; `errptr` points to NULL or to a text from `malloc`.
 */
LEVELDB_EXPORT
struct leveldb_t *leveldb_open(const struct leveldb_options_t *options,
                               const char *name,
                               char **errptr);

/**
 * Closes a database: all that was written is durable then. Iterators and snapshots should have been released before; they
 * fail from now on, and keep the directory from being opened until they are.
 *
 * Requires: It is from leveldb_open(), and no thread uses it again.
 */
LEVELDB_EXPORT
void leveldb_close(struct leveldb_t *db);

/**
 * Gives `key` the value `val`.
 *
 * Requires: Database and options are valid; key and value have as many bytes as is said; `errptr` points to NULL or to a text from
 * `malloc`.
 */
LEVELDB_EXPORT
void leveldb_put(struct leveldb_t *db,
                 const struct leveldb_writeoptions_t *options,
                 const char *key,
                 size_t keylen,
                 const char *val,
                 size_t vallen,
                 char **errptr);

/**
 * Removes `key`; fine if it has no value.
 *
 * Requires: Database and options are valid; the key has as many bytes as is said; `errptr` points to NULL or to a text from `malloc`.
 */
LEVELDB_EXPORT
void leveldb_delete(struct leveldb_t *db,
                    const struct leveldb_writeoptions_t *options,
                    const char *key,
                    size_t keylen,
                    char **errptr);

/**
 * Applies all of a batch, or nothing of it. The batch stays as it is.
 *
 * Requires: Database and options are valid; so is the batch, and no other thread changes it; `errptr` points to NULL or to a text from
 * `malloc`.
 */
LEVELDB_EXPORT
void leveldb_write(struct leveldb_t *db,
                   const struct leveldb_writeoptions_t *options,
                   struct leveldb_writebatch_t *batch,
                   char **errptr);

/**
 * The value of `key` and its length, or NULL if it has none. Release it with leveldb_free().
 *
 * Requires: Database and options are valid; the key has as many bytes as is said; `vallen` may be written; `errptr` points to NULL or to
 * a text from `malloc`.
 */
LEVELDB_EXPORT
char *leveldb_get(struct leveldb_t *db,
                  const struct leveldb_readoptions_t *options,
                  const char *key,
                  size_t keylen,
                  size_t *vallen,
                  char **errptr);

/**
 * The database as it is now, for leveldb_readoptions_set_snapshot(). Release it with leveldb_release_snapshot().
 *
 * Requires: The database is valid.
 */
LEVELDB_EXPORT
const struct leveldb_snapshot_t *leveldb_create_snapshot(struct leveldb_t *db);

/**
 * Releases a snapshot.
 *
 * Requires: It is from leveldb_create_snapshot() with the same database, and is not used again.
 */
LEVELDB_EXPORT void leveldb_release_snapshot(struct leveldb_t *db, const struct leveldb_snapshot_t *snapshot);

/**
 * What the database tells of itself under the name `propname`, or NULL if there is no such property. Release it with
 * leveldb_free(). All of LevelDB's names are known, and those that README.md lists.
 *
 * Requires: The database is valid; `propname` ends with a zero.
 */
LEVELDB_EXPORT
char *leveldb_property_value(struct leveldb_t *db,
                             const char *propname);

/**
 * About how many bytes of files each range of keys takes, from its start up to and without its limit. What is in memory
 * alone does not count.
 *
 * Requires: The database is valid; there are `num_ranges` of everything, and keys have as many bytes as is said.
 */
LEVELDB_EXPORT
void leveldb_approximate_sizes(struct leveldb_t *db,
                               int num_ranges,
                               const char *const *range_start_key,
                               const size_t *range_start_key_len,
                               const char *const *range_limit_key,
                               const size_t *range_limit_key_len,
                               uint64_t *sizes);

/**
 * Compacts all tables that hold keys from `start_key` to `limit_key`, both included, and waits for it. A key that is NULL
 * stands for the first or the last.
 *
 * Requires: The database is valid; keys that are not NULL have as many bytes as is said.
 */
LEVELDB_EXPORT
void leveldb_compact_range(struct leveldb_t *db,
                           const char *start_key,
                           size_t start_key_len,
                           const char *limit_key,
                           size_t limit_key_len);

/**
 * Makes an iterator over the database as it is now, or as the options' snapshot sees it. It stands nowhere before it is
 * moved. It is never NULL: what goes wrong is told by leveldb_iter_get_error(). Release it with leveldb_iter_destroy(), before
 * the database is closed: after that it ends with an error.
 *
 * Requires: Database and options are valid.
 */
LEVELDB_EXPORT
struct leveldb_iterator_t *leveldb_create_iterator(struct leveldb_t *db,
                                                   const struct leveldb_readoptions_t *options);

/**
 * Releases an iterator.
 *
 * Requires: It is from leveldb_create_iterator(), and is not used again.
 */
LEVELDB_EXPORT void leveldb_iter_destroy(struct leveldb_iterator_t *iter);

/**
 * Whether the iterator stands on an entry.
 *
 * Requires: The iterator is valid, and no other thread moves it.
 */
LEVELDB_EXPORT uint8_t leveldb_iter_valid(const struct leveldb_iterator_t *iter);

/**
 * Moves to the first entry.
 *
 * Requires: The iterator is valid, and no other thread uses it.
 */
LEVELDB_EXPORT void leveldb_iter_seek_to_first(struct leveldb_iterator_t *iter);

/**
 * Moves to the last entry.
 *
 * Requires: The iterator is valid, and no other thread uses it.
 */
LEVELDB_EXPORT void leveldb_iter_seek_to_last(struct leveldb_iterator_t *iter);

/**
 * Moves to the first entry whose key is at or behind `k`.
 *
 * Requires: The iterator is valid, and no other thread uses it; the key has as many bytes as is said.
 */
LEVELDB_EXPORT void leveldb_iter_seek(struct leveldb_iterator_t *iter, const char *k, size_t klen);

/**
 * Moves to the next entry. The iterator must stand on one; if not, it stays.
 *
 * Requires: The iterator is valid, and no other thread uses it.
 */
LEVELDB_EXPORT void leveldb_iter_next(struct leveldb_iterator_t *iter);

/**
 * Moves to the previous entry. The iterator must stand on one; if not, it stays.
 *
 * Requires: The iterator is valid, and no other thread uses it.
 */
LEVELDB_EXPORT void leveldb_iter_prev(struct leveldb_iterator_t *iter);

/**
 * The key of the entry on which the iterator stands, and its length; NULL if there is none. It is the iterator's, and
 * valid until that moves.
 *
 * Requires: The iterator is valid, and no other thread moves it; `klen` may be written.
 */
LEVELDB_EXPORT
const char *leveldb_iter_key(const struct leveldb_iterator_t *iter,
                             size_t *klen);

/**
 * The value of the entry on which the iterator stands, and its length; NULL if there is none. It is the iterator's, and
 * valid until that moves.
 *
 * Requires: The iterator is valid, and no other thread moves it; `vlen` may be written.
 */
LEVELDB_EXPORT
const char *leveldb_iter_value(const struct leveldb_iterator_t *iter,
                               size_t *vlen);

/**
 * What has ended the iteration, if it was a failure: a table that cannot be read, or is damaged.
 *
 * Requires: The iterator is valid, and no other thread moves it; `errptr` points to NULL or to a text from `malloc`.
 */
LEVELDB_EXPORT void leveldb_iter_get_error(const struct leveldb_iterator_t *iter, char **errptr);

/**
 * Removes the database `name`; fine if there is none. Files of others in its directory stay, and so does a database that
 * LevelDB has written, with an error.
 *
 * Requires: The options are valid; `name` ends with a zero; `errptr` points to NULL or to a text from `malloc`.
 */
LEVELDB_EXPORT
void leveldb_destroy_db(const struct leveldb_options_t *options,
                        const char *name,
                        char **errptr);

/**
 * Repairs the database `name` in place, for one that does not open: it has everything then whose checksums are right. Old
 * files of which something was lost stay in a directory beside it, whose name ends with ".terrace-lost".
 *
 * Requires: The options are valid; `name` ends with a zero; `errptr` points to NULL or to a text from `malloc`.
 */
LEVELDB_EXPORT
void leveldb_repair_db(const struct leveldb_options_t *options,
                       const char *name,
                       char **errptr);

/**
 * Releases what a function of this header has returned from `malloc`, as `free` does.
 *
 * Requires: `ptr` is NULL or such a text or value, and is not used again.
 */
LEVELDB_EXPORT void leveldb_free(void *ptr);

/**
 * The major version of LevelDB whose interface this is.
 */
LEVELDB_EXPORT int leveldb_major_version(void);

/**
 * The minor version of LevelDB whose interface this is.
 */
LEVELDB_EXPORT int leveldb_minor_version(void);

/**
 * Makes options with LevelDB's defaults. Release them with leveldb_options_destroy().
 */
LEVELDB_EXPORT struct leveldb_options_t *leveldb_options_create(void);

/**
 * Releases options.
 *
 * Requires: They are from leveldb_options_create(), and are not used again.
 */
LEVELDB_EXPORT void leveldb_options_destroy(struct leveldb_options_t *options);

/**
 * Sets the order of keys. Terrace has one, bytewise: with any comparator but one that is called
 * "leveldb.BytewiseComparator", leveldb_open() fails and says so. The comparator is never called. NULL takes it back.
 *
 * Requires: The options are valid; so is the comparator, unless it is NULL. It may be destroyed afterwards.
 */
LEVELDB_EXPORT
void leveldb_options_set_comparator(struct leveldb_options_t *options,
                                    struct leveldb_comparator_t *comparator);

/**
 * Sets the filters of tables. A Bloom filter gives its bits for each key, at most 20. With a policy of the caller's own, and
 * with NULL, Terrace has filters of 10 bits for each key: its own are never switched off here, and others never called.
 *
 * Requires: The options are valid; so is the policy, unless it is NULL. It may be destroyed afterwards.
 */
LEVELDB_EXPORT
void leveldb_options_set_filter_policy(struct leveldb_options_t *options,
                                       struct leveldb_filterpolicy_t *policy);

/**
 * Sets whether a database that does not exist is created. Default: 0.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT void leveldb_options_set_create_if_missing(struct leveldb_options_t *options, uint8_t value);

/**
 * Sets whether a database that exists is refused. Default: 0.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT void leveldb_options_set_error_if_exists(struct leveldb_options_t *options, uint8_t value);

/**
 * Taken for whoever sets it: Terrace always checks all that LevelDB checks with it. Damage keeps a database from opening,
 * or fails the read that meets it.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT
void leveldb_options_set_paranoid_checks(struct leveldb_options_t *options,
                                         uint8_t value);

/**
 * Taken and not used: there is one environment, the operating system.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT void leveldb_options_set_env(struct leveldb_options_t *options, struct leveldb_env_t *env);

/**
 * Taken and not used: Terrace writes no log of messages.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT
void leveldb_options_set_info_log(struct leveldb_options_t *options,
                                  struct leveldb_logger_t *logger);

/**
 * Sets the size of a memtable, in bytes, 4 KiB to 4 GiB. Default: 4 MiB.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT void leveldb_options_set_write_buffer_size(struct leveldb_options_t *options, size_t bytes);

/**
 * Sets how much memory open tables get: 32 KiB for each of these files, in one budget with cache and memtables. It limits no
 * descriptors: see README.md. Default: 1000.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT
void leveldb_options_set_max_open_files(struct leveldb_options_t *options,
                                        int files);

/**
 * Sets the cache, of which only the size counts: each database has a cache of its own. Default, and with NULL: 8 MiB.
 *
 * Requires: The options are valid; so is the cache, unless it is NULL. It may be destroyed afterwards.
 */
LEVELDB_EXPORT
void leveldb_options_set_cache(struct leveldb_options_t *options,
                               struct leveldb_cache_t *cache);

/**
 * Sets the size of a block of a table, in bytes, 256 to 1 MiB. Default: 4 KiB.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT void leveldb_options_set_block_size(struct leveldb_options_t *options, size_t bytes);

/**
 * Taken and not used: Terrace's blocks have no such points.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT void leveldb_options_set_block_restart_interval(struct leveldb_options_t *options, int keys);

/**
 * Taken and not used: Terrace's tables are of about 1 MiB, many to a file.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT void leveldb_options_set_max_file_size(struct leveldb_options_t *options, size_t bytes);

/**
 * Sets the compression of what is written from now on. Any but leveldb_no_compression is LZ4. Default:
 * leveldb_snappy_compression, so LZ4.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT void leveldb_options_set_compression(struct leveldb_options_t *options, int compression);

/**
 * Makes an order of keys, for leveldb_options_set_comparator(), which says what becomes of it. `destructor` is called with
 * `state` by leveldb_comparator_destroy().
 *
 * Requires: The functions may be called with `state` until then; `name` returns a text that ends with a zero.
 */
LEVELDB_EXPORT
struct leveldb_comparator_t *leveldb_comparator_create(void *state,
                                                       void (*destructor)(void *state),
                                                       int (*compare)(void *state,
                                                                      const char *a,
                                                                      size_t alen,
                                                                      const char *b,
                                                                      size_t blen),
                                                       const char *(*name)(void *state));

/**
 * Releases an order of keys.
 *
 * Requires: It is from leveldb_comparator_create(), and is not used again.
 */
LEVELDB_EXPORT void leveldb_comparator_destroy(struct leveldb_comparator_t *comparator);

/**
 * Makes a way to make filters, for leveldb_options_set_filter_policy(), which says what becomes of it. `destructor` is called
 * with `state` by leveldb_filterpolicy_destroy(), and nothing else is ever called.
 *
 * Requires: The destructor may be called with `state`.
 */
LEVELDB_EXPORT
struct leveldb_filterpolicy_t *leveldb_filterpolicy_create(void *state,
                                                           void (*destructor)(void *state),
                                                           char *(*create_filter)(void *state,
                                                                                  const char *const *key_array,
                                                                                  const size_t *key_length_array,
                                                                                  int num_keys,
                                                                                  size_t *filter_length),
                                                           uint8_t (*key_may_match)(void *state,
                                                                                    const char *key,
                                                                                    size_t length,
                                                                                    const char *filter,
                                                                                    size_t filter_length),
                                                           const char *(*name)(void *state));

/**
 * Releases a way to make filters.
 *
 * Requires: It is from one of the two functions that make one, and is not used again.
 */
LEVELDB_EXPORT void leveldb_filterpolicy_destroy(struct leveldb_filterpolicy_t *policy);

/**
 * Makes a Bloom filter with this many bits for each key.
 */
LEVELDB_EXPORT struct leveldb_filterpolicy_t *leveldb_filterpolicy_create_bloom(int bits_per_key);

/**
 * Makes options of reads. Release them with leveldb_readoptions_destroy().
 */
LEVELDB_EXPORT struct leveldb_readoptions_t *leveldb_readoptions_create(void);

/**
 * Releases options of reads.
 *
 * Requires: They are from leveldb_readoptions_create(), and are not used again.
 */
LEVELDB_EXPORT void leveldb_readoptions_destroy(struct leveldb_readoptions_t *options);

/**
 * Taken for whoever sets it: Terrace verifies the checksum of each block that it reads from a file.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT
void leveldb_readoptions_set_verify_checksums(struct leveldb_readoptions_t *options,
                                              uint8_t value);

/**
 * Taken and not used: Terrace's cache decides by itself what of a scan it keeps.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT void leveldb_readoptions_set_fill_cache(struct leveldb_readoptions_t *options, uint8_t value);

/**
 * Sets the snapshot that reads see; with NULL they see the newest state.
 *
 * Requires: The options are valid; the snapshot is not released as long as they are used with it.
 */
LEVELDB_EXPORT
void leveldb_readoptions_set_snapshot(struct leveldb_readoptions_t *options,
                                      const struct leveldb_snapshot_t *snapshot);

/**
 * Makes options of writes. Release them with leveldb_writeoptions_destroy().
 */
LEVELDB_EXPORT struct leveldb_writeoptions_t *leveldb_writeoptions_create(void);

/**
 * Releases options of writes.
 *
 * Requires: They are from leveldb_writeoptions_create(), and are not used again.
 */
LEVELDB_EXPORT void leveldb_writeoptions_destroy(struct leveldb_writeoptions_t *options);

/**
 * Sets whether a write, and every one before it, survives a power cut when the call returns. Without it, writes survive the
 * death of the process. Default: 0.
 *
 * Requires: The options are valid.
 */
LEVELDB_EXPORT
void leveldb_writeoptions_set_sync(struct leveldb_writeoptions_t *options,
                                   uint8_t value);

/**
 * Makes a cache of this size, for leveldb_options_set_cache(), which says what becomes of it.
 */
LEVELDB_EXPORT struct leveldb_cache_t *leveldb_cache_create_lru(size_t capacity);

/**
 * Releases a cache.
 *
 * Requires: It is from leveldb_cache_create_lru(), and is not used again.
 */
LEVELDB_EXPORT void leveldb_cache_destroy(struct leveldb_cache_t *cache);

/**
 * The operating system. Release it with leveldb_env_destroy().
 */
LEVELDB_EXPORT struct leveldb_env_t *leveldb_create_default_env(void);

/**
 * Releases an environment.
 *
 * Requires: It is from leveldb_create_default_env(), and is not used again.
 */
LEVELDB_EXPORT void leveldb_env_destroy(struct leveldb_env_t *env);

/**
 * A directory for tests, which is created; NULL if that fails. Release it with leveldb_free(). It is what the variable
 * TEST_TMPDIR says, or one below /tmp for each user.
 *
 * Requires: The environment is valid.
 */
LEVELDB_EXPORT
char *leveldb_env_get_test_directory(struct leveldb_env_t *env);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TERRACE_LEVELDB_C_H */
