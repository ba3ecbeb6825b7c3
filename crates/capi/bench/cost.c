/* What a put, a get and a step cost through C: the same work as examples/cost.rs does in Rust.
 *
 *   cost terrace|leveldb DIR RECORDS LOOKUPS SCANS      prints nanoseconds: "put N", "get N", "step N"
 */

#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdint.h>
#include <time.h>

#include "../tests/expect.h"
#include "leveldb/c.h"
#include "terrace.h"

enum { KEY_BYTES = 16, VALUE_BYTES = 100, MEMTABLE_BYTES = 64 << 20 };
static const uint64_t MEMORY_BYTES = (1 << 30) + 2 * (uint64_t)MEMTABLE_BYTES;

static uint64_t nanos(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The next of a fixed sequence of numbers (xorshift). */
static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void digits(char *key, uint64_t number) {
    for (int at = KEY_BYTES - 1; at >= 0; at--, number /= 10) {
        key[at] = (char)('0' + number % 10);
    }
}

/* Record i has the key i times a number that shares no factor with the count, so keys come in no order, each once. */
static uint64_t number(uint64_t record, uint64_t records) { return record * 7368787 % records; }

static void told(const char *what, uint64_t started, uint64_t count) {
    printf("%s %.1f\n", what, (double)(nanos() - started) / (double)count);
}

static void ok(terrace_error *error) {
    if (error != NULL) {
        fprintf(stderr, "%s\n", terrace_error_message(error));
        exit(1);
    }
}

static void by_terrace(const char *dir, uint64_t records, uint64_t lookups, uint64_t scans) {
    char key[KEY_BYTES], value[VALUE_BYTES] = {0};
    uint64_t state = 88172645463325252, sum = 0, expected = 0, steps = 0;
    terrace_db *db;
    terrace_keyspace *keyspace;
    terrace_options *options = terrace_options_create();
    terrace_options_set_memory_bytes(options, MEMORY_BYTES);
    terrace_options_set_memtable_bytes(options, MEMTABLE_BYTES);
    ok(terrace_open(dir, options, &db));
    ok(terrace_keyspace_open(db, "default", NULL, &keyspace));

    uint64_t started = nanos();
    for (uint64_t record = 0; record < records; record++) {
        digits(key, number(record, records));
        memcpy(value, key, KEY_BYTES);
        ok(terrace_put(keyspace, terrace_bytes(key, KEY_BYTES), terrace_bytes(value, VALUE_BYTES),
                       TERRACE_DURABILITY_BUFFERED));
    }
    told("put", started, records);

    ok(terrace_compact(db));
    ok(terrace_wait_idle(db));
    /* The cache is filled before the clock runs. */
    for (int pass = 0; pass < 2; pass++) {
        started = nanos();
        for (uint64_t lookup = 0; lookup < lookups; lookup++) {
            terrace_value found;
            digits(key, next(&state) % records);
            ok(terrace_get(keyspace, NULL, terrace_bytes(key, KEY_BYTES), &found));
            expected += (uint64_t)key[KEY_BYTES - 1];
            sum += (uint64_t)found.data[KEY_BYTES - 1];
            terrace_value_free(&found);
        }
    }
    told("get", started, lookups);
    EXPECT(sum == expected);

    started = nanos();
    for (uint64_t scan = 0; scan < scans; scan++) {
        terrace_cursor *cursor;
        terrace_entry entry;
        ok(terrace_cursor_open(keyspace, NULL, terrace_all(), &cursor));
        for (ok(terrace_cursor_next(cursor, &entry)); entry.key.data != NULL; ok(terrace_cursor_next(cursor, &entry))) {
            steps++;
            sum += (uint64_t)entry.value.data[KEY_BYTES - 1];
        }
        terrace_cursor_free(cursor);
    }
    told("step", started, steps);
    EXPECT(steps == scans * records);
    terrace_keyspace_free(keyspace);
    ok(terrace_close(db));
    terrace_options_free(options);
}

static void fine(char *error) {
    if (error != NULL) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

static void by_leveldb(const char *dir, uint64_t records, uint64_t lookups, uint64_t scans) {
    char key[KEY_BYTES], value[VALUE_BYTES] = {0}, *error = NULL;
    uint64_t state = 88172645463325252, sum = 0, expected = 0, steps = 0;
    size_t length;
    leveldb_options_t *options = leveldb_options_create();
    leveldb_cache_t *cache = leveldb_cache_create_lru(1 << 30);
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_cache(options, cache);
    leveldb_options_set_max_open_files(options, 0);
    leveldb_options_set_write_buffer_size(options, MEMTABLE_BYTES);
    leveldb_options_set_compression(options, leveldb_no_compression);
    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    leveldb_t *db = leveldb_open(options, dir, &error);
    fine(error);

    uint64_t started = nanos();
    for (uint64_t record = 0; record < records; record++) {
        digits(key, number(record, records));
        memcpy(value, key, KEY_BYTES);
        leveldb_put(db, writing, key, KEY_BYTES, value, VALUE_BYTES, &error);
        fine(error);
    }
    told("put", started, records);

    leveldb_compact_range(db, NULL, 0, NULL, 0);
    for (int pass = 0; pass < 2; pass++) {
        started = nanos();
        for (uint64_t lookup = 0; lookup < lookups; lookup++) {
            digits(key, next(&state) % records);
            char *found = leveldb_get(db, reading, key, KEY_BYTES, &length, &error);
            fine(error);
            expected += (uint64_t)key[KEY_BYTES - 1];
            sum += (uint64_t)found[KEY_BYTES - 1];
            leveldb_free(found);
        }
    }
    told("get", started, lookups);
    EXPECT(sum == expected);

    started = nanos();
    for (uint64_t scan = 0; scan < scans; scan++) {
        leveldb_iterator_t *iterator = leveldb_create_iterator(db, reading);
        for (leveldb_iter_seek_to_first(iterator); leveldb_iter_valid(iterator); leveldb_iter_next(iterator)) {
            steps++;
            sum += (uint64_t)leveldb_iter_value(iterator, &length)[KEY_BYTES - 1];
        }
        leveldb_iter_destroy(iterator);
    }
    told("step", started, steps);
    EXPECT(steps == scans * records);
    leveldb_close(db);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    leveldb_options_destroy(options);
    leveldb_cache_destroy(cache);
}

int main(int count, char **arguments) {
    EXPECT(count == 6);
    const uint64_t records = strtoull(arguments[3], NULL, 10), lookups = strtoull(arguments[4], NULL, 10);
    const uint64_t scans = strtoull(arguments[5], NULL, 10);
    EXPECT(records > 0 && lookups > 0 && scans > 0 && records % 7368787 != 0);
    if (strcmp(arguments[1], "leveldb") == 0) {
        by_leveldb(arguments[2], records, lookups, scans);
    } else {
        by_terrace(arguments[2], records, lookups, scans);
    }
    return 0;
}
