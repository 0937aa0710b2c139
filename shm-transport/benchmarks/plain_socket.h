/* The measure that a carrier over TCP is held against: a plain socket over loopback, in the same run, to a process of its own. */
#ifndef HAWSER_BENCHMARKS_PLAIN_SOCKET_H
#define HAWSER_BENCHMARKS_PLAIN_SOCKET_H

#include <stddef.h>

/* A connected pair: this process's end and a child that answers. */
typedef struct plain_socket {
    int fd;
    int child;
} plain_socket_t;

/* Starts the child; ends the program on failure. Call it before CUDA is used: it forks. */
plain_socket_t plain_socket_open(void);

/* One exchange: `out` bytes there, the answer of `in` bytes back; both at least 1. Neither is touched by the child beyond reading. */
void plain_socket_exchange(const plain_socket_t *plain, void *buffer, size_t out, size_t in);

void plain_socket_close(plain_socket_t *plain);

#endif
