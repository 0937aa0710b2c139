/* Addresses of the process that hold no memory, so that nothing else comes to lie there. Any thread. */
#ifndef HWS_ADDRESSES_H
#define HWS_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

/* Reserves addresses that the process does not use. Returns false, with errno, when it uses some: EEXIST. */
bool hws_addresses_reserve(uint64_t base, uint64_t bytes);

/*
 * Takes memory away. The reservation of its addresses stays. A failure is logged, with `what` as the memory's name; the
 * memory then stays.
 */
bool hws_addresses_empty(uint64_t base, uint64_t bytes, const char *what);

#endif
