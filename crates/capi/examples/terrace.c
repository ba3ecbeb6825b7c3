/* Terrace's own interface: keyspaces, a batch over two of them, a ticket, a transaction, a cursor, a checkpoint.
 *
 *   cc terrace.c $(pkg-config --cflags --libs terrace) && ./a.out people.db
 */

#include <stdio.h>
#include <stdlib.h>

#include "terrace.h"

static void check(terrace_error *error) {
    if (error != NULL) {
        fprintf(stderr, "error %d: %s\n", (int)terrace_error_get_kind(error), terrace_error_message(error));
        terrace_error_free(error);
        exit(1);
    }
}

/* Counts a visit, which another thread may do at the same time. */
static void visit(terrace_db *db, terrace_keyspace *counters) {
    for (;;) {
        terrace_transaction *transaction;
        terrace_value old;
        char text[32] = "0";
        check(terrace_transaction_begin(db, TERRACE_ISOLATION_SNAPSHOT, &transaction));
        check(terrace_transaction_get(transaction, counters, terrace_text("visits"), &old));
        if (old.data != NULL) {
            snprintf(text, sizeof(text), "%.*s", (int)old.len, old.data);
        }
        snprintf(text, sizeof(text), "%ld", strtol(text, NULL, 10) + 1);
        terrace_value_free(&old);
        check(terrace_transaction_put(transaction, counters, terrace_text("visits"), terrace_text(text)));
        terrace_error *error = terrace_transaction_commit(transaction, TERRACE_DURABILITY_DEFAULT);
        if (error == NULL || terrace_error_get_kind(error) != TERRACE_ERROR_KIND_CONFLICT) {
            check(error);
            return;
        }
        terrace_error_free(error);
    }
}

int main(int count, char **arguments) {
    const char *path = count > 1 ? arguments[1] : "people.db";
    terrace_db *db;
    terrace_keyspace *people, *by_year;
    check(terrace_open(path, NULL, &db));
    check(terrace_keyspace_open(db, "default", NULL, &people));
    check(terrace_keyspace_open(db, "by-year", NULL, &by_year));

    /* All or nothing, over both. The ticket tells when it has become durable; meanwhile there is other work to do. */
    terrace_batch *batch = terrace_batch_create();
    terrace_ticket *ticket;
    check(terrace_batch_put(batch, people, terrace_text("ada"), terrace_text("Lovelace")));
    check(terrace_batch_put(batch, people, terrace_text("alan"), terrace_text("Turing")));
    check(terrace_batch_put(batch, by_year, terrace_text("1815"), terrace_text("ada")));
    check(terrace_batch_put(batch, by_year, terrace_text("1912"), terrace_text("alan")));
    check(terrace_write_ticket(db, batch, &ticket));
    terrace_batch_free(batch);
    visit(db, people);
    check(terrace_ticket_wait(ticket));
    terrace_ticket_free(ticket);

    /* From the last year of the nineteenth century back. An entry is the cursor's until that moves. */
    terrace_cursor *cursor;
    terrace_entry entry;
    check(terrace_cursor_open(by_year, NULL, terrace_between(terrace_text("1801"), terrace_text("1901")), &cursor));
    for (check(terrace_cursor_last(cursor, &entry)); entry.key.data != NULL; check(terrace_cursor_prev(cursor, &entry))) {
        printf("%.*s: %.*s\n", (int)entry.key.len, entry.key.data, (int)entry.value.len, entry.value.data);
    }
    terrace_cursor_free(cursor);

    terrace_value value;
    check(terrace_get(people, NULL, terrace_text("ada"), &value));
    printf("ada %.*s\n", (int)value.len, value.data);
    terrace_value_free(&value);

    terrace_stats *stats;
    terrace_counters counters;
    check(terrace_stats_read(db, &stats));
    check(terrace_stats_counters(stats, &counters));
    printf("%llu operations written, %zu keyspaces\n", (unsigned long long)counters.user_ops_written,
           terrace_stats_keyspaces(stats));
    terrace_stats_free(stats);

    if (count > 2) {
        check(terrace_checkpoint(db, arguments[2]));
    }
    terrace_keyspace_free(by_year);
    terrace_keyspace_free(people);
    check(terrace_close(db));
    return 0;
}
