/*
 * A hash table from addresses to entries. Look-ups take no lock, because every launch makes one; changes do. Entries
 * are never freed, and an outgrown table is kept (at most the same size again), so a reader never sees freed memory.
 */
#ifndef HWS_CUDART_TABLE_H
#define HWS_CUDART_TABLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hws_table hws_table_t;

/* The entry of a key, or NULL. Any thread, also during an insertion. */
void *hws_table_find(hws_table_t *const volatile *table, const void *key);

/* Sets the entry of a key; NULL removes it. Callers serialise. Returns false when memory is exhausted. */
bool hws_table_put(hws_table_t *volatile *table, const void *key, void *entry);

#endif
