#include "hws_tcp.h"

#include "../shm/hws_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * A broker that vanished without a word (power, cable) is noticed after this long: by unacknowledged data, or by
 * keepalive probes when we only wait. Longer than a stall of a loaded but living peer, whose kernel answers probes.
 */
#define VANISHED_MS 20000u
#define KEEPALIVE_IDLE_S 5
#define KEEPALIVE_INTERVAL_S 3
#define KEEPALIVE_PROBES 5

typedef struct hws_tcp {
    hws_carrier_t carrier;
    _Atomic int fd;
    hws_spin_t spin; /* of who receives: one thread at a time */
} hws_tcp_t;

static int tcp_send(hws_carrier_t *carrier, struct iovec *pieces, int count) {
    hws_tcp_t *tcp = (hws_tcp_t *) carrier;
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t) count};
    while (message.msg_iovlen > 0) {
        /* MSG_NOSIGNAL: a broker that is gone must not kill the program by SIGPIPE. */
        ssize_t sent = sendmsg(tcp->fd, &message, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR) {
                continue;
            }
            return -1;
        }
        size_t left = (size_t) sent;
        while (message.msg_iovlen > 0 && left >= message.msg_iov->iov_len) {
            left -= message.msg_iov->iov_len;
            message.msg_iov++;
            message.msg_iovlen--;
        }
        if (left > 0) {
            message.msg_iov->iov_base = (char *) message.msg_iov->iov_base + left;
            message.msg_iov->iov_len -= left;
        }
    }
    return 0;
}

static ssize_t tcp_receive(hws_carrier_t *carrier, const struct iovec *pieces, int count) {
    hws_tcp_t *tcp = (hws_tcp_t *) carrier;
    struct msghdr message = {.msg_iov = (struct iovec *) (uintptr_t) pieces, .msg_iovlen = (size_t) count};
    /* A broker that is near answers before this thread would be asleep. */
    hws_spin_begin(&tcp->spin);
    while (hws_spin_once(&tcp->spin)) {
        ssize_t received = recvmsg(tcp->fd, &message, MSG_DONTWAIT);
        if (received >= 0 || (errno != EAGAIN && errno != EINTR)) {
            hws_spin_end(&tcp->spin, false);
            return received;
        }
    }
    hws_spin_end(&tcp->spin, true);
    for (;;) {
        ssize_t received = recvmsg(tcp->fd, &message, 0);
        if (received >= 0 || errno != EINTR) {
            return received;
        }
    }
}

static int tcp_set_timeout(hws_carrier_t *carrier, uint32_t timeout_ms) {
    hws_tcp_t *tcp = (hws_tcp_t *) carrier;
    struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = (timeout_ms % 1000) * 1000};
    int rc = setsockopt(tcp->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return rc != 0 ? rc : setsockopt(tcp->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static void tcp_shutdown(hws_carrier_t *carrier) {
    shutdown(((hws_tcp_t *) carrier)->fd, SHUT_RDWR);
}

static void tcp_close(hws_carrier_t *carrier) {
    hws_tcp_t *tcp = (hws_tcp_t *) carrier;
    int fd = atomic_exchange(&tcp->fd, -1);
    if (fd >= 0) {
        close(fd);
    }
}

static const hws_carrier_ops_t tcp_ops = {
    .name = "tcp",
    .send = tcp_send,
    .receive = tcp_receive,
    .set_timeout = tcp_set_timeout,
    .shutdown = tcp_shutdown,
    .close = tcp_close,
};

hws_carrier_t *hws_tcp_adopt(int fd) {
    hws_tcp_t *tcp = malloc(sizeof *tcp);
    if (tcp == NULL) {
        return NULL;
    }
    tcp->carrier.ops = &tcp_ops;
    atomic_init(&tcp->fd, fd);
    hws_spin_init_by_calls(&tcp->spin);
    return &tcp->carrier;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Connects fd before the deadline. Returns 0 or an errno. */
static int connect_until(int fd, const struct sockaddr *address, socklen_t length, int64_t deadline_ms) {
    if (connect(fd, address, length) == 0) {
        return 0;
    }
    if (errno != EINPROGRESS && errno != EINTR) {
        return errno;
    }
    for (;;) {
        int64_t left = deadline_ms - now_ms();
        if (left <= 0) {
            return ETIMEDOUT;
        }
        struct pollfd wanted = {.fd = fd, .events = POLLOUT};
        int ready = poll(&wanted, 1, (int) left);
        if (ready < 0 && errno != EINTR) {
            return errno;
        }
        if (ready > 0) {
            int error = 0;
            socklen_t bytes = sizeof error;
            return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 ? errno : error;
        }
    }
}

/* Options that make latency low and a vanished peer noticed. A kernel that lacks one still carries the session. */
static void set_options(int fd) {
    int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S, probes = KEEPALIVE_PROBES;
    unsigned vanished = VANISHED_MS;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &vanished, sizeof vanished);
}

int hws_tcp_open(const char *host, const char *port, uint32_t timeout_ms, char *error_p, size_t error_capacity) {
    int64_t deadline_ms = now_ms() + timeout_ms;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses = NULL;
    int rc = getaddrinfo(host, port, &hints, &addresses);
    if (rc != 0) {
        snprintf(error_p, error_capacity, "no address for the broker %s: %s", host, gai_strerror(rc));
        return -1;
    }
    int error = ETIMEDOUT, fd = -1;
    for (struct addrinfo *each = addresses; each != NULL; each = each->ai_next) {
        fd = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            error = errno;
            continue;
        }
        error = connect_until(fd, each->ai_addr, each->ai_addrlen, deadline_ms);
        if (error == 0) {
            break;
        }
        close(fd);
        fd = -1;
    }
    freeaddrinfo(addresses);
    if (fd >= 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0) {
        error = errno;
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        snprintf(error_p, error_capacity, "no connection to the broker %s:%s: %s", host, port, strerror(error));
        return -1;
    }
    set_options(fd);
    return fd;
}

hws_carrier_t *hws_tcp_connect(const char *host, const char *port, uint32_t timeout_ms, char *error_p,
                               size_t error_capacity) {
    int fd = hws_tcp_open(host, port, timeout_ms, error_p, error_capacity);
    if (fd < 0) {
        return NULL;
    }
    hws_carrier_t *carrier = hws_tcp_adopt(fd);
    if (carrier == NULL) {
        snprintf(error_p, error_capacity, "no memory for the connection");
        close(fd);
    }
    return carrier;
}
