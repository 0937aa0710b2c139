#include "hws_status_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hws_status_clean(char *text) {
    for (unsigned char *p = (unsigned char *) text; *p != '\0'; p++) {
        if ((*p < ' ' && *p != '\t' && *p != '\n') || *p == 0x7f) {
            *p = '?';
        }
    }
}

bool hws_status_next(char **text_p, hws_status_line_t *line_p) {
    char *at = *text_p;
    while (*at == '\n') {
        at++;
    }
    if (*at == '\0') {
        *text_p = at;
        return false;
    }
    char *end = strchrnul(at, '\n');
    *text_p = *end == '\0' ? end : end + 1;
    *end = '\0';
    *line_p = (hws_status_line_t) {0};
    for (size_t i = 0; i < HWS_STATUS_MAX_FIELDS; i++) {
        line_p->fields[i] = "";
    }
    while (at != NULL && line_p->count < HWS_STATUS_MAX_FIELDS) {
        line_p->fields[line_p->count++] = strsep(&at, "\t");
    }
    return true;
}

long long hws_status_number(const char *field) {
    char *end;
    errno = 0;
    long long value = strtoll(field, &end, 10);
    return end == field || *end != '\0' || value < 0 || errno != 0 ? -1 : value;
}

void hws_status_bytes(long long bytes, char *text_p, size_t capacity) {
    const double mib = 1 << 20;
    if (bytes < 0) {
        snprintf(text_p, capacity, "-");
    } else if ((double) bytes < 10240 * mib) {
        snprintf(text_p, capacity, "%.0f MiB", (double) bytes / mib);
    } else {
        snprintf(text_p, capacity, "%.1f GiB", (double) bytes / (1024 * mib));
    }
}
