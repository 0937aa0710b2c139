#include "hws_hint.h"

#include "hws_log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

static char hint[512], text[640];
static _Atomic bool set;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void hws_hint_set(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(hint, sizeof hint, format, arguments);
    va_end(arguments);
    atomic_store(&set, true);
    hws_log(HWS_WARN, "%s", hint);
}

void hws_hint_repeat(void) {
    if (atomic_load(&set)) {
        hws_log(HWS_ERROR, "error 700, an illegal memory access: %s", hint);
    }
}

const char *hws_hint_text(const char *plain) {
    if (!atomic_load(&set)) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (text[0] == '\0') {
        snprintf(text, sizeof text, "%.64s (%s)", plain, hint);
    }
    pthread_mutex_unlock(&lock);
    return text;
}
