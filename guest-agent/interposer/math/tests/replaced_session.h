/*
 * The session of the tests of math libraries: a table of handles of one kind in the place of the service of libcuda, and
 * the last record. A test defines hws_send, hws_probe and hws_call, which keep records and answer. One thread.
 */
#ifndef HAWSER_MATH_REPLACED_SESSION_H
#define HAWSER_MATH_REPLACED_SESSION_H

#include "hws_math.h"

#define SESSION_HANDLES 32768            /* at most; more than any library has */
#define SESSION_RECORD_BYTES (80u << 10) /* at most */
#define SESSION_INVALIDATED 13           /* a stream whose capture has failed */

typedef struct session {
    _Atomic int gate;   /* of calls, as in hws_service_t */
    hws_kind_t kind;    /* of its handles; set by the test */
    bool has_context;   /* true at first */
    uintptr_t context;  /* the current one; 7 at first */
    uint64_t capturing; /* a stream; 0 for none */
    uint64_t in_use;    /* sum of the objects that work in that stream uses */
    int made, dropped;  /* handles */
    int records;
    int unsupported; /* calls that are not forwarded */
    uint32_t last_opcode, last_bytes;
    unsigned char last[SESSION_RECORD_BYTES]; /* zero behind last_bytes */
} session_t;

extern session_t session;

/* The handle that was made as the number-th, from 1. */
uint64_t session_handle(int number);

/* Frees what handles still hold. */
void session_close(void);

/* Keeps a record as the last one. */
void session_keep(uint32_t opcode, const void *payload, uint32_t payload_bytes);

#endif
