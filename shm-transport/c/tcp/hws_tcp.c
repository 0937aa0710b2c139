#include "hws_tcp.h"

#include "../shm/hws_wait.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

typedef struct hws_tcp {
    hws_carrier_t carrier;
    _Atomic int fd;
    hws_spin_t spin; /* the receiver's: one thread at a time */
} hws_tcp_t;

static int tcp_send(hws_carrier_t *carrier, struct iovec *pieces, int count) {
    hws_tcp_t *tcp = (hws_tcp_t *) carrier;
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t) count};
    while (message.msg_iovlen > 0) {
        /* MSG_NOSIGNAL: SIGPIPE must not kill the program when the broker is gone. */
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
    /* A nearby broker answers before this thread would be asleep. */
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

static int tcp_descriptor(hws_carrier_t *carrier) {
    return ((hws_tcp_t *) carrier)->fd;
}

static bool tcp_is_ready(hws_carrier_t *carrier) {
    char byte;
    ssize_t received;
    do {
        received = recv(((hws_tcp_t *) carrier)->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);
    return received >= 0 || errno != EAGAIN;
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

static void tcp_destroy(hws_carrier_t *carrier) {
    tcp_close(carrier);
    free(carrier);
}

static const hws_carrier_ops_t tcp_ops = {
    .name = "tcp",
    .send = tcp_send,
    .receive = tcp_receive,
    .set_timeout = tcp_set_timeout,
    .descriptor = tcp_descriptor,
    .is_ready = tcp_is_ready,
    .shutdown = tcp_shutdown,
    .close = tcp_close,
    .destroy = tcp_destroy,
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
