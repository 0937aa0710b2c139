// Two processes that communicate through pipes, for tests of memory and events shared between processes.
#ifndef HAWSER_PROGRAMS_CHECK_PROCESSES_H
#define HAWSER_PROGRAMS_CHECK_PROCESSES_H

#include "check.h"

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

/* The function of one process; each process reads from `in` what the other wrote to its `out`. */
typedef void check_side_t(int in, int out);

/* Forks and runs both processes. Call it before the first CUDA call. Returns when both functions have returned and the
 * child has exited with 0. */
static inline void check_processes(check_side_t *child, check_side_t *parent) {
    int down[2], up[2];
    check_true("pipes", pipe(down) == 0 && pipe(up) == 0);
    pid_t forked = fork();
    check_true("fork", forked >= 0);
    if (forked == 0) {
        close(down[1]);
        close(up[0]);
        child(down[0], up[1]);
        exit(0);
    }
    close(down[0]);
    close(up[1]);
    parent(up[0], down[1]);
    int status = 0;
    check_true("the child ends", waitpid(forked, &status, 0) == forked);
    check_true("the child ends well", WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
