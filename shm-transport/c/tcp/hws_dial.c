#include "hws_dial.h"

#include "../hws_log.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * A broker that vanished silently (power, cable) is detected after this time: by unacknowledged data, or by keepalive
 * probes when we only wait. The time is longer than a stall of a loaded but living peer, whose kernel answers probes.
 */
#define VANISHED_MS 20000u
#define KEEPALIVE_IDLE_S 5
#define KEEPALIVE_INTERVAL_S 3
#define KEEPALIVE_PROBES 5

#define FIRST_PAUSE_MS 50
#define LONGEST_PAUSE_MS 1000
/* Users notice a program that does nothing for longer. */
#define LOG_AFTER_MS 1000
/*
 * The limit for one address when the dial is patient. A SYN to a machine that is still starting is lost, and the kernel
 * repeats it only after 1, 3, 7, 15... seconds. The limit leaves time for one repetition and for a slow path.
 */
#define ATTEMPT_MS 2500

/* The state of a broker: its newest error, and whether that may be temporary. */
typedef struct outcome {
    char reason[400]; /* with the longest name */
    bool passing;
} outcome_t;

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
        /* Checked at least once: an answer that has arrived counts, however late this thread gets a processor. */
        int64_t left = deadline_ms - now_ms();
        struct pollfd wanted = {.fd = fd, .events = POLLOUT};
        int ready = poll(&wanted, 1, left > 0 ? (int) left : 0);
        if (ready < 0 && errno != EINTR) {
            return errno;
        }
        if (ready > 0) {
            int error = 0;
            socklen_t bytes = sizeof error;
            return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 ? errno : error;
        }
        if (left <= 0) {
            return ETIMEDOUT;
        }
    }
}

/*
 * Sets options that lower latency and detect a vanished peer. A kernel that lacks one of them still carries the
 * session.
 */
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

/* Whether an error of connect() may be temporary: the broker or the network may still be starting. */
static bool passes(int error) {
    switch (error) {
        case ECONNREFUSED:
        case ECONNRESET:
        case ETIMEDOUT:
        case EHOSTUNREACH:
        case EHOSTDOWN:
        case ENETUNREACH:
        case ENETDOWN:
        case EADDRNOTAVAIL: /* IPv6 before the interface has an address */
            return true;
        default:
            return false;
    }
}

/* Whether an error of getaddrinfo() may be temporary: before the network is up, resolvers return any of these. */
static bool name_may_come(int error) {
    return error == EAI_AGAIN || error == EAI_NONAME || error == EAI_NODATA || error == EAI_FAIL;
}

/* Connects to one address and makes the socket blocking. Returns it, or -1 with an errno in error_p. */
static int dial_address(const struct addrinfo *address, int64_t deadline_ms, int *error_p) {
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        *error_p = errno;
        return -1;
    }
    *error_p = connect_until(fd, address->ai_addr, address->ai_addrlen, deadline_ms);
    if (*error_p == 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0) {
        *error_p = errno;
    }
    if (*error_p == 0) {
        return fd;
    }
    close(fd);
    return -1;
}

/* Tries each address of a broker's name once. Returns the socket, or -1 and the outcome. */
static int dial_broker(const hws_address_t *broker, bool patient, int64_t deadline_ms, outcome_t *outcome) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses = NULL;
    int rc = getaddrinfo(broker->host, broker->port, &hints, &addresses);
    if (rc != 0) {
        snprintf(outcome->reason, sizeof outcome->reason, "no address for the broker %s: %s", broker->host,
                 gai_strerror(rc));
        outcome->passing = name_may_come(rc);
        return -1;
    }
    bool known = outcome->passing; /* from an earlier round */
    outcome->passing = false;
    int fd = -1;
    for (struct addrinfo *each = addresses; each != NULL && fd < 0; each = each->ai_next) {
        int64_t until_ms = deadline_ms, whole_ms = now_ms() + ATTEMPT_MS;
        if (patient && whole_ms < deadline_ms) {
            until_ms = whole_ms;
        }
        int error;
        fd = dial_address(each, until_ms, &error);
        bool passing = passes(error);
        /*
         * A temporary error is the better reason (the other address family may be switched off). An attempt that the
         * deadline cut short is no reason.
         */
        bool cut = error == ETIMEDOUT && until_ms == deadline_ms && known;
        if (fd < 0 && !cut && (passing || !outcome->passing)) {
            snprintf(outcome->reason, sizeof outcome->reason, "no connection to the broker %s:%s: %s", broker->host,
                     broker->port, strerror(error));
        }
        outcome->passing |= fd < 0 && passing;
    }
    freeaddrinfo(addresses);
    return fd;
}

/* Tries each broker once. Returns the socket and the broker's index, or -1 and the outcomes. */
static int dial_once(const hws_dial_t *dial, int64_t deadline_ms, outcome_t *outcomes, unsigned *chosen_p) {
    for (unsigned i = 0; i < dial->count; i++) {
        /* A broker that swallows packets leaves the others their share. */
        int64_t now = now_ms(), until_ms = now + (deadline_ms - now) / (dial->count - i);
        int fd = dial_broker(&dial->brokers[i], dial->patient, until_ms, &outcomes[i]);
        if (fd >= 0) {
            *chosen_p = i;
            return fd;
        }
    }
    return -1;
}

/* Writes the reasons of all brokers. Returns whether one of them may be temporary. */
static bool sum_up(const hws_dial_t *dial, const outcome_t *outcomes, char *text_p, size_t capacity) {
    bool passing = false;
    size_t used = 0;
    for (unsigned i = 0; i < dial->count; i++) {
        passing |= outcomes[i].passing;
        if (used < capacity) {
            used += (size_t) snprintf(text_p + used, capacity - used, "%s%s", i == 0 ? "" : "; ", outcomes[i].reason);
        }
    }
    return passing;
}

static void pause_for(int64_t pause_ms) {
    struct timespec left = {.tv_sec = pause_ms / 1000, .tv_nsec = (pause_ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

int hws_dial(const hws_dial_t *dial, unsigned *chosen_p, char *error_p, size_t error_capacity) {
    int64_t began_ms = now_ms(), deadline_ms = began_ms + dial->timeout_ms, pause_ms = FIRST_PAUSE_MS;
    outcome_t outcomes[HWS_MAX_BROKERS] = {{.passing = false}};
    bool logged = false;
    for (;;) {
        int fd = dial_once(dial, deadline_ms, outcomes, chosen_p);
        if (fd >= 0) {
            set_options(fd);
            return fd;
        }
        int64_t now = now_ms(), left = deadline_ms - now;
        bool passing = sum_up(dial, outcomes, error_p, error_capacity);
        if (!dial->patient || !passing || left < FIRST_PAUSE_MS) {
            return -1;
        }
        if (!logged && now - began_ms >= LOG_AFTER_MS) {
            hws_log(HWS_WARN, "%s; trying again for up to %u s", error_p, (unsigned) (left + 999) / 1000);
            logged = true;
        }
        /* Halved towards the end, so that the last attempt comes shortly before the deadline. */
        pause_for(pause_ms < left / 2 ? pause_ms : left / 2);
        pause_ms = pause_ms * 2 < LONGEST_PAUSE_MS ? pause_ms * 2 : LONGEST_PAUSE_MS;
    }
}
