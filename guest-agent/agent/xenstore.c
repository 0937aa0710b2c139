#include "xenstore.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The kernel's device, and its path before Linux 3.3 or without devtmpfs. */
static const char *const devices[] = {"/dev/xen/xenbus", "/proc/xen/xenbus"};

#define TIMEOUT_MS 5000

/* xen/include/public/io/xs_wire.h, enum xsd_sockmsg_type. */
enum { XS_READ = 2, XS_WATCH_EVENT = 15, XS_ERROR = 16 };

/* The same file, struct xsd_sockmsg; in the machine's byte order, because both ends run on it. */
typedef struct hws_xenstore_header {
    uint32_t type;
    uint32_t request_id;
    uint32_t transaction_id;
    uint32_t length; /* of the payload */
} hws_xenstore_header_t;

_Static_assert(sizeof(hws_xenstore_header_t) == 16, "xsd_sockmsg has no padding");

/* This descriptor has no watches. A few events may be old; more come from a peer that delays us. */
#define MAX_SKIPPED 16

/* Any number that does not occur by chance. */
#define REQUEST_ID 0x68777301u

typedef struct hws_xenstore_link {
    int descriptor;
    struct timespec end;
    char *error_p;
    size_t error_capacity;
} hws_xenstore_link_t;

static int fail(hws_xenstore_link_t *link, const char *sentence) {
    snprintf(link->error_p, link->error_capacity, "%s", sentence);
    return -1;
}

static int fail_with_errno(hws_xenstore_link_t *link, const char *what) {
    snprintf(link->error_p, link->error_capacity, "XenStore cannot be %s: %s", what, strerror(errno));
    return -1;
}

/* Waits until the descriptor is ready for `events`. Returns 0, or -1 with a message when the time is over. */
static int await(hws_xenstore_link_t *link, short events) {
    for (;;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t left_ms = (link->end.tv_sec - now.tv_sec) * 1000ll + (link->end.tv_nsec - now.tv_nsec) / 1000000;
        if (left_ms <= 0) {
            return fail(link, "XenStore does not answer in time");
        }
        struct pollfd ready = {.fd = link->descriptor, .events = events};
        int count = poll(&ready, 1, left_ms > INT32_MAX ? INT32_MAX : (int) left_ms);
        if (count > 0) {
            return 0; /* read or write then reports a hang-up */
        }
        if (count < 0 && errno != EINTR) {
            return fail_with_errno(link, "waited for");
        }
    }
}

static int write_all(hws_xenstore_link_t *link, const char *data, size_t length) {
    while (length > 0) {
        /* No poll for POLLOUT first: the kernel's device never reports it. */
        ssize_t written = write(link->descriptor, data, length);
        if (written < 0 && errno == EAGAIN && await(link, POLLOUT) != 0) {
            return -1;
        }
        if (written < 0 && errno != EINTR && errno != EAGAIN) {
            return fail_with_errno(link, "asked");
        }
        if (written > 0) {
            data += written;
            length -= (size_t) written;
        }
    }
    return 0;
}

static int read_all(hws_xenstore_link_t *link, void *data, size_t length) {
    char *at = data;
    while (length > 0) {
        if (await(link, POLLIN) != 0) {
            return -1;
        }
        ssize_t taken = read(link->descriptor, at, length);
        if (taken == 0) {
            return fail(link, "XenStore's answer has ended too early");
        }
        if (taken < 0 && errno != EINTR && errno != EAGAIN) {
            return fail_with_errno(link, "read");
        }
        if (taken > 0) {
            at += taken;
            length -= (size_t) taken;
        }
    }
    return 0;
}

static int ask(hws_xenstore_link_t *link, const char *key) {
    char message[sizeof(hws_xenstore_header_t) + HWS_XENSTORE_MAX_KEY + 1];
    size_t key_bytes = strlen(key) + 1; /* with its NUL, as the protocol requires */
    if (key_bytes == 1 || key_bytes > HWS_XENSTORE_MAX_KEY + 1) {
        return fail(link, "a key of XenStore has 1 to 2048 characters");
    }
    hws_xenstore_header_t header = {.type = XS_READ, .request_id = REQUEST_ID, .length = (uint32_t) key_bytes};
    memcpy(message, &header, sizeof header);
    memcpy(message + sizeof header, key, key_bytes);
    /* In one piece: the kernel's device takes a message by one write. */
    return write_all(link, message, sizeof header + key_bytes);
}

/* Reads the answer's header and payload. Returns 0, or -1 with a message. */
static int take_answer(hws_xenstore_link_t *link, hws_xenstore_header_t *header_p,
                       char payload[HWS_XENSTORE_MAX_PAYLOAD]) {
    for (unsigned skipped = 0; skipped <= MAX_SKIPPED; skipped++) {
        if (read_all(link, header_p, sizeof *header_p) != 0) {
            return -1;
        }
        if (header_p->length > HWS_XENSTORE_MAX_PAYLOAD) {
            return fail(link, "XenStore's answer is longer than the protocol allows");
        }
        if (read_all(link, payload, header_p->length) != 0) {
            return -1;
        }
        if (header_p->type != XS_WATCH_EVENT) {
            return 0;
        }
    }
    return fail(link, "XenStore sends events without a watch, and does not answer");
}

/* The name of an error from XenStore ("ENOENT"), made safe for a terminal. */
static void name_error(const char *payload, size_t length, char *name_p, size_t capacity) {
    size_t i = 0;
    while (i < length && i + 1 < capacity && payload[i] != '\0') {
        name_p[i] = payload[i] > ' ' && payload[i] < 0x7f ? payload[i] : '?';
        i++;
    }
    name_p[i] = '\0';
}

int hws_xenstore_read_from(int descriptor, const char *key, int timeout_ms, char *text_p, size_t capacity,
                           char *error_p, size_t error_capacity) {
    hws_xenstore_link_t link = {.descriptor = descriptor, .error_p = error_p, .error_capacity = error_capacity};
    clock_gettime(CLOCK_MONOTONIC, &link.end);
    link.end.tv_sec += timeout_ms / 1000;
    link.end.tv_nsec += timeout_ms % 1000 * 1000000l; /* may exceed a second: only differences are used */

    hws_xenstore_header_t header;
    char payload[HWS_XENSTORE_MAX_PAYLOAD];
    if (ask(&link, key) != 0 || take_answer(&link, &header, payload) != 0) {
        return -1;
    }
    if (header.request_id != REQUEST_ID || (header.type != XS_READ && header.type != XS_ERROR)) {
        return fail(&link, "XenStore's answer belongs to another request");
    }
    if (header.type == XS_ERROR) {
        char name[32];
        name_error(payload, header.length, name, sizeof name);
        if (strcmp(name, "ENOENT") == 0) {
            return 0;
        }
        snprintf(error_p, error_capacity, "XenStore refuses %.200s: %s", key, name);
        return -1;
    }
    if (memchr(payload, '\0', header.length) != NULL) {
        snprintf(error_p, error_capacity, "XenStore's %.200s is no text: a NUL is in it", key);
        return -1;
    }
    if (header.length >= capacity) {
        snprintf(error_p, error_capacity, "XenStore's %.200s is too long: %u bytes, at most %zu", key, header.length,
                 capacity == 0 ? capacity : capacity - 1);
        return -1;
    }
    memcpy(text_p, payload, header.length);
    text_p[header.length] = '\0';
    return 1;
}

int hws_xenstore_read(const char *key, char *text_p, size_t capacity, char *error_p, size_t error_capacity) {
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        /* Non-blocking: the wait for an answer is limited. */
        int descriptor = open(devices[i], O_RDWR | O_CLOEXEC | O_NONBLOCK);
        if (descriptor >= 0) {
            int rc = hws_xenstore_read_from(descriptor, key, TIMEOUT_MS, text_p, capacity, error_p, error_capacity);
            close(descriptor);
            return rc;
        }
        /* ENXIO, ENODEV: the device's name exists, but no Xen. */
        if (errno != ENOENT && errno != ENOTDIR && errno != ENXIO && errno != ENODEV) {
            snprintf(error_p, error_capacity, "XenStore cannot be opened, %s: %s%s", devices[i], strerror(errno),
                     errno == EACCES || errno == EPERM ? "; only root may open it" : "");
            return -1;
        }
    }
    return 0;
}
