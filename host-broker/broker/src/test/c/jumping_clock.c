/*
 * Replaces the C library's wall clock in a process that loads this library through LD_PRELOAD. HAWSER_JUMPING_CLOCK
 * names a file with a signed 64-bit number, which a test changes at any time. The wall clock runs ahead by that number
 * of seconds. All other clocks are the kernel's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("HAWSER_JUMPING_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*ahead), PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        abort(); /* a clock that does not jump would let each test pass */
    close(fd);
    ahead = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int) syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && ahead)
        now->tv_sec += *ahead;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void) zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now)
        *now = exact.tv_sec;
    return exact.tv_sec;
}
