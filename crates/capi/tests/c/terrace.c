/* Terrace's own interface in C: every kind of object, kinds of errors, what is NULL. */

#include <pthread.h>
#include <unistd.h>

#include "../expect.h"
#include "terrace.h"

#define OK(call) expect_success(__LINE__, call)

static void expect_success(int line, terrace_error *error) {
    if (error != NULL) {
        fprintf(stderr, "%s:%d: %s\n", __FILE__, line, terrace_error_message(error));
        exit(1);
    }
}

/* Takes an error that must be of a kind, and must have a text in it. */
static void failed(terrace_error *error, terrace_error_kind kind, const char *text) {
    EXPECT(error != NULL);
    if (terrace_error_get_kind(error) != kind || strstr(terrace_error_message(error), text) == NULL) {
        fprintf(stderr, "not %d with %s: %d, %s\n", kind, text, terrace_error_get_kind(error),
                terrace_error_message(error));
        exit(1);
    }
    terrace_error_free(error);
}

static bool is(terrace_slice slice, const char *text) {
    return slice.data != NULL && slice.len == strlen(text) && memcmp(slice.data, text, slice.len) == 0;
}

/* Whether the value of a key is a text; NULL stands for none. */
static bool has(terrace_keyspace *keyspace, const terrace_snapshot *snapshot, const char *key, const char *text) {
    terrace_value value;
    OK(terrace_get(keyspace, snapshot, terrace_text(key), &value));
    terrace_slice slice = {value.data, value.len};
    const bool same = text == NULL ? value.data == NULL : is(slice, text);
    terrace_value_free(&value);
    EXPECT(value.data == NULL);
    terrace_value_free(&value);
    return same;
}

static void put(terrace_keyspace *keyspace, const char *key, const char *value) {
    OK(terrace_put(keyspace, terrace_text(key), terrace_text(value), TERRACE_DURABILITY_DEFAULT));
}

static void openings(const char *path) {
    terrace_db *db, *second;
    terrace_options *options = terrace_options_create();
    terrace_options_set_must_exist(options, true);
    failed(terrace_open(path, options, &db), TERRACE_ERROR_KIND_NOT_FOUND, "there is no store");
    terrace_options_set_must_exist(options, false);
    terrace_options_set_memtable_bytes(options, 1);
    failed(terrace_open(path, options, &db), TERRACE_ERROR_KIND_INVALID_INPUT, "memtable_bytes is 1");
    failed(terrace_options_set_profile(options, "none"), TERRACE_ERROR_KIND_INVALID_INPUT, "is no profile");
    OK(terrace_options_set_profile(options, "leveldb-2m"));
    terrace_options_set_memory_bytes(options, 64 << 20);
    OK(terrace_options_set_durability(options, TERRACE_DURABILITY_SYNCED));
    failed(terrace_options_set_durability(options, 9), TERRACE_ERROR_KIND_INVALID_INPUT, "durability is 9");
    OK(terrace_open(path, options, &db));
    failed(terrace_open(path, options, &second), TERRACE_ERROR_KIND_BUSY, "");
    EXPECT(second == NULL);

    terrace_options_set_read_only(options, true);
    OK(terrace_open(path, options, &second));
    terrace_keyspace *reader, *writer;
    OK(terrace_keyspace_open(second, "default", NULL, &reader));
    OK(terrace_keyspace_open(db, "default", NULL, &writer));
    failed(terrace_put(reader, terrace_text("k"), terrace_text("v"), 0), TERRACE_ERROR_KIND_READ_ONLY, "");
    put(writer, "k", "v");
    EXPECT(has(reader, NULL, "k", NULL));
    terrace_keyspace_free(reader);
    OK(terrace_refresh(second));
    OK(terrace_keyspace_open(second, "default", NULL, &reader));
    EXPECT(has(reader, NULL, "k", "v"));
    terrace_keyspace_free(reader);
    OK(terrace_close(second));

    /* After the close, other handles are refused. */
    OK(terrace_close(db));
    terrace_value value;
    failed(terrace_get(writer, NULL, terrace_text("k"), &value), TERRACE_ERROR_KIND_CLOSED, "");
    terrace_keyspace_free(writer);
    terrace_options_free(options);
}

static void nulls(terrace_db *db, terrace_keyspace *keyspace) {
    terrace_keyspace *none;
    failed(terrace_open(NULL, NULL, &db), TERRACE_ERROR_KIND_INVALID_INPUT, "path is NULL");
    failed(terrace_keyspace_open(NULL, "a", NULL, &none), TERRACE_ERROR_KIND_INVALID_INPUT, "db is NULL");
    failed(terrace_get(keyspace, NULL, terrace_text("k"), NULL), TERRACE_ERROR_KIND_INVALID_INPUT, "value is NULL");
    failed(terrace_write(db, NULL, 0), TERRACE_ERROR_KIND_INVALID_INPUT, "batch is NULL");
    failed(terrace_close(NULL), TERRACE_ERROR_KIND_INVALID_INPUT, "db is NULL");
    terrace_db_free(NULL);
    terrace_error_free(NULL);
    terrace_batch_free(NULL);
    terrace_cursor_free(NULL);
    terrace_free(NULL);
}

static void count_names(void *state, const char *name) {
    char *names = state;
    sprintf(names + strlen(names), "%s ", name);
}

static void keyspaces(terrace_db *db) {
    terrace_keyspace_options options = terrace_keyspace_options_default();
    EXPECT(options.filter_bits_per_key == 10 && options.compression == TERRACE_COMPRESSION_NONE);
    options.compression = TERRACE_COMPRESSION_LZ4;
    options.prefix = TERRACE_PREFIX_DELIMITED;
    options.prefix_delimiter = '/';
    options.prefix_count = 1;
    terrace_keyspace *pages, *found;
    OK(terrace_keyspace_open(db, "pages", &options, &pages));
    EXPECT(strcmp(terrace_keyspace_name(pages), "pages") == 0 && terrace_keyspace_id(pages) > 1);
    terrace_keyspace_options again;
    OK(terrace_keyspace_get_options(pages, &again));
    EXPECT(again.compression == TERRACE_COMPRESSION_LZ4 && again.prefix_delimiter == '/');
    again.filter_bits_per_key = 21;
    failed(terrace_keyspace_set_options(pages, &again), TERRACE_ERROR_KIND_INVALID_INPUT, "filter_bits_per_key is 21");
    again.filter_bits_per_key = 5;
    OK(terrace_keyspace_set_options(pages, &again));

    put(pages, "a/1", "");
    put(pages, "a/2", "");
    put(pages, "b/1", "");
    OK(terrace_delete_prefix(pages, terrace_text("a/")));
    EXPECT(has(pages, NULL, "a/2", NULL) && has(pages, NULL, "b/1", ""));
    OK(terrace_flush(db));
    EXPECT(terrace_keyspace_approximate_len(pages) < 4);
    EXPECT(terrace_keyspace_approximate_bytes(pages, terrace_all()) > 0);
    OK(terrace_compact_range(pages, terrace_all()));

    char names[100] = "";
    OK(terrace_keyspaces(db, count_names, names));
    EXPECT(strcmp(names, "default pages ") == 0);
    OK(terrace_keyspace_find(db, "none", &found));
    EXPECT(found == NULL);
    OK(terrace_keyspace_drop(db, "pages"));
    failed(terrace_keyspace_drop(db, "pages"), TERRACE_ERROR_KIND_NOT_FOUND, "");
    failed(terrace_put(pages, terrace_text("k"), terrace_text("v"), 0), TERRACE_ERROR_KIND_NOT_FOUND, "");
    terrace_keyspace_free(pages);
}

static void batches(terrace_db *db, terrace_keyspace *first) {
    terrace_keyspace *second;
    OK(terrace_keyspace_open(db, "second", NULL, &second));
    terrace_batch *batch = terrace_batch_create();
    put(first, "old1", "");
    OK(terrace_batch_put(batch, first, terrace_text("a"), terrace_text("1")));
    OK(terrace_batch_put(batch, second, terrace_text("a"), terrace_text("2")));
    OK(terrace_batch_delete(batch, first, terrace_text("b")));
    OK(terrace_batch_delete_range(batch, first, terrace_between(terrace_text("old"), terrace_text("ole"))));
    EXPECT(terrace_batch_len(batch) == 4 && terrace_batch_bytes(batch) > 4);
    OK(terrace_write(db, batch, TERRACE_DURABILITY_SYNCED));
    EXPECT(terrace_batch_len(batch) == 0);
    EXPECT(has(first, NULL, "a", "1") && has(second, NULL, "a", "2") && has(first, NULL, "old1", NULL));
    OK(terrace_write(db, batch, TERRACE_DURABILITY_BUFFERED));
    failed(terrace_write(db, batch, 7), TERRACE_ERROR_KIND_INVALID_INPUT, "durability is 7");

    char *long_key = calloc(70000, 1);
    OK(terrace_batch_put(batch, first, terrace_bytes(long_key, 70000), terrace_text("")));
    failed(terrace_write(db, batch, 0), TERRACE_ERROR_KIND_INVALID_INPUT, "a key of 70000 bytes");
    free(long_key);
    terrace_batch_free(batch);
    terrace_keyspace_free(second);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void durable(void *state, const terrace_error *error) {
    EXPECT(error == NULL);
    pthread_mutex_lock(&mutex);
    ++*(int *)state;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void tickets(terrace_db *db, terrace_keyspace *keyspace) {
    terrace_batch *batch = terrace_batch_create();
    terrace_ticket *ticket;
    int calls = 0;
    OK(terrace_batch_put(batch, keyspace, terrace_text("t"), terrace_text("1")));
    OK(terrace_write_ticket(db, batch, &ticket));
    EXPECT(has(keyspace, NULL, "t", "1"));
    OK(terrace_ticket_on_durable(ticket, durable, &calls));
    OK(terrace_ticket_wait(ticket));
    EXPECT(terrace_ticket_is_durable(ticket));
    terrace_ticket_free(ticket);
    OK(terrace_sync_ticket(db, &ticket));
    OK(terrace_ticket_on_durable(ticket, durable, &calls));
    terrace_ticket_free(ticket);
    pthread_mutex_lock(&mutex);
    while (calls < 2) {
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    OK(terrace_sync(db));
    terrace_batch_free(batch);
}

static void reads(terrace_db *db, terrace_keyspace *keyspace) {
    terrace_snapshot *snapshot;
    put(keyspace, "s", "old");
    OK(terrace_snapshot_create(db, &snapshot));
    put(keyspace, "s", "new");
    OK(terrace_delete(keyspace, terrace_text("t"), TERRACE_DURABILITY_BUFFERED));
    EXPECT(terrace_snapshot_seq(snapshot) > 0);
    EXPECT(has(keyspace, snapshot, "s", "old") && has(keyspace, snapshot, "t", "1") && has(keyspace, NULL, "s", "new"));
    bool found;
    OK(terrace_contains(keyspace, NULL, terrace_text("t"), &found));
    EXPECT(!found);
    OK(terrace_contains(keyspace, snapshot, terrace_text("t"), &found));
    EXPECT(found);

    const terrace_slice keys[] = {terrace_text("s"), terrace_text("none"), terrace_text("a")};
    terrace_value values[3];
    OK(terrace_multi_get(keyspace, NULL, keys, 3, values));
    EXPECT(values[0].len == 3 && values[1].data == NULL && values[2].len == 1);
    /* A value stays when the key gets another one, and when it is moved. */
    put(keyspace, "s", "newer");
    OK(terrace_flush(db));
    terrace_value moved = values[0];
    EXPECT(memcmp(moved.data, "new", 3) == 0);
    terrace_value_free(&moved);
    terrace_value_free(&values[1]);
    terrace_value_free(&values[2]);
    terrace_snapshot_free(snapshot);
}

static void cursors(terrace_db *db) {
    terrace_keyspace *numbers;
    OK(terrace_keyspace_open(db, "numbers", NULL, &numbers));
    char key[16];
    for (int at = 0; at < 100; at++) {
        snprintf(key, sizeof(key), "%02d", at);
        put(numbers, key, key);
    }
    terrace_cursor *cursor;
    terrace_entry entry;
    terrace_range range = terrace_between(terrace_text("10"), terrace_text("20"));
    range.to_included = true;
    OK(terrace_cursor_open(numbers, NULL, range, &cursor));
    int entries = 0;
    for (OK(terrace_cursor_next(cursor, &entry)); entry.key.data != NULL; OK(terrace_cursor_next(cursor, &entry))) {
        entries++;
    }
    EXPECT(entries == 11);
    OK(terrace_cursor_prev(cursor, &entry));
    EXPECT(is(entry.key, "20") && is(entry.value, "20"));
    OK(terrace_cursor_first(cursor, &entry));
    EXPECT(is(entry.key, "10"));
    OK(terrace_cursor_last(cursor, &entry));
    OK(terrace_cursor_seek(cursor, terrace_text("15a"), &entry));
    EXPECT(is(entry.key, "16"));
    OK(terrace_cursor_seek_for_prev(cursor, terrace_text("15a"), &entry));
    EXPECT(is(entry.key, "15"));
    OK(terrace_cursor_seek(cursor, entry.key, &entry));
    EXPECT(is(entry.key, "15"));
    OK(terrace_cursor_seek(cursor, terrace_text("3"), &entry));
    EXPECT(entry.key.data == NULL);
    terrace_cursor_free(cursor);

    OK(terrace_delete_range(numbers, terrace_between(terrace_text("2"), terrace_text("9")), TERRACE_DURABILITY_DEFAULT));
    OK(terrace_cursor_open_prefix(numbers, NULL, terrace_text("9"), &cursor));
    OK(terrace_cursor_first(cursor, &entry));
    EXPECT(is(entry.key, "90"));
    OK(terrace_cursor_prev(cursor, &entry));
    EXPECT(entry.key.data == NULL);
    terrace_cursor_free(cursor);
    terrace_keyspace_free(numbers);
}

static void transactions(terrace_db *db, terrace_keyspace *keyspace) {
    terrace_transaction *first, *second;
    terrace_value value;
    failed(terrace_transaction_begin(db, 5, &first), TERRACE_ERROR_KIND_INVALID_INPUT, "isolation is 5");
    put(keyspace, "stock", "1");
    OK(terrace_transaction_begin(db, TERRACE_ISOLATION_SNAPSHOT, &first));
    OK(terrace_transaction_begin(db, TERRACE_ISOLATION_SERIALIZABLE, &second));
    OK(terrace_transaction_put(first, keyspace, terrace_text("stock"), terrace_text("0")));
    OK(terrace_transaction_get(first, keyspace, terrace_text("stock"), &value));
    EXPECT(value.len == 1 && value.data[0] == '0');
    terrace_value_free(&value);
    OK(terrace_transaction_get(second, keyspace, terrace_text("stock"), &value));
    EXPECT(value.data[0] == '1');
    terrace_value_free(&value);
    OK(terrace_transaction_put(second, keyspace, terrace_text("order"), terrace_text("x")));
    terrace_ticket *ticket;
    OK(terrace_transaction_commit_ticket(first, &ticket));
    OK(terrace_ticket_wait(ticket));
    terrace_ticket_free(ticket);
    failed(terrace_transaction_commit(second, 0), TERRACE_ERROR_KIND_CONFLICT, "\"stock\"");

    terrace_transaction_iterator *iterator;
    terrace_entry entry;
    OK(terrace_transaction_begin(db, TERRACE_ISOLATION_SNAPSHOT, &first));
    OK(terrace_transaction_put(first, keyspace, terrace_text("x1"), terrace_text("1")));
    OK(terrace_transaction_put(first, keyspace, terrace_text("x2"), terrace_text("2")));
    OK(terrace_transaction_put(first, keyspace, terrace_text("x3"), terrace_text("3")));
    OK(terrace_transaction_delete(first, keyspace, terrace_text("x2")));
    OK(terrace_transaction_iter(first, keyspace, terrace_between(terrace_text("x"), terrace_text("y")), &iterator));
    OK(terrace_transaction_delete_range(first, keyspace, terrace_between(terrace_text("x3"), terrace_text("y"))));
    OK(terrace_transaction_iterator_next(iterator, &entry));
    EXPECT(is(entry.key, "x1") && is(entry.value, "1"));
    OK(terrace_transaction_iterator_next_back(iterator, &entry));
    EXPECT(is(entry.key, "x3"));
    OK(terrace_transaction_iterator_next(iterator, &entry));
    EXPECT(entry.key.data == NULL);
    terrace_transaction_iterator_free(iterator);
    OK(terrace_transaction_commit(first, TERRACE_DURABILITY_SYNCED));
    EXPECT(has(keyspace, NULL, "x1", "1") && has(keyspace, NULL, "x3", NULL));
    OK(terrace_transaction_begin(db, TERRACE_ISOLATION_SNAPSHOT, &first));
    OK(terrace_transaction_put(first, keyspace, terrace_text("never"), terrace_text("")));
    terrace_transaction_free(first);
    EXPECT(has(keyspace, NULL, "never", NULL));
}

static void ingests(terrace_db *db) {
    terrace_keyspace *words;
    terrace_ingest *ingest;
    OK(terrace_keyspace_open(db, "words", NULL, &words));
    put(words, "b", "old");
    OK(terrace_ingest_begin(words, &ingest));
    OK(terrace_ingest_put(ingest, terrace_text("a"), terrace_text("new")));
    OK(terrace_ingest_delete(ingest, terrace_text("b")));
    failed(terrace_ingest_put(ingest, terrace_text("a"), terrace_text("")), TERRACE_ERROR_KIND_INVALID_INPUT, "");
    EXPECT(has(words, NULL, "a", NULL));
    OK(terrace_ingest_finish(ingest));
    EXPECT(has(words, NULL, "a", "new") && has(words, NULL, "b", NULL));
    OK(terrace_ingest_begin(words, &ingest));
    terrace_ingest_free(ingest);
    terrace_keyspace_free(words);
}

static void statistics(terrace_db *db, const char *path) {
    terrace_stats *stats;
    terrace_counters counters;
    terrace_keyspace_stats keyspace;
    terrace_level_stats level;
    terrace_device_stats device;
    terrace_stall stall;
    OK(terrace_compact(db));
    OK(terrace_wait_idle(db));
    OK(terrace_stats_read(db, &stats));
    OK(terrace_stats_counters(stats, &counters));
    EXPECT(counters.user_ops_written > 100 && counters.written.wal > 0 && counters.flushes > 0);
    EXPECT(counters.write_amplification > 1.0 && counters.last_seq > 0);
    EXPECT(terrace_stats_keyspaces(stats) == 4);
    OK(terrace_stats_keyspace(stats, 0, &keyspace));
    EXPECT(strcmp(keyspace.name, "default") == 0 && keyspace.levels > 0);
    OK(terrace_stats_level(stats, 0, keyspace.levels - 1, &level));
    EXPECT(level.entries > 0 && level.bytes > 0);
    failed(terrace_stats_keyspace(stats, 9, &keyspace), TERRACE_ERROR_KIND_INVALID_INPUT, "there is no keyspace 9");
    EXPECT(terrace_stats_devices(stats) == 1);
    OK(terrace_stats_device(stats, 0, &device));
    EXPECT(strstr(device.dir, path) != NULL || device.dir[0] == '/');
    for (size_t at = 0; at < terrace_stats_stalls(stats); at++) {
        OK(terrace_stats_stall(stats, at, &stall));
        EXPECT(stall.reason[0] != '\0');
    }
    terrace_stats_free(stats);
    char *value;
    OK(terrace_property(db, "terrace.num-snapshots", &value));
    EXPECT(strcmp(value, "0") == 0);
    terrace_free(value);
    OK(terrace_property(db, "mood", &value));
    EXPECT(value == NULL);
}

static void count_problems(void *state, const terrace_error *problem) {
    EXPECT(terrace_error_message(problem)[0] != '\0');
    EXPECT(terrace_error_file(problem) != NULL);
    ++*(int *)state;
}

static void upkeep(terrace_db *db, const char *path) {
    terrace_verify_report verified;
    int problems = 0;
    OK(terrace_verify(db, count_problems, &problems, &verified));
    EXPECT(verified.entries > 0 && verified.problems == 0 && problems == 0);

    char copy[4096], target[4096], current[4200];
    snprintf(copy, sizeof(copy), "%s.copy", path);
    snprintf(target, sizeof(target), "%s.repaired", path);
    OK(terrace_checkpoint(db, copy));
    failed(terrace_checkpoint(db, copy), TERRACE_ERROR_KIND_INVALID_INPUT, "");
    snprintf(current, sizeof(current), "%s/CURRENT", copy);
    EXPECT(unlink(current) == 0);
    terrace_db *repaired;
    terrace_error *error = terrace_open(copy, NULL, &repaired);
    EXPECT(terrace_error_file(error) != NULL && terrace_error_offset(error) >= -1);
    failed(error, TERRACE_ERROR_KIND_CORRUPTION, "");
    terrace_repair_report report;
    OK(terrace_repair(copy, target, count_problems, &problems, &report));
    EXPECT(report.entries > 0 && report.lost == (uint64_t)problems);
    OK(terrace_open(target, NULL, &repaired));
    terrace_keyspace *keyspace;
    OK(terrace_keyspace_open(repaired, "default", NULL, &keyspace));
    EXPECT(has(keyspace, NULL, "x1", "1"));
    terrace_keyspace_free(keyspace);

    char device[4096];
    snprintf(device, sizeof(device), "%s.device", path);
    OK(terrace_add_device(repaired, device));
    OK(terrace_remove_device(repaired, device));
    OK(terrace_close(repaired));
}

int main(int count, char **arguments) {
    EXPECT(count == 2);
    const char *path = arguments[1];
    EXPECT(strchr(terrace_version(), '.') != NULL);
    openings(path);
    terrace_db *db;
    terrace_keyspace *keyspace;
    OK(terrace_open(path, NULL, &db));
    OK(terrace_keyspace_open(db, "default", NULL, &keyspace));
    nulls(db, keyspace);
    keyspaces(db);
    batches(db, keyspace);
    tickets(db, keyspace);
    reads(db, keyspace);
    cursors(db);
    transactions(db, keyspace);
    ingests(db);
    statistics(db, path);
    upkeep(db, path);
    terrace_keyspace_free(keyspace);
    OK(terrace_close(db));
    puts("terrace.c: passed");
    return 0;
}
