/* LevelDB's interface in C: errors, ownership, edges. */

#include "../expect.h"
#include "leveldb/c.h"

static int destroyed = 0;

static void destroy(void *state) {
    EXPECT(state == &destroyed);
    destroyed++;
}

static int compare(void *state, const char *a, size_t alen, const char *b, size_t blen) {
    (void)state, (void)a, (void)alen, (void)b, (void)blen;
    EXPECT(!"the comparator is never called");
    return 0;
}

static const char *own_name(void *state) {
    (void)state;
    return "test.Backwards";
}

static const char *bytewise_name(void *state) {
    (void)state;
    return "leveldb.BytewiseComparator";
}

/* Takes an error that must be there, and must have a text in it. */
static void failed(char **error, const char *text) {
    EXPECT(*error != NULL);
    if (strstr(*error, text) == NULL) {
        fprintf(stderr, "no %s in: %s\n", text, *error);
        exit(1);
    }
    leveldb_free(*error);
    *error = NULL;
}

static void openings(leveldb_options_t *options, const char *path) {
    char *error = NULL;
    EXPECT(leveldb_open(options, path, &error) == NULL);
    failed(&error, "does not exist");
    leveldb_options_set_create_if_missing(options, 1);

    /* An error takes the place of an earlier one, which is released. */
    leveldb_comparator_t *backwards = leveldb_comparator_create(&destroyed, destroy, compare, own_name);
    leveldb_options_set_comparator(options, backwards);
    EXPECT(leveldb_open(options, path, &error) == NULL);
    EXPECT(leveldb_open(options, path, &error) == NULL);
    failed(&error, "Invalid argument: the comparator \"test.Backwards\" is not taken");
    leveldb_comparator_t *bytewise = leveldb_comparator_create(&destroyed, destroy, compare, bytewise_name);
    leveldb_options_set_comparator(options, bytewise);

    leveldb_t *db = leveldb_open(options, path, &error);
    EXPECT(db != NULL && error == NULL);
    EXPECT(leveldb_open(options, path, &error) == NULL);
    failed(&error, "IO error: ");
    leveldb_destroy_db(options, path, &error);
    failed(&error, "is open in another handle");
    leveldb_repair_db(options, path, &error);
    failed(&error, "is open in another handle");
    leveldb_close(db);

    leveldb_options_set_error_if_exists(options, 1);
    EXPECT(leveldb_open(options, path, &error) == NULL);
    failed(&error, "exists");
    leveldb_options_set_error_if_exists(options, 0);
    leveldb_comparator_destroy(backwards);
    leveldb_comparator_destroy(bytewise);
    EXPECT(destroyed == 2);
}

static void limits(leveldb_t *db, const leveldb_writeoptions_t *writing, const leveldb_readoptions_t *reading) {
    char *error = NULL;
    char *long_key = calloc(70000, 1);
    leveldb_put(db, writing, long_key, 70000, "", 0, &error);
    failed(&error, "a key of 70000 bytes is longer than 65535");
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "good", 4, "", 0);
    leveldb_writebatch_put(batch, long_key, 70000, "", 0);
    leveldb_write(db, writing, batch, &error);
    failed(&error, "Invalid argument: ");
    leveldb_writebatch_destroy(batch);
    free(long_key);

    size_t length = 7;
    EXPECT(leveldb_get(db, reading, "good", 4, &length, &error) == NULL && error == NULL && length == 0);
    /* The empty key and the empty value are as any others; a value that is empty is not NULL. */
    leveldb_put(db, writing, NULL, 0, NULL, 0, &error);
    EXPECT(error == NULL);
    char *value = leveldb_get(db, reading, "", 0, &length, &error);
    EXPECT(value != NULL && length == 0);
    leveldb_free(value);
    leveldb_delete(db, writing, "", 0, &error);
    EXPECT(error == NULL && leveldb_get(db, reading, "", 0, &length, &error) == NULL);
}

static void iterators(leveldb_t *db, const leveldb_writeoptions_t *writing, leveldb_readoptions_t *reading) {
    char *error = NULL;
    char key[16];
    for (int at = 0; at < 1000; at++) {
        snprintf(key, sizeof(key), "%04d", at);
        leveldb_put(db, writing, key, 4, key, 4, &error);
        EXPECT(error == NULL);
    }
    leveldb_iterator_t *iterator = leveldb_create_iterator(db, reading);
    size_t length;
    EXPECT(!leveldb_iter_valid(iterator) && leveldb_iter_key(iterator, &length) == NULL && length == 0);
    leveldb_iter_next(iterator);
    EXPECT(!leveldb_iter_valid(iterator));
    /* A later write does not change what it sees. */
    leveldb_put(db, writing, "0500a", 5, "", 0, &error);
    leveldb_iter_seek(iterator, "0500a", 5);
    EXPECT(memcmp(leveldb_iter_key(iterator, &length), "0501", 4) == 0 && length == 4);
    leveldb_iter_prev(iterator);
    EXPECT(memcmp(leveldb_iter_value(iterator, &length), "0500", 4) == 0 && length == 4);
    /* The key that it lends may be where it seeks. */
    const char *lent = leveldb_iter_key(iterator, &length);
    leveldb_iter_seek(iterator, lent, length);
    EXPECT(memcmp(leveldb_iter_key(iterator, &length), "0500", 4) == 0);
    int steps = 0;
    for (leveldb_iter_seek_to_last(iterator); leveldb_iter_valid(iterator); leveldb_iter_prev(iterator)) {
        steps++;
    }
    EXPECT(steps == 1000);
    leveldb_iter_prev(iterator);
    EXPECT(!leveldb_iter_valid(iterator));
    leveldb_iter_get_error(iterator, &error);
    EXPECT(error == NULL);
    leveldb_iter_destroy(iterator);
}

static void put(void *state, const char *k, size_t klen, const char *v, size_t vlen) {
    char *log = state;
    sprintf(log + strlen(log), "+%.*s=%.*s", (int)klen, k, (int)vlen, v);
}

static void deleted(void *state, const char *k, size_t klen) {
    char *log = state;
    sprintf(log + strlen(log), "-%.*s", (int)klen, k);
}

static void batches(void) {
    char log[100] = "";
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "a", 1, "1", 1);
    leveldb_writebatch_delete(batch, "b", 1);
    leveldb_writebatch_append(batch, batch);
    leveldb_writebatch_iterate(batch, log, put, deleted);
    EXPECT(strcmp(log, "+a=1-b+a=1-b") == 0);
    leveldb_writebatch_clear(batch);
    log[0] = '\0';
    leveldb_writebatch_iterate(batch, log, put, deleted);
    EXPECT(log[0] == '\0');
    leveldb_writebatch_destroy(batch);
}

static void properties(leveldb_t *db) {
    static const char *const known[] = {"leveldb.stats", "leveldb.sstables", "leveldb.num-files-at-level0",
                                        "leveldb.num-files-at-level6", "leveldb.approximate-memory-usage"};
    for (size_t at = 0; at < sizeof(known) / sizeof(known[0]); at++) {
        char *value = leveldb_property_value(db, known[at]);
        EXPECT(value != NULL && value[0] != '\0');
        leveldb_free(value);
    }
    EXPECT(leveldb_property_value(db, "leveldb.num-files-at-level9") == NULL);
    EXPECT(leveldb_property_value(db, "mood") == NULL);

    const char *starts[] = {"0000", "0500"}, *limits[] = {"0500", "1"};
    const size_t start_lengths[] = {4, 4}, limit_lengths[] = {4, 1};
    uint64_t sizes[] = {7, 7};
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    leveldb_compact_range(db, "0000", 4, "0001", 4);
    leveldb_approximate_sizes(db, 2, starts, start_lengths, limits, limit_lengths, sizes);
    EXPECT(sizes[0] > 0 && sizes[0] < 1000000 && sizes[1] > 0);
    leveldb_approximate_sizes(db, 1, limits, limit_lengths, starts, start_lengths, sizes);
    EXPECT(sizes[0] == 0);
}

int main(int count, char **arguments) {
    EXPECT(count == 2);
    char *error = NULL;
    const char *path = arguments[1];
    leveldb_options_t *options = leveldb_options_create();
    openings(options, path);

    leveldb_cache_t *cache = leveldb_cache_create_lru(1 << 20);
    leveldb_filterpolicy_t *policy = leveldb_filterpolicy_create(&destroyed, destroy, NULL, NULL, NULL);
    leveldb_options_set_cache(options, cache);
    leveldb_options_set_filter_policy(options, policy);
    leveldb_t *db = leveldb_open(options, path, &error);
    EXPECT(db != NULL);
    leveldb_cache_destroy(cache);
    leveldb_filterpolicy_destroy(policy);
    EXPECT(destroyed == 3);

    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    limits(db, writing, reading);
    iterators(db, writing, reading);
    batches();
    properties(db);

    /* What was forgotten is refused, not a crash. */
    leveldb_iterator_t *forgotten = leveldb_create_iterator(db, reading);
    const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
    leveldb_close(db);
    leveldb_iter_destroy(forgotten);
    leveldb_release_snapshot(NULL, snapshot);

    leveldb_repair_db(options, path, &error);
    EXPECT(error == NULL);
    db = leveldb_open(options, path, &error);
    EXPECT(db != NULL);
    size_t length;
    char *value = leveldb_get(db, reading, "0042", 4, &length, &error);
    EXPECT(value != NULL && length == 4 && memcmp(value, "0042", 4) == 0);
    leveldb_free(value);
    leveldb_close(db);
    leveldb_destroy_db(options, path, &error);
    leveldb_destroy_db(options, path, &error);
    EXPECT(error == NULL);
    leveldb_options_set_create_if_missing(options, 0);
    EXPECT(leveldb_open(options, path, &error) == NULL);
    failed(&error, "does not exist");

    leveldb_env_t *env = leveldb_create_default_env();
    char *directory = leveldb_env_get_test_directory(env);
    EXPECT(directory != NULL && directory[0] == '/');
    leveldb_free(directory);
    leveldb_env_destroy(env);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    leveldb_options_destroy(options);
    puts("leveldb.c: passed");
    return 0;
}
