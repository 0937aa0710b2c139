#include "plain_socket.h"

#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Precedes each exchange and tells the child its part. Part of the measured bytes, as a record's header is. */
typedef struct exchange {
    uint64_t out_bytes;
    uint64_t in_bytes;
    uint64_t unused[2];
} exchange_t;

#define CHUNK_BYTES ((size_t) 1 << 20)

static int send_all(int fd, const void *data, size_t bytes, int flags) {
    const char *at = data;
    while (bytes > 0) {
        ssize_t sent = send(fd, at, bytes, flags | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return -1;
        }
        at += sent;
        bytes -= (size_t) sent;
    }
    return 0;
}

static int receive_all(int fd, void *data, size_t bytes) {
    char *at = data;
    while (bytes > 0) {
        ssize_t got = recv(fd, at, bytes, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return -1;
        }
        at += got;
        bytes -= (size_t) got;
    }
    return 0;
}

/* The child reads into one chunk's buffer and writes from it, so that only the socket is measured. */
static void answer(int fd) {
    char *buffer = malloc(CHUNK_BYTES);
    exchange_t exchange;
    if (buffer == NULL) {
        _exit(1);
    }
    memset(buffer, 1, CHUNK_BYTES);
    while (receive_all(fd, &exchange, sizeof(exchange)) == 0) {
        for (uint64_t left = exchange.out_bytes; left > 0;) {
            size_t piece = left < CHUNK_BYTES ? left : CHUNK_BYTES;
            if (receive_all(fd, buffer, piece) != 0) {
                _exit(1);
            }
            left -= piece;
        }
        for (uint64_t left = exchange.in_bytes; left > 0;) {
            size_t piece = left < CHUNK_BYTES ? left : CHUNK_BYTES;
            if (send_all(fd, buffer, piece, 0) != 0) {
                _exit(1);
            }
            left -= piece;
        }
    }
    _exit(0);
}

plain_socket_t plain_socket_open(void) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    if (listener < 0 || bind(listener, (struct sockaddr *) &address, length) != 0 || listen(listener, 1) != 0
        || getsockname(listener, (struct sockaddr *) &address, &length) != 0) {
        check_fail("a listening socket, expected one, got %s", strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *) &address, length) != 0) {
            _exit(1);
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        close(listener);
        answer(fd);
    }
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    if (child < 0 || fd < 0) {
        check_fail("a connected socket, expected one, got %s", strerror(errno));
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return (plain_socket_t) {fd, (int) child};
}

void plain_socket_exchange(const plain_socket_t *plain, void *buffer, size_t out, size_t in) {
    exchange_t exchange = {out, in, {0, 0}};
    int failed = send_all(plain->fd, &exchange, sizeof(exchange), MSG_MORE) != 0
        || send_all(plain->fd, buffer, out, 0) != 0 || receive_all(plain->fd, buffer, in) != 0;
    if (failed) {
        check_fail("an exchange over the plain socket, expected success, got %s", strerror(errno));
    }
}

void plain_socket_close(plain_socket_t *plain) {
    shutdown(plain->fd, SHUT_RDWR); /* children of later sockets have a copy of the descriptor */
    close(plain->fd);
    waitpid(plain->child, NULL, 0);
}
