/*
 * The reference for a carrier over TCP: a plain socket over loopback to a separate process, measured in the same run.
 */
#ifndef HAWSER_BENCHMARKS_PLAIN_SOCKET_H
#define HAWSER_BENCHMARKS_PLAIN_SOCKET_H

#include <stddef.h>

/* A connected pair: this process's end, and a child that answers. */
typedef struct plain_socket {
    int fd;
    int child;
} plain_socket_t;

/* Starts the child; ends the program on failure. It forks, so call it before CUDA is used. */
plain_socket_t plain_socket_open(void);

/*
 * One exchange: sends `out` bytes and receives `in` bytes, both at least 1. The child only reads and writes the bytes.
 */
void plain_socket_exchange(const plain_socket_t *plain, void *buffer, size_t out, size_t in);

void plain_socket_close(plain_socket_t *plain);

#endif
