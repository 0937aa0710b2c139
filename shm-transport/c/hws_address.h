/* Addresses of brokers, as texts. */
#ifndef HWS_ADDRESS_H
#define HWS_ADDRESS_H

#include <stddef.h>

#define HWS_MAX_BROKERS 8 /* in a list; bounds the attempts of a guest */

typedef struct hws_address {
    char host[256]; /* a name or an address, without brackets */
    char port[8];   /* decimal, 1..65535 */
} hws_address_t;

/*
 * Splits host, host:port, [v6] or [v6]:port, as a user writes it. Returns 0; or -1 when it does not read so, and then
 * leaves address_p as it was.
 */
int hws_address_split(const char *text, const char *default_port, hws_address_t *address_p);

/*
 * Splits the address that a broker sends in REFUSED with MOVED: host:port or [v6]:port, of at most HWS_MAX_ADDRESS_BYTES.
 * A host is a name or an address of IPv4, of letters, digits, "-", "_" and "."; a port has no leading zero. Returns 0 or
 * -1, as above.
 */
int hws_address_split_moved(const char *text, hws_address_t *address_p);

#endif
