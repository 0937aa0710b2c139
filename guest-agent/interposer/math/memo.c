/* Answers to questions whose description has `memo`, such as sizes of workspaces. */
#include "hws_math.h"

#include <pthread.h>
#include <string.h>

#define ENTRIES 1024u       /* a newer answer takes the place of an older one */
#define QUESTION_BYTES 1024 /* longer questions are asked each time; none of a described function is longer */
#define ANSWER_BYTES 64

typedef struct question {
    uint64_t context;       /* for its GPU */
    uint32_t opcode, bytes; /* an opcode of 0: an empty entry */
    uint8_t payload[QUESTION_BYTES];
} question_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    question_t question;
    uint32_t bytes;
    uint8_t answer[ANSWER_BYTES];
} entries[ENTRIES];

static uint32_t place(const question_t *question) {
    uint64_t hash = 0xcbf29ce484222325u ^ question->opcode ^ question->context << 16;
    for (uint32_t i = 0; i + 8 <= question->bytes; i += 8) {
        uint64_t word;
        memcpy(&word, question->payload + i, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return (uint32_t) hash % ENTRIES;
}

static bool is_equal(const question_t *a, const question_t *b) {
    return a->context == b->context && a->opcode == b->opcode && a->bytes == b->bytes
        && memcmp(a->payload, b->payload, a->bytes) == 0;
}

int hws_ask(uint32_t opcode, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges, uint32_t count,
            void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    CUcontext context = NULL;
    bool fits = payload_bytes <= QUESTION_BYTES && reply_capacity <= ANSWER_BYTES
        && cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != NULL;
    question_t question;
    uint32_t at = 0;
    if (fits) {
        question.context = (uintptr_t) context;
        question.opcode = opcode;
        question.bytes = payload_bytes;
        memcpy(question.payload, payload, payload_bytes);
        hws_reduce(question.payload, ranges, count);
        at = place(&question);
        pthread_mutex_lock(&lock);
        bool is_known = is_equal(&entries[at].question, &question);
        if (is_known) {
            *reply_bytes_p = entries[at].bytes;
            memcpy(reply, entries[at].answer, entries[at].bytes);
        }
        pthread_mutex_unlock(&lock);
        if (is_known) {
            return 0;
        }
    }
    int status =
        hws_call(opcode, HWS_FLAG_REPLY, payload, payload_bytes, NULL, 0, reply, reply_capacity, reply_bytes_p);
    if (status == 0 && fits && *reply_bytes_p <= ANSWER_BYTES) {
        pthread_mutex_lock(&lock);
        memcpy(&entries[at].question, &question, offsetof(question_t, payload) + payload_bytes);
        entries[at].bytes = *reply_bytes_p;
        memcpy(entries[at].answer, reply, *reply_bytes_p);
        pthread_mutex_unlock(&lock);
    }
    return status;
}
