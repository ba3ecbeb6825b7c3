/* LevelDB's interface: writes, a batch, a snapshot, a scan.
 *
 *   cc leveldb.c $(pkg-config --cflags --libs terrace) && ./a.out people.db
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leveldb/c.h"

static void check(const char *what, char *error) {
    if (error != NULL) {
        fprintf(stderr, "%s: %s\n", what, error);
        leveldb_free(error);
        exit(1);
    }
}

static void put(leveldb_t *db, const leveldb_writeoptions_t *options, const char *key, const char *value) {
    char *error = NULL;
    leveldb_put(db, options, key, strlen(key), value, strlen(value), &error);
    check("put", error);
}

int main(int count, char **arguments) {
    char *error = NULL;
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_t *db = leveldb_open(options, count > 1 ? arguments[1] : "people.db", &error);
    check("open", error);

    leveldb_writeoptions_t *buffered = leveldb_writeoptions_create();
    leveldb_writeoptions_t *synced = leveldb_writeoptions_create();
    leveldb_writeoptions_set_sync(synced, 1);
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    put(db, buffered, "ada", "Lovelace");
    put(db, buffered, "alan", "Kay");
    put(db, buffered, "grace", "Hopper");

    /* A batch is all or nothing, and this one survives a power cut when the call returns. */
    const leveldb_snapshot_t *before = leveldb_create_snapshot(db);
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "alan", 4, "Turing", 6);
    leveldb_writebatch_delete(batch, "grace", 5);
    leveldb_write(db, synced, batch, &error);
    check("write", error);
    leveldb_writebatch_destroy(batch);

    size_t length;
    leveldb_readoptions_set_snapshot(reading, before);
    char *then = leveldb_get(db, reading, "alan", 4, &length, &error);
    check("get", error);
    printf("before: alan %.*s\n", (int)length, then);
    leveldb_free(then);
    leveldb_readoptions_set_snapshot(reading, NULL);
    leveldb_release_snapshot(db, before);

    leveldb_iterator_t *iterator = leveldb_create_iterator(db, reading);
    for (leveldb_iter_seek_to_first(iterator); leveldb_iter_valid(iterator); leveldb_iter_next(iterator)) {
        size_t key_length, value_length;
        const char *key = leveldb_iter_key(iterator, &key_length);
        const char *value = leveldb_iter_value(iterator, &value_length);
        printf("now: %.*s %.*s\n", (int)key_length, key, (int)value_length, value);
    }
    leveldb_iter_get_error(iterator, &error);
    check("scan", error);
    leveldb_iter_destroy(iterator);

    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(synced);
    leveldb_writeoptions_destroy(buffered);
    leveldb_close(db);
    leveldb_options_destroy(options);
    return 0;
}
