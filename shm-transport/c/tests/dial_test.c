/* Connecting to a broker that is there, comes later, or never comes. */
#include "../tcp/hws_dial.h"
#include "hws_test.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The number of look-ups that will still fail, and their error: the resolver of a machine that is still starting. */
static atomic_int lookups_to_fail, lookup_failure, lookups;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    typedef int resolver_t(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    resolver_t *real;
    *(void **) &real = dlsym(RTLD_NEXT, "getaddrinfo");
    atomic_fetch_add(&lookups, 1);
    return atomic_fetch_sub(&lookups_to_fail, 1) > 0 ? atomic_load(&lookup_failure)
                                                     : real(node, service, hints, result);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A port of this process, which refuses until the socket listens. */
typedef struct door {
    int fd;
    hws_address_t broker;
} door_t;

static door_t make_door(void) {
    door_t door = {.fd = socket(AF_INET, SOCK_STREAM, 0), .broker = {.host = "127.0.0.1"}};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    HWS_CHECK(door.fd >= 0 && bind(door.fd, (struct sockaddr *) &address, length) == 0);
    HWS_CHECK(getsockname(door.fd, (struct sockaddr *) &address, &length) == 0);
    snprintf(door.broker.port, sizeof door.broker.port, "%u", ntohs(address.sin_port));
    return door;
}

static void *open_later(void *argument) {
    usleep(400000);
    HWS_CHECK(listen(((door_t *) argument)->fd, 1) == 0);
    return NULL;
}

static unsigned chosen; /* the last broker */

/* The lines of a failed dial on stderr, and its duration. */
typedef struct failure {
    char error[512], text[1024];
    int64_t took_ms;
} failure_t;

static failure_t fail(const hws_dial_t *dial) {
    failure_t failure = {.error = ""};
    int ends[2], own = dup(STDERR_FILENO);
    HWS_CHECK(own >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    int64_t began_ms = now_ms();
    int fd = hws_dial(dial, &chosen, failure.error, sizeof failure.error);
    failure.took_ms = now_ms() - began_ms;
    HWS_CHECK(dup2(own, STDERR_FILENO) >= 0);
    close(own);
    close(ends[1]);
    HWS_CHECK(read(ends[0], failure.text, sizeof failure.text - 1) >= 0);
    close(ends[0]);
    HWS_CHECK(fd == -1);
    return failure;
}

static void shouldFindABrokerThatStartsLater(void) {
    door_t door = make_door();
    char error[256];
    pthread_t opener;
    const hws_dial_t dial = {&door.broker, 1, 20000, true};
    int64_t began_ms = now_ms();
    HWS_CHECK(pthread_create(&opener, NULL, open_later, &door) == 0);
    int fd = hws_dial(&dial, &chosen, error, sizeof error);
    HWS_CHECK(fd >= 0 && now_ms() - began_ms >= 300);
    HWS_CHECK(pthread_join(opener, NULL) == 0);
    close(fd);
    close(door.fd);
}

static void shouldFindABrokerWhoseNameIsKnownLater(void) {
    door_t door = make_door();
    HWS_CHECK(listen(door.fd, 1) == 0);
    const int failures[] = {EAI_AGAIN, EAI_NONAME};
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        char error[256];
        lookup_failure = failures[i];
        lookups_to_fail = 3;
        const hws_dial_t dial = {&door.broker, 1, 20000, true};
        int fd = hws_dial(&dial, &chosen, error, sizeof error);
        HWS_CHECK(fd >= 0);
        close(fd);
    }
    lookups_to_fail = 0;
    close(door.fd);
}

static void shouldGiveUpInTimeWithTheLastReason(void) {
    door_t door = make_door();
    lookup_failure = EAI_AGAIN;
    lookups_to_fail = 1;
    lookups = 0;
    failure_t failure = fail(&(hws_dial_t) {&door.broker, 1, 600, true});
    HWS_CHECK(strstr(failure.error, "no connection to the broker 127.0.0.1:") == failure.error);
    HWS_CHECK(strstr(failure.error, door.broker.port) != NULL && strstr(failure.error, ": Connection refused") != NULL);
    /* More than the one that failed; their number depends on the machine. */
    HWS_CHECK(lookups >= 2 && failure.took_ms >= 500 && failure.took_ms < 10000);
    /* The wait was too short for a line about it. */
    HWS_CHECK(failure.took_ms > 1000 || failure.text[0] == '\0');
    close(door.fd);
}

static void shouldTakeAnAnswerThatIsThereWhenTheTimeIsOver(void) {
    door_t door = make_door();
    const hws_dial_t dial = {&door.broker, 1, 0, false};
    failure_t failure = fail(&dial);
    HWS_CHECK(strstr(failure.error, ": Connection refused") != NULL);
    HWS_CHECK(listen(door.fd, 1) == 0);
    char error[256];
    int fd = hws_dial(&dial, &chosen, error, sizeof error);
    HWS_CHECK(fd >= 0);
    close(fd);
    close(door.fd);
}

static void shouldSayOnceOnWhatItWaits(void) {
    door_t door = make_door();
    failure_t failure = fail(&(hws_dial_t) {&door.broker, 1, 4000, true});
    HWS_CHECK(strstr(failure.text, "hawser: no connection to the broker 127.0.0.1:") == failure.text);
    HWS_CHECK(strstr(failure.text, "Connection refused; trying again for up to ") != NULL);
    HWS_CHECK(strchr(failure.text, '\n') == failure.text + strlen(failure.text) - 1);
    HWS_CHECK(failure.took_ms >= 3500);
    close(door.fd);
}

static void shouldAskOnceWithoutPatience(void) {
    door_t door = make_door();
    lookups = 0;
    failure_t failure = fail(&(hws_dial_t) {&door.broker, 1, 20000, false});
    HWS_CHECK(lookups == 1 && strstr(failure.error, "Connection refused") != NULL && failure.text[0] == '\0');
    close(door.fd);
}

static void shouldNotWaitForWhatDoesNotPass(void) {
    lookup_failure = EAI_SERVICE;
    lookups_to_fail = 1000;
    lookups = 0;
    failure_t failure = fail(&(hws_dial_t) {&(hws_address_t) {"127.0.0.1", "1"}, 1, 20000, true});
    HWS_CHECK(lookups == 1 && strstr(failure.error, "no address for the broker 127.0.0.1: ") == failure.error);
    lookups_to_fail = 0;
}

/* Binds a port that takes no further connection: a SYN gets no answer, as from a machine that is off. */
static door_t make_silent_door(int *filler_p) {
    door_t door = make_door();
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    HWS_CHECK(listen(door.fd, 0) == 0);
    HWS_CHECK(getsockname(door.fd, (struct sockaddr *) &address, &length) == 0);
    *filler_p = socket(AF_INET, SOCK_STREAM, 0); /* fills the queue, which nobody empties */
    HWS_CHECK(connect(*filler_p, (struct sockaddr *) &address, length) == 0);
    return door;
}

static void shouldTryBrokersInTheirOrder(void) {
    door_t closed = make_door(), first = make_door(), second = make_door();
    HWS_CHECK(listen(first.fd, 1) == 0 && listen(second.fd, 1) == 0);
    const hws_address_t brokers[] = {closed.broker, first.broker, second.broker};
    const hws_dial_t dial = {brokers, 3, 20000, true};
    char error[256];
    int fd = hws_dial(&dial, &chosen, error, sizeof error);
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    char port[8];
    HWS_CHECK(fd >= 0 && chosen == 1 && getpeername(fd, (struct sockaddr *) &peer, &length) == 0);
    snprintf(port, sizeof port, "%u", ntohs(peer.sin_port));
    HWS_CHECK(strcmp(port, first.broker.port) == 0);
    close(fd);
    close(closed.fd);
    close(first.fd);
    close(second.fd);
}

static void shouldLeaveTimeForTheBrokerAfterASilentOne(void) {
    int filler;
    door_t silent = make_silent_door(&filler), open = make_door();
    HWS_CHECK(listen(open.fd, 1) == 0);
    const hws_address_t brokers[] = {silent.broker, open.broker};
    const hws_dial_t dial = {brokers, 2, 4000, false};
    char error[256];
    int64_t began_ms = now_ms();
    int fd = hws_dial(&dial, &chosen, error, sizeof error);
    int64_t took_ms = now_ms() - began_ms;
    HWS_CHECK(fd >= 0 && chosen == 1 && took_ms >= 1900 && took_ms < 3800); /* the half of the limit, not all of it */
    close(fd);
    close(filler);
    close(silent.fd);
    close(open.fd);
}

static void shouldNameEachBrokerThatDoesNotAnswer(void) {
    door_t one = make_door(), other = make_door();
    const hws_address_t brokers[] = {one.broker, other.broker};
    failure_t failure = fail(&(hws_dial_t) {brokers, 2, 500, true});
    char expected[256];
    snprintf(expected, sizeof expected,
             "no connection to the broker 127.0.0.1:%s: Connection refused; no connection to the broker 127.0.0.1:%s: "
             "Connection refused",
             one.broker.port, other.broker.port);
    HWS_CHECK(strcmp(failure.error, expected) == 0 && failure.took_ms < 10000);
    close(one.fd);
    close(other.fd);
}

int main(void) {
    unsetenv("HAWSER_LOG");
    HWS_RUN(shouldFindABrokerThatStartsLater);
    HWS_RUN(shouldFindABrokerWhoseNameIsKnownLater);
    HWS_RUN(shouldGiveUpInTimeWithTheLastReason);
    HWS_RUN(shouldTakeAnAnswerThatIsThereWhenTheTimeIsOver);
    HWS_RUN(shouldSayOnceOnWhatItWaits);
    HWS_RUN(shouldAskOnceWithoutPatience);
    HWS_RUN(shouldNotWaitForWhatDoesNotPass);
    HWS_RUN(shouldTryBrokersInTheirOrder);
    HWS_RUN(shouldLeaveTimeForTheBrokerAfterASilentOne);
    HWS_RUN(shouldNameEachBrokerThatDoesNotAnswer);
    return 0;
}
