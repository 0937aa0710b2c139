/* What the hypervisor has put into XenStore for this domain: reading a key by the device of the kernel. */
#ifndef HWS_XENSTORE_H
#define HWS_XENSTORE_H

#include <stddef.h>

/* xen/include/public/io/xs_wire.h: a message is no longer, its header aside; and so no value is. */
#define HWS_XENSTORE_MAX_PAYLOAD 4096u

/* The same file, XENSTORE_REL_PATH_MAX: the longest key below a domain's own folder. */
#define HWS_XENSTORE_MAX_KEY 2048u

/*
 * Reads a key below this domain's folder ("vm-data/hawser/broker"). Returns 1 with the value in text_p, NUL terminated
 * and without a NUL inside; 0 when this is no domain of Xen, or the key is not there; -1 with a sentence in error_p:
 * the device is not for us, the value does not fit into `capacity` bytes, or XenStore does not answer as it should
 * within five seconds. text_p is written only with 1.
 */
int hws_xenstore_read(const char *key, char *text_p, size_t capacity, char *error_p, size_t error_capacity);

/* The same over an open descriptor, which stays open; what hws_xenstore_read does once it has the device. */
int hws_xenstore_read_from(int descriptor, const char *key, int timeout_ms, char *text_p, size_t capacity,
                           char *error_p, size_t error_capacity);

#endif
