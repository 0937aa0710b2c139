/*
 * A guest's end of slot 0 of a region that Java has formatted:
 *   hws_ring_peer FILE send|receive SEED RECORDS WORDS     sends in the command ring or reads the reply ring
 *   hws_ring_peer FILE ping SPIN_NS ROUNDS PAUSE_US        sends 32 bytes, awaits 32; prints percentiles in ns and sleeps
 *   hws_ring_peer FILE lock BYTE                           holds a lock on a byte of the file until standard input ends
 */
#include "hws_region.h"
#include "tests/ring_stream.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct region {
    uint8_t *base;
    hws_region_header_t header;
    hws_region_guest_t *guest;
    hws_region_host_t *host;
} region_t;

static region_t map(int fd) {
    struct stat stat;
    HWS_CHECK(fstat(fd, &stat) == 0);
    region_t region;
    region.base = mmap(NULL, (size_t) stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    HWS_CHECK(region.base != MAP_FAILED);
    HWS_CHECK(__atomic_load_n(&((hws_region_header_t *) region.base)->magic, __ATOMIC_ACQUIRE) == HWS_REGION_MAGIC);
    memcpy(&region.header, region.base, sizeof region.header);
    HWS_CHECK(region.header.region_version == HWS_REGION_VERSION);
    HWS_CHECK(region.header.region_bytes == (uint64_t) stat.st_size);
    region.guest = (hws_region_guest_t *) (region.base + region.header.slots_offset);
    region.host = (hws_region_host_t *) (region.base + region.header.slots_offset + HWS_PAGE_BYTES);
    return region;
}

static stream_end_t command(const region_t *region) {
    stream_end_t end = {0};
    hws_ring_attach_writer(&end.ring, (uint8_t *) region->guest + region->header.command_offset,
                           region->header.command_bytes, &region->host->command_head, &region->guest->command_tail);
    hws_spin_init(&end.spin);
    end.own_waiting = &region->guest->room_waiting;
    end.own_signal = &region->host->reply_signal;
    end.peer_waiting = &region->host->command_waiting;
    end.peer_signal = &region->guest->command_signal;
    return end;
}

static stream_end_t reply(const region_t *region) {
    stream_end_t end = {0};
    hws_ring_attach_reader(&end.ring, (uint8_t *) region->guest + region->header.reply_offset,
                           region->header.reply_bytes, &region->guest->reply_head, &region->host->reply_tail);
    hws_spin_init(&end.spin);
    end.own_waiting = &region->guest->reply_waiting;
    end.own_signal = &region->host->reply_signal;
    end.peer_waiting = &region->host->room_waiting;
    end.peer_signal = &region->guest->command_signal;
    return end;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return x < y ? -1 : x > y;
}

static void ping(const region_t *region, uint32_t spin_ns, uint64_t rounds, uint64_t pause_us) {
    stream_end_t out = command(region), in = reply(region);
    out.spin.limit_ns = out.spin.budget_ns = in.spin.limit_ns = in.spin.budget_ns = spin_ns;
    uint64_t *took = calloc(rounds, sizeof *took), record[4] = {0};
    HWS_CHECK(took != NULL);
    for (uint64_t n = 0; n < rounds; n++) {
        if (pause_us != 0) {
            usleep((useconds_t) pause_us);
        }
        uint64_t start = now_ns();
        record[0] = sizeof record;
        record[1] = n;
        stream_send(&out, record, sizeof record);
        stream_receive(&in, record, sizeof record);
        took[n] = now_ns() - start;
        HWS_CHECK(record[0] == sizeof record && record[1] == n);
    }
    qsort(took, rounds, sizeof *took, compare);
    printf("%llu %llu %llu %llu\n", (unsigned long long) took[rounds / 2], (unsigned long long) took[rounds * 9 / 10],
           (unsigned long long) took[rounds * 99 / 100], (unsigned long long) in.sleeps);
    free(took);
}

static void hold(int fd, long byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    HWS_CHECK(fcntl(fd, F_SETLK, &lock) == 0);
    printf("locked\n");
    fflush(stdout);
    HWS_CHECK(getchar() == EOF);
}

int main(int argc, char **argv) {
    HWS_CHECK(argc == 4 || argc == 6);
    int fd = open(argv[1], O_RDWR | O_CLOEXEC);
    HWS_CHECK(fd >= 0);
    uint64_t first = strtoull(argv[3], NULL, 10);
    if (strcmp(argv[2], "lock") == 0) {
        hold(fd, (long) first);
        return 0;
    }
    HWS_CHECK(argc == 6);
    region_t region = map(fd);
    uint64_t second = strtoull(argv[4], NULL, 10), third = strtoull(argv[5], NULL, 10);
    if (strcmp(argv[2], "send") == 0) {
        stream_end_t end = command(&region);
        stream_send_all(&end, first, second, third);
    } else if (strcmp(argv[2], "receive") == 0) {
        stream_end_t end = reply(&region);
        stream_receive_all(&end, first, second, third);
    } else {
        HWS_CHECK(strcmp(argv[2], "ping") == 0);
        ping(&region, (uint32_t) first, second, third);
    }
    return 0;
}
