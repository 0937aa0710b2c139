#include "hws_handles.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SLOT_BITS 20
#define SLOT_MASK ((1u << SLOT_BITS) - 1)
#define CHUNK_SLOTS 1024u
#define CHUNKS ((1u << SLOT_BITS) / CHUNK_SLOTS)
#define MAX_KINDS 64

typedef struct hws_slot {
    _Atomic uint32_t id; /* of the valid handle, 0 for none */
    uint32_t generation;
    _Atomic(void *) data;
    uint32_t next_free;
} hws_slot_t;

typedef struct hws_table {
    pthread_mutex_t lock;
    _Atomic(hws_slot_t *) chunks[CHUNKS];
    uint32_t used;                  /* slots used so far; slot 0 is never used, so that no id is 0 */
    uint32_t first_free, last_free; /* first in, first out: a slot stays unused as long as possible */
} hws_table_t;

/* Allocated at a kind's first handle: most programs use few kinds. */
static _Atomic(hws_table_t *) tables[MAX_KINDS];
static pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;

static hws_table_t *table_of(hws_kind_t kind) {
    hws_table_t *table = atomic_load_explicit(&tables[kind], memory_order_acquire);
    if (table != NULL) {
        return table;
    }
    pthread_mutex_lock(&tables_lock);
    table = atomic_load(&tables[kind]);
    if (table == NULL) {
        table = calloc(1, sizeof *table);
        if (table != NULL) {
            pthread_mutex_init(&table->lock, NULL);
            table->used = 1;
            atomic_store_explicit(&tables[kind], table, memory_order_release);
        }
    }
    pthread_mutex_unlock(&tables_lock);
    return table;
}

static hws_slot_t *slot_at(hws_table_t *table, uint32_t number) {
    hws_slot_t *chunk = atomic_load_explicit(&table->chunks[number / CHUNK_SLOTS], memory_order_acquire);
    return chunk == NULL ? NULL : &chunk[number % CHUNK_SLOTS];
}

/* Takes a free slot if many are free, else a new one; 0 for none. Lock held. */
static uint32_t take_slot(hws_table_t *table) {
    uint32_t number = table->first_free;
    if (number != 0) {
        table->first_free = slot_at(table, number)->next_free;
        if (table->first_free == 0) {
            table->last_free = 0;
        }
        return number;
    }
    number = table->used;
    if (number > SLOT_MASK) {
        return 0;
    }
    if (slot_at(table, number) == NULL) {
        hws_slot_t *chunk = calloc(CHUNK_SLOTS, sizeof *chunk);
        if (chunk == NULL) {
            return 0;
        }
        atomic_store_explicit(&table->chunks[number / CHUNK_SLOTS], chunk, memory_order_release);
    }
    table->used++;
    return number;
}

uint64_t hws_handle_new(hws_kind_t kind) {
    hws_table_t *table = table_of(kind);
    if (table == NULL) {
        return 0;
    }
    pthread_mutex_lock(&table->lock);
    uint32_t number = take_slot(table), id = 0;
    void *stale = NULL;
    if (number != 0) {
        hws_slot_t *slot = slot_at(table, number);
        id = slot->generation++ << SLOT_BITS | number;
        stale = atomic_exchange(&slot->data, NULL);
        atomic_store_explicit(&slot->id, id, memory_order_release);
    }
    pthread_mutex_unlock(&table->lock);
    free(stale);
    return id == 0 ? 0 : (uint64_t) kind << HWS_HANDLE_KIND_SHIFT | id;
}

static hws_slot_t *valid_slot(hws_kind_t kind, uint64_t handle) {
    uint64_t id = handle & ((1ull << HWS_HANDLE_KIND_SHIFT) - 1);
    if (handle >> HWS_HANDLE_KIND_SHIFT != (uint64_t) kind || id == 0 || id > UINT32_MAX) {
        return NULL;
    }
    hws_table_t *table = atomic_load_explicit(&tables[kind], memory_order_acquire);
    hws_slot_t *slot = table == NULL ? NULL : slot_at(table, (uint32_t) id & SLOT_MASK);
    return slot != NULL && atomic_load_explicit(&slot->id, memory_order_acquire) == id ? slot : NULL;
}

bool hws_handle_valid(hws_kind_t kind, uint64_t handle) {
    return valid_slot(kind, handle) != NULL;
}

void hws_handle_drop(hws_kind_t kind, uint64_t handle) {
    hws_table_t *table = table_of(kind);
    if (table == NULL) {
        return;
    }
    pthread_mutex_lock(&table->lock);
    hws_slot_t *slot = valid_slot(kind, handle);
    if (slot != NULL) {
        uint32_t number = (uint32_t) handle & SLOT_MASK;
        atomic_store_explicit(&slot->id, 0, memory_order_release);
        slot->next_free = 0;
        if (table->last_free != 0) {
            slot_at(table, table->last_free)->next_free = number;
        } else {
            table->first_free = number;
        }
        table->last_free = number;
    }
    pthread_mutex_unlock(&table->lock);
}

void hws_handle_attach(hws_kind_t kind, uint64_t handle, void *data) {
    hws_slot_t *slot = valid_slot(kind, handle);
    free(slot != NULL ? atomic_exchange_explicit(&slot->data, data, memory_order_acq_rel) : data);
}

void *hws_handle_data(hws_kind_t kind, uint64_t handle) {
    hws_slot_t *slot = valid_slot(kind, handle);
    return slot == NULL ? NULL : atomic_load_explicit(&slot->data, memory_order_acquire);
}

void hws_handle_each(hws_kind_t kind, void (*visit)(uint64_t handle, void *data, void *argument), void *argument) {
    hws_table_t *table = atomic_load_explicit(&tables[kind], memory_order_acquire);
    if (table == NULL) {
        return;
    }
    pthread_mutex_lock(&table->lock);
    uint32_t used = table->used;
    pthread_mutex_unlock(&table->lock);
    for (uint32_t number = 1; number < used; number++) {
        hws_slot_t *slot = slot_at(table, number);
        uint32_t id = atomic_load_explicit(&slot->id, memory_order_acquire);
        if (id != 0) {
            visit((uint64_t) kind << HWS_HANDLE_KIND_SHIFT | id, atomic_load(&slot->data), argument);
        }
    }
}
