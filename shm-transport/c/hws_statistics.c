/* The line of counters that the process writes at exit. */
#include "hws_channel.h"
#include "rdma/hws_rdma_carrier.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void hws_statistics_report(void) {
    const char *where = secure_getenv("HAWSER_STATS");
    if (where == NULL || *where == '\0' || strcmp(where, "0") == 0) {
        return;
    }
    hws_statistics_t statistics;
    hws_channel_statistics(&statistics);
    hws_rdma_counts_t rdma = {0};
    if (hws_rdma_session() != NULL) {
        hws_rdma_count(hws_rdma_session(), &rdma);
    }
    char program[128];
    size_t used = 0;
    for (const char *p = program_invocation_short_name; *p != '\0' && used < sizeof program - 1; p++) {
        /* The text then needs no JSON escapes. */
        program[used++] = *p == '"' || *p == '\\' || (unsigned char) *p < 0x20 ? '_' : *p;
    }
    program[used] = '\0';
    char line[640];
    int bytes = snprintf(line, sizeof line,
                         "{\"program\":\"%s\",\"carrier\":\"%s\",\"calls\":%llu,\"round_trips\":%llu,"
                         "\"bytes_out\":%llu,\"bytes_in\":%llu,\"stripes\":%u,"
                         "\"rdma_messages\":%llu,\"rdma_bytes\":%llu}\n",
                         program, statistics.carrier, (unsigned long long) statistics.calls,
                         (unsigned long long) statistics.round_trips, (unsigned long long) statistics.bytes_out,
                         (unsigned long long) statistics.bytes_in, statistics.stripes,
                         (unsigned long long) rdma.messages_out, (unsigned long long) rdma.bytes_out);
    bool to_stderr = strcmp(where, "1") == 0;
    int fd = to_stderr ? STDERR_FILENO : open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, line, (size_t) bytes) != bytes) {
        fprintf(stderr, "hawser: the statistics cannot be written: %s: %s\n", where, strerror(errno));
    }
    if (fd >= 0 && !to_stderr) {
        close(fd);
    }
}
