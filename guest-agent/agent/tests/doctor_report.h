/* The report of `hawser doctor`, for the tests of its files: each line with its level. */
#ifndef DOCTOR_REPORT_H
#define DOCTOR_REPORT_H

#include "../doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char report[1 << 16];

void hws_doctor_say(const char *level, const char *format, ...) {
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size_t length = strlen(report);
    snprintf(report + length, sizeof report - length, "%s %s\n", level, line);
}

#endif
