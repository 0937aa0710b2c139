/* A network link with a delay, for kernels without netem: carries packets between two tun devices, and delays each by
 * the given time.
 *
 *   delay_line NAME_A NAME_B MICROSECONDS
 *
 * Makes both devices in its own network namespace, prints READY, and runs until it is killed. The caller moves one
 * device to its destination. A full queue drops packets, as a router's does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PACKET_BYTES = 2048, MAX_PACKETS = 8192 }; /* 8192 of 1500 bytes: 10 Gbit/s for 10 ms */

typedef struct packet {
    int64_t due_ns;
    int bytes;
    unsigned char content[MAX_PACKET_BYTES];
} packet_t;

typedef struct direction {
    int from, to;
    unsigned head, tail; /* number of packets taken and added */
    packet_t *packets;
} direction_t;

static void fail(const char *what) {
    fprintf(stderr, "delay_line: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_tun(const char *name) {
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    if (strlen(name) >= sizeof request.ifr_name) {
        fprintf(stderr, "delay_line: a device's name has at most %zu characters: %s\n", sizeof request.ifr_name - 1,
                name);
        exit(2);
    }
    memcpy(request.ifr_name, name, strlen(name) + 1);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) {
        fail("/dev/net/tun");
    }
    return fd;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Reads all available packets. */
static void take(direction_t *direction, int64_t delay_ns) {
    unsigned char dropped[MAX_PACKET_BYTES];
    for (;;) {
        int full = direction->tail - direction->head == MAX_PACKETS;
        packet_t *packet = &direction->packets[direction->tail % MAX_PACKETS];
        ssize_t bytes = read(direction->from, full ? dropped : packet->content, MAX_PACKET_BYTES);
        if (bytes < 0 && errno != EAGAIN && errno != EINTR && errno != EIO) {
            fail("read"); /* EIO: the device is not up yet */
        }
        if (bytes <= 0) {
            return;
        }
        if (!full) {
            packet->bytes = (int) bytes;
            packet->due_ns = now_ns() + delay_ns;
            direction->tail++;
        }
    }
}

/* Writes all due packets. Returns the time of the next, or INT64_MAX. */
static int64_t give(direction_t *direction) {
    while (direction->head != direction->tail) {
        packet_t *packet = &direction->packets[direction->head % MAX_PACKETS];
        if (packet->due_ns > now_ns()) {
            return packet->due_ns;
        }
        /* A packet is lost if the other side is down or full; TCP sends it again. */
        if (write(direction->to, packet->content, (size_t) packet->bytes) < 0 && errno == EINTR) {
            continue;
        }
        direction->head++;
    }
    return INT64_MAX;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: delay_line NAME_A NAME_B MICROSECONDS\n");
        return 2;
    }
    int64_t delay_ns = strtoll(argv[3], NULL, 10) * 1000;
    int a = open_tun(argv[1]), b = open_tun(argv[2]);
    direction_t there = {.from = a, .to = b, .packets = calloc(MAX_PACKETS, sizeof(packet_t))};
    direction_t back = {.from = b, .to = a, .packets = calloc(MAX_PACKETS, sizeof(packet_t))};
    if (there.packets == NULL || back.packets == NULL) {
        fail("no memory for packets");
    }
    prctl(PR_SET_TIMERSLACK, 1000ul); /* the default of 50 us is half of the shortest delay in use */
    printf("READY\n");
    fflush(stdout);
    for (;;) {
        take(&there, delay_ns);
        take(&back, delay_ns);
        int64_t next_there = give(&there), next_back = give(&back);
        int64_t next = next_there < next_back ? next_there : next_back;
        struct pollfd wanted[] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
        int64_t left_ns = next == INT64_MAX ? 1000000000 : next - now_ns();
        struct timespec wait = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        if (left_ns > 0 && ppoll(wanted, 2, &wait, NULL) < 0 && errno != EINTR) {
            fail("ppoll");
        }
    }
}
