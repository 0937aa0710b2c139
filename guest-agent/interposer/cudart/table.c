#include "table.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    _Atomic(const void *) key; /* NULL: free; never changes once set */
    _Atomic(void *) entry;
} hws_slot_t;

struct hws_table {
    size_t mask;
    size_t used; /* slots with a key */
    hws_slot_t slots[];
};

static size_t hws_table_hash(const void *key) {
    /* Function addresses differ in the middle bits; the multiplier is 2^64 / golden ratio. */
    return (size_t) (((uint64_t) (uintptr_t) key * UINT64_C(0x9E3779B97F4A7C15)) >> 24);
}

/* The key's slot, or the free slot for it. A table is never full. */
static hws_slot_t *hws_table_slot(hws_table_t *table, const void *key) {
    for (size_t i = hws_table_hash(key);; i++) {
        hws_slot_t *slot = &table->slots[i & table->mask];
        /* pairs with the release store in hws_table_put() */
        const void *found = atomic_load_explicit(&slot->key, memory_order_acquire);
        if (found == key || found == NULL) {
            return slot;
        }
    }
}

static hws_table_t *hws_table_load(hws_table_t *const volatile *table) {
    /* pairs with the release store in hws_table_grow() */
    return __atomic_load_n(table, __ATOMIC_ACQUIRE);
}

void *hws_table_find(hws_table_t *const volatile *table, const void *key) {
    hws_table_t *current = hws_table_load(table);
    if (current == NULL || key == NULL) {
        return NULL;
    }
    hws_slot_t *slot = hws_table_slot(current, key);
    return atomic_load_explicit(&slot->key, memory_order_relaxed) == NULL
        ? NULL
        : atomic_load_explicit(&slot->entry, memory_order_acquire);
}

static bool hws_table_grow(hws_table_t *volatile *table) {
    hws_table_t *old = hws_table_load(table);
    size_t capacity = old == NULL ? 256 : 2 * (old->mask + 1);
    hws_table_t *grown = calloc(1, sizeof *grown + capacity * sizeof(hws_slot_t));
    if (grown == NULL) {
        return false;
    }
    grown->mask = capacity - 1;
    for (size_t i = 0; old != NULL && i <= old->mask; i++) {
        const void *key = atomic_load(&old->slots[i].key);
        void *entry = atomic_load(&old->slots[i].entry);
        if (key != NULL && entry != NULL) {
            hws_slot_t *slot = hws_table_slot(grown, key);
            atomic_store(&slot->entry, entry);
            atomic_store(&slot->key, key);
            grown->used++;
        }
    }
    /* The old table stays: another thread may be reading it. */
    __atomic_store_n(table, grown, __ATOMIC_RELEASE);
    return true;
}

bool hws_table_put(hws_table_t *volatile *table, const void *key, void *entry) {
    hws_table_t *current = hws_table_load(table);
    if (current == NULL || 4 * (current->used + 1) > 3 * (current->mask + 1)) {
        if (!hws_table_grow(table)) {
            return false;
        }
        current = hws_table_load(table);
    }
    hws_slot_t *slot = hws_table_slot(current, key);
    atomic_store_explicit(&slot->entry, entry, memory_order_release);
    if (atomic_load_explicit(&slot->key, memory_order_relaxed) == NULL) {
        current->used++;
        atomic_store_explicit(&slot->key, key, memory_order_release);
    }
    return true;
}
