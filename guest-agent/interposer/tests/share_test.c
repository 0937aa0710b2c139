/* Descriptors of memory: files that other programs have made, and the end of the processes that have a descriptor. */
#include "hws_share.h"
#include "hws_test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE_BYTES 24
#define MARK_BYTES 8

static const uint64_t NAME[HWS_SHARE_NAME_WORDS] = {0x0123456789abcdefull, 0xfedcba9876543210ull};

static uint32_t next(uint32_t *state_p) {
    *state_p = *state_p * 1664525u + 1013904223u;
    return *state_p >> 8;
}

/* Reads a descriptor whose queue holds these bytes as one message, in a socket of the type. */
static bool reads(int type, const void *bytes, size_t count, uint64_t *name) {
    int ends[2];
    HWS_CHECK(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) == 0);
    HWS_CHECK(count == 0 || send(ends[0], bytes, count, 0) == (ssize_t) count);
    bool read = hws_share_read(ends[1], name);
    close(ends[0]);
    close(ends[1]);
    return read;
}

/* The message in a descriptor of the library. */
static void message_of(const uint64_t *name, uint8_t *bytes) {
    int descriptor;
    hws_share_end_t end;
    HWS_CHECK(hws_share_make(name, &descriptor, &end));
    HWS_CHECK(recv(descriptor, bytes, MESSAGE_BYTES + 1, MSG_PEEK) == MESSAGE_BYTES);
    close(descriptor);
    HWS_CHECK(hws_share_ended(&end));
}

static void shouldReadItsOwnMessageAndNoOther(void) {
    uint8_t message[MESSAGE_BYTES + 1] = {0}, large[4096];
    uint64_t name[HWS_SHARE_NAME_WORDS] = {0};
    message_of(NAME, message);
    HWS_CHECK(reads(SOCK_SEQPACKET, message, MESSAGE_BYTES, name) && memcmp(name, NAME, sizeof name) == 0);
    for (size_t length = 0; length <= sizeof message; length++) {
        HWS_CHECK(reads(SOCK_SEQPACKET, message, length, name) == (length == MESSAGE_BYTES));
        HWS_CHECK(reads(SOCK_DGRAM, message, length, name) == (length == MESSAGE_BYTES));
    }
    for (size_t bit = 0; bit < 8 * MESSAGE_BYTES;
         bit++) { /* each bit of the name counts, and none of the mark may differ */
        message[bit / 8] ^= (uint8_t) (1u << bit % 8);
        HWS_CHECK(reads(SOCK_SEQPACKET, message, MESSAGE_BYTES, name) == (bit >= 8 * MARK_BYTES));
        HWS_CHECK(memcmp(name, NAME, sizeof name) != 0 || bit < 8 * MARK_BYTES);
        memcpy(name, NAME, sizeof name);
        message[bit / 8] ^= (uint8_t) (1u << bit % 8);
    }
    uint32_t state = 1;
    for (int round = 0; round < 5000; round++) {
        size_t length = next(&state) % sizeof large;
        for (size_t i = 0; i < length; i++) {
            large[i] = (uint8_t) next(&state);
        }
        memcpy(large, message, round % 2 == 0 ? MARK_BYTES : 0);
        memset(name, 0, sizeof name);
        bool right = round % 2 == 0 && length == MESSAGE_BYTES;
        HWS_CHECK(reads(SOCK_SEQPACKET, large, length, name) == right);
        HWS_CHECK(memcmp(name, large + MARK_BYTES, sizeof name) == 0 || !right);
    }
}

static void shouldRefuseEveryOtherFileWithoutWaiting(void) {
    int pipes[2], unconnected = socket(AF_UNIX, SOCK_STREAM, 0);
    uint64_t name[HWS_SHARE_NAME_WORDS];
    HWS_CHECK(pipe(pipes) == 0 && unconnected >= 0);
    const int files[] = {-1,
                         1 << 20,
                         INT32_MAX,
                         pipes[0],
                         pipes[1],
                         unconnected,
                         eventfd(5, 0),
                         memfd_create("x", 0),
                         open("/dev/zero", O_RDWR),
                         open("/dev/null", O_RDWR),
                         open("/", O_RDONLY),
                         socket(AF_INET, SOCK_STREAM, 0)};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        HWS_CHECK(!hws_share_read(files[i], name));
        close(files[i]);
    }
}

/* A process that has the descriptor is killed after its exporter has closed it. */
static void shouldEndWithTheLastProcessThatHasTheDescriptor(void) {
    int descriptor, ready[2];
    hws_share_end_t end;
    char read_in_child = 0;
    HWS_CHECK(pipe(ready) == 0 && hws_share_make(NAME, &descriptor, &end));
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        uint64_t name[HWS_SHARE_NAME_WORDS];
        close(end.fd);
        read_in_child = hws_share_read(descriptor, name) && memcmp(name, NAME, sizeof name) == 0 ? 'y' : 'n';
        _exit(write(ready[1], &read_in_child, 1) == 1 ? pause() : 1);
    }
    HWS_CHECK(child > 0 && read(ready[0], &read_in_child, 1) == 1 && read_in_child == 'y');
    close(descriptor);
    HWS_CHECK(!hws_share_ended(&end));
    HWS_CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    HWS_CHECK(hws_share_ended(&end));
    close(ready[0]);
    close(ready[1]);
}

static void shouldLeaveANumberThatTheProgramHasReused(void) {
    int descriptor, other = open("/dev/null", O_RDWR);
    hws_share_end_t end;
    HWS_CHECK(other >= 0 && hws_share_make(NAME, &descriptor, &end));
    HWS_CHECK(dup2(other, end.fd) == end.fd);
    HWS_CHECK(hws_share_ended(&end));
    HWS_CHECK(fcntl(end.fd, F_GETFD) >= 0);
    close(end.fd);
    close(other);
    close(descriptor);
}

int main(void) {
    HWS_RUN(shouldReadItsOwnMessageAndNoOther);
    HWS_RUN(shouldRefuseEveryOtherFileWithoutWaiting);
    HWS_RUN(shouldEndWithTheLastProcessThatHasTheDescriptor);
    HWS_RUN(shouldLeaveANumberThatTheProgramHasReused);
    return 0;
}
