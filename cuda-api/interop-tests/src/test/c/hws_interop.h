/*
 * The interface between the harness and the generated hws_interop_calls.c.
 */
#ifndef HWS_INTEROP_H
#define HWS_INTEROP_H

#include <stdbool.h>
#include <stdint.h>

#define HWS_INTEROP_UNKNOWN (-1)
#define HWS_INTEROP_MOST (2u << 20)

/* Outputs of a call, encoded again as in a reply. */
typedef struct hws_interop_out {
    uint32_t length;
    uint8_t bytes[HWS_INTEROP_MOST];
} hws_interop_out_t;

/* Decodes the request, makes the call, and encodes the outputs that it has set. Returns the call's result. */
int hws_interop_call(uint32_t opcode, const uint8_t *request, hws_interop_out_t *out);

/* Memory of exactly this size, so that the address sanitizer detects an access one byte beyond it. */
void *hws_interop_memory(uint64_t bytes);

/* A copy of the buffer whose length is at `offset` and whose bytes begin at *at_p, which advances; NULL for a NULL. */
void *hws_interop_buffer(const uint8_t *request, uint32_t *at_p, uint32_t offset, bool text);

void hws_interop_fixed(hws_interop_out_t *out, uint32_t bytes);
void hws_interop_bytes(hws_interop_out_t *out, uint32_t offset, const void *bytes, uint32_t length);

#endif
