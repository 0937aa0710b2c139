#include "hws_tls.h"

#include "../shm/hws_wait.h"
#include "hws_libssl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Size of a window of clear text, which shares one system call and one lock. A multiple of a TLS record's 16 KiB. */
#define WINDOW_BYTES (64 * 1024)

/*
 * Clear text goes through a memory file: the kernel copies between the file and the program's memory. A bad pointer of
 * the program then gives EFAULT, as with a plain socket, instead of a fault in our thread.
 */
typedef struct window {
    int file;
    char *bytes;
    size_t start, end; /* bytes [start, end) are in the window */
} window_t;

typedef struct hws_tls {
    hws_carrier_t carrier;
    const hws_libssl_t *lib;
    _Atomic int fd;
    _Atomic uint32_t timeout_ms; /* 0: none */
    pthread_mutex_t lock;        /* of ssl: it serves one thread at a time, and no call on it waits for the network */
    hws_ssl_t *ssl;
    hws_spin_t spin;            /* the receiver's */
    window_t sending, received; /* of the one sender and of the one receiver */
    char fault[256];            /* under the lock */
    _Atomic bool faulted;
} hws_tls_t;

/* For the functions of the BIO, which have no other way to it. Set before the first connection. */
static const hws_libssl_t *library;

static int retry(hws_bio_t *bio, ssize_t rc, int flag) {
    if (rc < 0 && errno == EAGAIN) {
        library->BIO_set_flags(bio, flag | HWS_BIO_FLAGS_SHOULD_RETRY);
    }
    return (int) rc;
}

/* The BIO: a socket that never waits. OpenSSL's own would raise SIGPIPE in the program. */
static int bio_write(hws_bio_t *bio, const char *bytes, int count) {
    hws_tls_t *tls = library->BIO_get_data(bio);
    library->BIO_clear_flags(bio, HWS_BIO_FLAGS_RETRY);
    ssize_t sent;
    do {
        sent = send(atomic_load(&tls->fd), bytes, (size_t) count, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return retry(bio, sent, HWS_BIO_FLAGS_WRITE);
}

static int bio_read(hws_bio_t *bio, char *bytes, int count) {
    hws_tls_t *tls = library->BIO_get_data(bio);
    library->BIO_clear_flags(bio, HWS_BIO_FLAGS_RETRY);
    ssize_t received;
    do {
        received = recv(atomic_load(&tls->fd), bytes, (size_t) count, MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);
    return retry(bio, received, HWS_BIO_FLAGS_READ);
}

static long bio_ctrl(hws_bio_t *bio, int command, long number, void *pointer) {
    (void) bio, (void) number, (void) pointer;
    return command == HWS_BIO_CTRL_FLUSH;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until the socket can be read or written. Returns 0, or -1 with EAGAIN after the deadline. */
static int await(hws_tls_t *tls, short events, int64_t deadline_ms) {
    for (;;) {
        int64_t left = deadline_ms == 0 ? -1 : deadline_ms - now_ms();
        if (deadline_ms != 0 && left <= 0) {
            errno = EAGAIN;
            return -1;
        }
        struct pollfd wanted = {.fd = atomic_load(&tls->fd), .events = events};
        int ready = poll(&wanted, 1, (int) left);
        if (ready > 0) {
            return 0;
        }
        if (ready < 0 && errno != EINTR) {
            return -1;
        }
    }
}

static int64_t deadline(hws_tls_t *tls) {
    uint32_t timeout_ms = atomic_load(&tls->timeout_ms);
    return timeout_ms == 0 ? 0 : now_ms() + timeout_ms;
}

/*
 * Translates the result of a call on ssl; under the lock. Returns the bytes, 0 at the end of the stream, -1 with errno,
 * or -2 with the events to wait for in events_p.
 */
static int outcome(hws_tls_t *tls, int rc, short *events_p) {
    if (rc > 0) {
        return rc;
    }
    int saved = errno;
    switch (tls->lib->SSL_get_error(tls->ssl, rc)) {
        case HWS_SSL_ERROR_WANT_READ:
            *events_p = POLLIN;
            return -2;
        case HWS_SSL_ERROR_WANT_WRITE:
            *events_p = POLLOUT;
            return -2;
        case HWS_SSL_ERROR_ZERO_RETURN:
            return 0;
        case HWS_SSL_ERROR_SYSCALL:
            errno = rc == 0 || saved == 0 || saved == EAGAIN ? ECONNRESET : saved;
            return -1;
        default: {
            const char *reason = tls->lib->ERR_reason_error_string(tls->lib->ERR_peek_last_error());
            if (!atomic_load(&tls->faulted)) {
                snprintf(tls->fault, sizeof tls->fault, "the TLS connection to the broker has failed: %s",
                         reason == NULL ? "unknown reason" : reason);
                atomic_store(&tls->faulted, true);
            }
            errno = EPROTO;
            return -1;
        }
    }
}

static int try_read(hws_tls_t *tls, void *target, size_t bytes, short *events_p) {
    pthread_mutex_lock(&tls->lock);
    tls->lib->ERR_clear_error();
    errno = 0;
    int rc = outcome(tls, tls->lib->SSL_read(tls->ssl, target, (int) bytes), events_p);
    pthread_mutex_unlock(&tls->lock);
    return rc;
}

static int try_write(hws_tls_t *tls, const void *source, size_t bytes, short *events_p) {
    pthread_mutex_lock(&tls->lock);
    tls->lib->ERR_clear_error();
    errno = 0;
    int rc = outcome(tls, tls->lib->SSL_write(tls->ssl, source, (int) bytes), events_p);
    pthread_mutex_unlock(&tls->lock);
    return rc;
}

/* Sends the contents of the window. Returns 0, or -1 with errno. */
static int send_window(hws_tls_t *tls) {
    window_t *window = &tls->sending;
    int64_t until_ms = deadline(tls);
    while (window->start < window->end) {
        short events = 0;
        int rc = try_write(tls, window->bytes + window->start, window->end - window->start, &events);
        if (rc > 0) {
            window->start += (size_t) rc;
        } else if (rc == 0) {
            errno = EPIPE;
            return -1;
        } else if (rc == -1 || await(tls, events, until_ms) != 0) {
            return -1;
        }
    }
    window->start = window->end = 0;
    return 0;
}

static int tls_send(hws_carrier_t *carrier, struct iovec *pieces, int count) {
    hws_tls_t *tls = (hws_tls_t *) carrier;
    window_t *window = &tls->sending;
    while (count > 0 || window->end > 0) {
        /* The kernel copies as much as the window holds. */
        while (count > 0 && window->end < WINDOW_BYTES) {
            size_t length = pieces->iov_len;
            if (length > WINDOW_BYTES - window->end) {
                length = WINDOW_BYTES - window->end;
            }
            ssize_t copied = length == 0 ? 0 : pwrite(window->file, pieces->iov_base, length, (off_t) window->end);
            if (copied < 0 && errno != EINTR) {
                return -1;
            }
            if (copied < 0) {
                continue;
            }
            window->end += (size_t) copied;
            pieces->iov_base = (char *) pieces->iov_base + copied;
            pieces->iov_len -= (size_t) copied;
            if (pieces->iov_len == 0) {
                pieces++;
                count--;
            }
        }
        if (send_window(tls) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Receives at least one byte into the empty window. Returns as `receive` does. */
static ssize_t fill_window(hws_tls_t *tls) {
    window_t *window = &tls->received;
    int64_t until_ms = deadline(tls);
    bool slept = false;
    window->start = window->end = 0;
    hws_spin_begin(&tls->spin);
    for (;;) {
        short events = 0;
        int rc = try_read(tls, window->bytes + window->end, WINDOW_BYTES - window->end, &events);
        if (rc > 0) {
            window->end += (size_t) rc;
            if (window->end < WINDOW_BYTES) {
                continue; /* further records may have arrived */
            }
        }
        if (window->end > 0 || rc != -2) {
            hws_spin_end(&tls->spin, slept);
            return window->end > 0 ? (ssize_t) window->end : rc;
        }
        /* A nearby broker answers before this thread would be asleep. */
        char byte;
        while (events == POLLIN && !slept && hws_spin_once(&tls->spin)) {
            if (recv(atomic_load(&tls->fd), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN) {
                events = 0;
            }
        }
        if (events != 0) {
            slept = true;
            if (await(tls, events, until_ms) != 0) {
                hws_spin_end(&tls->spin, slept);
                return -1;
            }
        }
    }
}

static ssize_t tls_receive(hws_carrier_t *carrier, const struct iovec *pieces, int count) {
    hws_tls_t *tls = (hws_tls_t *) carrier;
    window_t *window = &tls->received;
    if (window->start == window->end) {
        ssize_t filled = fill_window(tls);
        if (filled <= 0) {
            return filled;
        }
    }
    /* Not beyond `end`: the file there holds bytes that were already taken. */
    size_t left = window->end - window->start;
    ssize_t taken = 0;
    for (int i = 0; i < count && left > 0; i++) {
        size_t length = pieces[i].iov_len < left ? pieces[i].iov_len : left;
        ssize_t copied = length == 0 ? 0 : pread(window->file, pieces[i].iov_base, length, (off_t) window->start);
        if (copied < 0) {
            return taken > 0 ? taken : -1;
        }
        window->start += (size_t) copied;
        left -= (size_t) copied;
        taken += copied;
        if ((size_t) copied < length) {
            break;
        }
    }
    return taken;
}

static int tls_set_timeout(hws_carrier_t *carrier, uint32_t timeout_ms) {
    atomic_store(&((hws_tls_t *) carrier)->timeout_ms, timeout_ms);
    return 0;
}

static const char *tls_fault(hws_carrier_t *carrier) {
    hws_tls_t *tls = (hws_tls_t *) carrier;
    return atomic_load(&tls->faulted) ? tls->fault : NULL;
}

static int tls_descriptor(hws_carrier_t *carrier) {
    return atomic_load(&((hws_tls_t *) carrier)->fd);
}

/* Takes what has arrived into the window: only there it is certain to be more than a part of a TLS record. */
static bool tls_is_ready(hws_carrier_t *carrier) {
    hws_tls_t *tls = (hws_tls_t *) carrier;
    window_t *window = &tls->received;
    short events = 0;
    if (window->start < window->end) {
        return true;
    }
    int rc = try_read(tls, window->bytes, WINDOW_BYTES, &events);
    window->start = 0;
    window->end = rc > 0 ? (size_t) rc : 0;
    return rc != -2; /* an end or an error returns once more at the next receive */
}

static void tls_shutdown(hws_carrier_t *carrier) {
    shutdown(atomic_load(&((hws_tls_t *) carrier)->fd), SHUT_RDWR);
}

/*
 * Closes only the descriptors. Another thread may use ssl, or, in a forked child, a thread that the fork did not copy.
 */
static void tls_close(hws_carrier_t *carrier) {
    hws_tls_t *tls = (hws_tls_t *) carrier;
    int fd = atomic_exchange(&tls->fd, -1);
    if (fd >= 0) {
        close(fd);
        close(tls->sending.file);
        close(tls->received.file);
    }
}

static int open_window(window_t *window) {
    window->file = memfd_create("hawser-tls", MFD_CLOEXEC);
    if (window->file < 0) {
        return -1;
    }
    window->bytes = MAP_FAILED;
    if (ftruncate(window->file, WINDOW_BYTES) == 0) {
        window->bytes = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, window->file, 0);
    }
    if (window->bytes == MAP_FAILED) {
        close(window->file);
        return -1;
    }
    madvise(window->bytes, WINDOW_BYTES, MADV_DONTFORK); /* no use in a child */
    return 0;
}

static void close_window(window_t *window) {
    munmap(window->bytes, WINDOW_BYTES);
    close(window->file);
}

static void tls_destroy(hws_carrier_t *carrier) {
    hws_tls_t *tls = (hws_tls_t *) carrier;
    tls_close(carrier);
    munmap(tls->sending.bytes, WINDOW_BYTES);
    munmap(tls->received.bytes, WINDOW_BYTES);
    tls->lib->SSL_free(tls->ssl);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

static const hws_carrier_ops_t tls_ops = {
    .name = "tls",
    .send = tls_send,
    .receive = tls_receive,
    .set_timeout = tls_set_timeout,
    .fault = tls_fault,
    .descriptor = tls_descriptor,
    .is_ready = tls_is_ready,
    .shutdown = tls_shutdown,
    .close = tls_close,
    .destroy = tls_destroy,
};

/* Makes the context with the trusted authorities. Returns it, or NULL with a message. */
static hws_ssl_context_t *make_context(const hws_libssl_t *lib, const char *ca_file, char *error, size_t capacity) {
    hws_ssl_context_t *context = lib->SSL_CTX_new(lib->TLS_client_method());
    if (context == NULL) {
        snprintf(error, capacity, "the machine's OpenSSL cannot make a context");
        return NULL;
    }
    int trusted = ca_file[0] == '\0' ? lib->SSL_CTX_set_default_verify_paths(context)
                                     : lib->SSL_CTX_load_verify_locations(context, ca_file, NULL);
    if (trusted != 1 || lib->SSL_CTX_ctrl(context, HWS_SSL_CTRL_SET_MIN_PROTO_VERSION, HWS_TLS1_2_VERSION, NULL) != 1) {
        snprintf(error, capacity, "no authorities can be read: HAWSER_CA_FILE=%s", ca_file);
        lib->SSL_CTX_free(context);
        return NULL;
    }
    lib->SSL_CTX_set_verify(context, HWS_SSL_VERIFY_PEER, NULL);
    lib->SSL_CTX_set_options(context, HWS_SSL_OP_NO_RENEGOTIATION);
    lib->SSL_CTX_ctrl(context, HWS_SSL_CTRL_MODE,
                      HWS_SSL_MODE_ENABLE_PARTIAL_WRITE | HWS_SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
    /* One system call reads several records. */
    lib->SSL_CTX_ctrl(context, HWS_SSL_CTRL_SET_READ_AHEAD, 1, NULL);
    lib->SSL_CTX_set_default_read_buffer_len(context, 2 * WINDOW_BYTES);
    return context;
}

static bool is_address(const char *host) {
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Requires a certificate for the host name or address that the user gave. Returns 0, or -1. */
static int expect_host(const hws_libssl_t *lib, hws_ssl_t *ssl, const char *host) {
    if (is_address(host)) {
        return lib->X509_VERIFY_PARAM_set1_ip_asc(lib->SSL_get0_param(ssl), host) == 1 ? 0 : -1;
    }
    return lib->SSL_set1_host(ssl, host) == 1
            && lib->SSL_ctrl(ssl, HWS_SSL_CTRL_SET_TLSEXT_HOSTNAME, 0, (void *) (uintptr_t) host) == 1
        ? 0
        : -1;
}

/* Says why the handshake ended with rc. Returns whether the broker closed the connection or did not answer. */
static bool explain(hws_tls_t *tls, const hws_address_t *broker, int rc, char *error, size_t capacity) {
    const char *host = broker->host, *port = broker->port, *fault = tls_fault(&tls->carrier);
    long verified = tls->lib->SSL_get_verify_result(tls->ssl);
    int saved = errno;
    if (verified == HWS_X509_V_ERR_HOSTNAME_MISMATCH || verified == HWS_X509_V_ERR_IP_ADDRESS_MISMATCH) {
        snprintf(error, capacity, "the certificate of the broker at %s:%s is not for %s", host, port, host);
        return false;
    }
    if (verified != HWS_X509_V_OK) {
        snprintf(error, capacity,
                 "the certificate of the broker at %s:%s is not trusted: %s (HAWSER_CA_FILE names its "
                 "authority)",
                 host, port, tls->lib->X509_verify_cert_error_string(verified));
        return false;
    }
    if (rc == -2 || saved == EAGAIN) {
        snprintf(error, capacity, "the broker at %s:%s did not answer the TLS handshake in time", host, port);
        return true;
    }
    bool is_closed = fault == NULL && (rc == 0 || saved == ECONNRESET || saved == EPIPE);
    snprintf(error, capacity, "no TLS with the broker at %s:%s: %s (does this port speak TLS?)", host, port,
             fault != NULL   ? fault
                 : is_closed ? "it closed the connection"
                             : strerror(saved));
    return is_closed;
}

static int shake_hands(hws_tls_t *tls, uint32_t timeout_ms) {
    int64_t until_ms = now_ms() + timeout_ms;
    for (;;) {
        short events = 0;
        tls->lib->ERR_clear_error();
        errno = 0;
        int rc = outcome(tls, tls->lib->SSL_connect(tls->ssl), &events);
        if (rc != -2) {
            return rc;
        }
        if (await(tls, events, until_ms) != 0) {
            return -2;
        }
    }
}

/* Connects ssl to the socket. Returns 0, or -1. */
static int attach(hws_tls_t *tls) {
    static hws_bio_method_t *method; /* one for the process */
    if (method == NULL) {
        method = library->BIO_meth_new(HWS_BIO_TYPE_SOURCE_SINK, "hawser");
        if (method == NULL) {
            return -1;
        }
        library->BIO_meth_set_write(method, bio_write);
        library->BIO_meth_set_read(method, bio_read);
        library->BIO_meth_set_ctrl(method, bio_ctrl);
    }
    hws_bio_t *bio = library->BIO_new(method);
    if (bio == NULL) {
        return -1;
    }
    library->BIO_set_data(bio, tls);
    library->BIO_set_init(bio, 1);
    library->SSL_set_bio(tls->ssl, bio, bio);
    return 0;
}

hws_carrier_t *hws_tls_begin(int fd, const hws_address_t *broker, const char *ca_file, uint32_t timeout_ms,
                             bool *is_closed_p, char *error_p, size_t error_capacity) {
    const char *host = broker->host;
    *is_closed_p = false;
    library = hws_libssl_load(error_p, error_capacity);
    hws_ssl_context_t *context = library == NULL ? NULL : make_context(library, ca_file, error_p, error_capacity);
    if (context == NULL) {
        close(fd);
        return NULL;
    }
    hws_tls_t *tls = calloc(1, sizeof *tls);
    hws_ssl_t *ssl = library->SSL_new(context);
    library->SSL_CTX_free(context); /* ssl holds a reference to it */
    if (tls == NULL || ssl == NULL || expect_host(library, ssl, host) != 0 || open_window(&tls->sending) != 0) {
        snprintf(error_p, error_capacity, "no memory for the TLS connection to %s", host);
        goto no_ssl;
    }
    if (open_window(&tls->received) != 0) {
        snprintf(error_p, error_capacity, "no memory for the TLS connection to %s", host);
        goto no_window;
    }
    tls->carrier.ops = &tls_ops;
    tls->lib = library;
    tls->ssl = ssl;
    atomic_init(&tls->fd, fd);
    pthread_mutex_init(&tls->lock, NULL);
    hws_spin_init_by_calls(&tls->spin);
    if (attach(tls) == 0) {
        int rc = shake_hands(tls, timeout_ms);
        if (rc > 0) {
            return &tls->carrier;
        }
        *is_closed_p = explain(tls, broker, rc, error_p, error_capacity);
    } else {
        snprintf(error_p, error_capacity, "no memory for the TLS connection to %s", host);
    }
    close_window(&tls->received);
no_window:
    close_window(&tls->sending);
no_ssl:
    if (ssl != NULL) {
        library->SSL_free(ssl);
    }
    free(tls);
    close(fd);
    return NULL;
}
