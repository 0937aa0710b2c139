#include "hws_log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int threshold = -1;

static int threshold_of_environment(void) {
    static const char *const names[] = {"error", "warn", "info", "debug"};
    const char *wanted = getenv("HAWSER_LOG");
    for (int i = 0; wanted != NULL && i < 4; i++) {
        if (strcmp(wanted, names[i]) == 0) {
            return i;
        }
    }
    return HWS_WARN;
}

bool hws_log_enabled(hws_level_t level) {
    int current = atomic_load_explicit(&threshold, memory_order_relaxed);
    if (current < 0) {
        current = threshold_of_environment();
        atomic_store_explicit(&threshold, current, memory_order_relaxed);
    }
    return (int) level <= current;
}

void hws_log(hws_level_t level, const char *format, ...) {
    if (!hws_log_enabled(level)) {
        return;
    }
    int saved = errno;
    char line[1024] = "hawser: ";
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    if (wanted > 0) {
        used += (size_t) wanted < sizeof line - used - 1 ? (size_t) wanted : sizeof line - used - 2;
    }
    /* The line may hold text from the other end, which must not control a terminal. */
    for (size_t i = 0; i < used; i++) {
        if ((unsigned char) line[i] < 0x20 || line[i] == 0x7f) {
            line[i] = ' ';
        }
    }
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, used) < 0) {
        /* stderr cannot be written, and there is no better place to report that. */
        errno = saved;
        return;
    }
    errno = saved;
}
