/* Reads the hypervisor's values for this domain from XenStore, through the kernel's device. */
#ifndef HWS_XENSTORE_H
#define HWS_XENSTORE_H

#include <stddef.h>

/* xen/include/public/io/xs_wire.h: the longest payload of a message, and so the longest value. */
#define HWS_XENSTORE_MAX_PAYLOAD 4096u

/* The same file, XENSTORE_REL_PATH_MAX: the longest key below a domain's own folder. */
#define HWS_XENSTORE_MAX_KEY 2048u

/*
 * Reads a key below this domain's folder ("vm-data/hawser/broker"). Returns 1 with the value in text_p, NUL terminated
 * and without a NUL inside. Returns 0 when this is no domain of Xen, or the key does not exist. Returns -1 with a
 * message in error_p: no permission for the device, a value longer than `capacity`, or no valid answer of XenStore
 * within five seconds. text_p is written only with 1.
 */
int hws_xenstore_read(const char *key, char *text_p, size_t capacity, char *error_p, size_t error_capacity);

/* The same over an open descriptor, which stays open. hws_xenstore_read calls it with the device. */
int hws_xenstore_read_from(int descriptor, const char *key, int timeout_ms, char *text_p, size_t capacity,
                           char *error_p, size_t error_capacity);

#endif
