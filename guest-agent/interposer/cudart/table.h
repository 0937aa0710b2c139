/*
 * A hash table from addresses to entries: look-ups take no lock, since every launch makes one; changes do. Entries
 * are never freed and a table that was outgrown is kept (at most as much again), so a reader never sees freed memory.
 */
#ifndef HWS_CUDART_TABLE_H
#define HWS_CUDART_TABLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hws_table hws_table_t;

/* The entry at a key, or NULL. Any thread, also while another inserts. */
void *hws_table_find(hws_table_t *const volatile *table, const void *key);

/*
 * Puts an entry at a key, in place of what was there; entry may be NULL, which removes. Callers serialise.
 * false when memory is exhausted.
 */
bool hws_table_put(hws_table_t *volatile *table, const void *key, void *entry);

#endif
