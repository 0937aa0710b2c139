/* Runs the cases of ring_cases.txt, as io.hawser.shm.ring.RingCasesTest does: ring_cases_test FILE. */
#include "../shm/hws_ring.h"
#include "hws_test.h"

#include <inttypes.h>
#include <string.h>

typedef struct fixture {
    uint64_t *head;
    uint64_t *tail;
    uint8_t *bytes; /* a separate block, so that the sanitizer detects each access beyond it */
    uint64_t size;
    hws_ring_t writer;
    hws_ring_t reader;
} fixture_t;

static void attach(fixture_t *at, uint64_t position) {
    *at->head = *at->tail = position;
    hws_ring_attach_writer(&at->writer, at->bytes, at->size, at->head, at->tail);
    hws_ring_attach_reader(&at->reader, at->bytes, at->size, at->head, at->tail);
    at->writer.own_position = at->writer.published = at->writer.peer_cached = position;
    at->reader.own_position = at->reader.published = at->reader.peer_cached = position;
}

static void detach(fixture_t *at) {
    free(at->head);
    free(at->tail);
    free(at->bytes);
    *at = (fixture_t) {0};
}

static uint8_t *stream(uint64_t position, uint64_t bytes) {
    uint8_t *made = malloc(bytes);
    HWS_CHECK(made != NULL);
    for (uint64_t i = 0; i < bytes; i++) {
        made[i] = (uint8_t) (((position + i) * 31 + 7) % 251);
    }
    return made;
}

static void put(fixture_t *at, uint64_t bytes) {
    uint8_t *source = stream(at->writer.own_position, bytes);
    hws_ring_put(&at->writer, source, bytes);
    free(source);
}

static bool take(fixture_t *at, uint64_t bytes) {
    uint8_t *expected = stream(at->reader.own_position, bytes), *target = malloc(bytes);
    HWS_CHECK(target != NULL);
    hws_ring_take(&at->reader, target, bytes);
    bool same = memcmp(expected, target, bytes) == 0;
    free(expected);
    free(target);
    return same;
}

/* Runs a line; false when the ring gives another result. */
static bool run(fixture_t *at, const char *word, uint64_t number, uint64_t second) {
    if (strcmp(word, "ring") == 0) {
        detach(at);
        *at = (fixture_t) {malloc(sizeof(uint64_t)), malloc(sizeof(uint64_t)), calloc(1, number), number, {0}, {0}};
        HWS_CHECK(at->head != NULL && at->tail != NULL && at->bytes != NULL);
        attach(at, second);
    } else if (strcmp(word, "restart") == 0) {
        attach(at, 0);
    } else if (strcmp(word, "put") == 0) {
        put(at, number);
    } else if (strcmp(word, "take") == 0) {
        return take(at, number);
    } else if (strcmp(word, "commit") == 0) {
        hws_ring_commit(&at->writer);
    } else if (strcmp(word, "abort") == 0) {
        hws_ring_abort(&at->writer);
    } else if (strcmp(word, "release") == 0) {
        hws_ring_release(&at->reader);
    } else if (strcmp(word, "room") == 0) {
        return hws_ring_room(&at->writer) == number;
    } else if (strcmp(word, "available") == 0) {
        return hws_ring_available(&at->reader) == number;
    } else if (strcmp(word, "fits") == 0) {
        return hws_ring_has_room(&at->writer, number);
    } else if (strcmp(word, "full") == 0) {
        return !hws_ring_has_room(&at->writer, number);
    } else if (strcmp(word, "head") == 0) {
        return *at->head == number;
    } else if (strcmp(word, "tail") == 0) {
        return *at->tail == number;
    } else if (strcmp(word, "byte") == 0) {
        return at->bytes[number] == second;
    } else if (strcmp(word, "poke-head") == 0) {
        *at->head = number;
    } else if (strcmp(word, "poke-tail") == 0) {
        *at->tail = number;
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    HWS_CHECK(argc == 2);
    FILE *file = fopen(argv[1], "r");
    HWS_CHECK(file != NULL);
    fixture_t at = {0};
    char line[256];
    int number = 0, cases = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        number++;
        char word[32], first[32] = "", second[32] = "";
        if (line[0] == '#' || sscanf(line, "%31s %31s %31s", word, first, second) < 1) {
            continue;
        }
        if (strcmp(word, "case") == 0) {
            cases++;
            continue;
        }
        uint64_t value = strcmp(first, "corrupt") == 0 ? HWS_RING_CORRUPT : strtoull(first, NULL, 10);
        if (!run(&at, word, value, strtoull(second, NULL, 10))) {
            fprintf(stderr, "%s:%d: not so: %s", argv[1], number, line);
            return 1;
        }
    }
    fclose(file);
    detach(&at);
    HWS_CHECK(cases > 20);
    fprintf(stderr, "%d cases\n", cases);
    return 0;
}
