// Two processes that communicate through pipes, for tests of memory and events shared between processes.
#ifndef HAWSER_PROGRAMS_CHECK_PROCESSES_H
#define HAWSER_PROGRAMS_CHECK_PROCESSES_H

#include "check.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void send_bytes(int descriptor, const void *data, size_t bytes) {
    check_true("a pipe takes what is written", write(descriptor, data, bytes) == (ssize_t) bytes);
}

static inline void receive_bytes(int descriptor, void *data, size_t bytes) {
    char *to = (char *) data;
    for (size_t got = 0; got < bytes;) {
        ssize_t more = read(descriptor, to + got, bytes - got);
        check_true("the other process goes on", more > 0);
        got += (size_t) more;
    }
}

/* A message of one byte and a descriptor. */
typedef struct check_passing {
    char byte;
    struct iovec data;
    struct msghdr message;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
} check_passing_t;

static inline void check_passing_begin_(check_passing_t *passing) {
    memset(passing, 0, sizeof *passing);
    passing->data.iov_base = &passing->byte;
    passing->data.iov_len = 1;
    passing->message.msg_iov = &passing->data;
    passing->message.msg_iovlen = 1;
    passing->message.msg_control = passing->control.bytes;
    passing->message.msg_controllen = sizeof passing->control.bytes;
}

/* Sends a descriptor through a Unix socket; the sender keeps it. */
static inline void send_descriptor(int socket, int descriptor) {
    check_passing_t passing;
    check_passing_begin_(&passing);
    passing.control.header.cmsg_len = CMSG_LEN(sizeof(int));
    passing.control.header.cmsg_level = SOL_SOCKET;
    passing.control.header.cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(&passing.control.header), &descriptor, sizeof descriptor);
    check_true("a socket takes a descriptor", sendmsg(socket, &passing.message, 0) == 1);
}

static inline int receive_descriptor(int socket) {
    check_passing_t passing;
    check_passing_begin_(&passing);
    check_true("the other process passes a descriptor", recvmsg(socket, &passing.message, 0) == 1);
    struct cmsghdr *header = CMSG_FIRSTHDR(&passing.message);
    check_true("a descriptor comes", header != NULL && header->cmsg_type == SCM_RIGHTS);
    int descriptor;
    memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
}

/* Forks two processes that pipes connect: each reads from `in` what the other writes to its `out`. Returns as fork(). */
static inline pid_t check_fork(int *in, int *out) {
    int down[2], up[2];
    check_true("pipes", pipe(down) == 0 && pipe(up) == 0);
    pid_t forked = fork();
    check_true("fork", forked >= 0);
    close(forked == 0 ? down[1] : down[0]);
    close(forked == 0 ? up[0] : up[1]);
    *in = forked == 0 ? down[0] : up[0];
    *out = forked == 0 ? up[1] : down[1];
    return forked;
}

/* The function of one process; each process reads from `in` what the other wrote to its `out`. */
typedef void check_side_t(int in, int out);

/* Forks and runs both processes. Call it before the first CUDA call. Returns when both functions have returned and the
 * child has exited with 0. */
static inline void check_processes(check_side_t *child, check_side_t *parent) {
    int in, out;
    pid_t forked = check_fork(&in, &out);
    if (forked == 0) {
        child(in, out);
        exit(0);
    }
    parent(in, out);
    int status = 0;
    check_true("the child ends", waitpid(forked, &status, 0) == forked);
    check_true("the child ends well", WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
