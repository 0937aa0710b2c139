/*
 * What structures of a program share although each has its own content: a plan has the attributes that its descriptor
 * gets later, and a selection has the algorithm that a search with its plan finds.
 */
#include "hws_cusparselt.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define BUCKETS 256u
#define FOUND 1024u /* remembered searches; a newer one takes the place of an older one */

/* A descriptor with plans. A copy of the descriptor has the same number, but another address. */
typedef struct followed {
    struct followed *next;
    uint64_t number;
    uintptr_t address;
    size_t plans;
    bool is_changed; /* since it has plans */
    HwsSltMatmul matmul;
} followed_t;

static followed_t *followed[BUCKETS];
static struct {
    uint64_t selection; /* 0: an empty entry */
    HwsSltAlgorithm algorithm;
} found[FOUND];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool has_changes; /* a descriptor with plans has got attributes: products look for them */

uint64_t hws_slt_next_number(void) {
    static _Atomic uint64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* The place of a descriptor in its list, or the list's end. Under the lock. */
static followed_t **find(hws_slt_origin_t descriptor) {
    followed_t **place = &followed[descriptor.number % BUCKETS];
    while (*place != NULL && ((*place)->number != descriptor.number || (*place)->address != descriptor.address)) {
        place = &(*place)->next;
    }
    return place;
}

bool hws_slt_follow(hws_slt_origin_t descriptor) {
    pthread_mutex_lock(&lock);
    followed_t **place = find(descriptor);
    if (*place == NULL) {
        *place = calloc(1, sizeof **place);
        if (*place != NULL) {
            (*place)->number = descriptor.number;
            (*place)->address = descriptor.address;
        }
    }
    bool follows = *place != NULL;
    if (follows) {
        (*place)->plans++;
    }
    pthread_mutex_unlock(&lock);
    return follows;
}

void hws_slt_end_following(hws_slt_origin_t descriptor) {
    pthread_mutex_lock(&lock);
    followed_t **place = find(descriptor), *ended = *place;
    if (ended != NULL && --ended->plans == 0) {
        *place = ended->next;
    } else {
        ended = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(ended);
}

void hws_slt_tell_plans(hws_slt_origin_t descriptor, const HwsSltMatmul *matmul) {
    pthread_mutex_lock(&lock);
    followed_t *entry = *find(descriptor);
    if (entry != NULL) {
        entry->is_changed = true;
        entry->matmul = *matmul;
        atomic_store_explicit(&has_changes, true, memory_order_relaxed); /* the lock orders it */
    }
    pthread_mutex_unlock(&lock);
}

hws_slt_product_t hws_slt_product(const hws_slt_kept_plan_t *plan) {
    hws_slt_product_t product = plan->product;
    if (!atomic_load_explicit(&has_changes, memory_order_relaxed)) {
        return product;
    }
    pthread_mutex_lock(&lock);
    const followed_t *entry = *find(plan->descriptor);
    if (entry != NULL && entry->is_changed) {
        product.matmul = entry->matmul;
    }
    pthread_mutex_unlock(&lock);
    return product;
}

void hws_slt_remember_found(uint64_t selection, const HwsSltAlgorithm *algorithm) {
    pthread_mutex_lock(&lock);
    found[selection % FOUND].selection = selection;
    found[selection % FOUND].algorithm = *algorithm;
    pthread_mutex_unlock(&lock);
}

HwsSltAlgorithm hws_slt_algorithm(const hws_slt_kept_selection_t *selection) {
    HwsSltAlgorithm algorithm = selection->algorithm;
    pthread_mutex_lock(&lock);
    if (found[selection->number % FOUND].selection == selection->number) {
        algorithm = found[selection->number % FOUND].algorithm;
    }
    pthread_mutex_unlock(&lock);
    return algorithm;
}
