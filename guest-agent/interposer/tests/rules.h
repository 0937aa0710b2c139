/* Rules of the driver library. Each runs in a process of its own, and its lines on stderr are counted. */
#ifndef HWS_RULES_H
#define HWS_RULES_H

#include "hws_test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Runs a rule in a child, which must succeed with this number of the library's lines. If `text` is not NULL, one line
 * must contain it.
 */
static void rule_run(const char *name, void (*test)(void), int wanted_lines, const char *wanted_text) {
    int ends[2], outcome = -1, lines = 0;
    HWS_CHECK(pipe(ends) == 0);
    pid_t child = fork();
    HWS_CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        test();
        exit(0);
    }
    close(ends[1]);
    char text[16384];
    size_t used = 0;
    ssize_t n;
    while (used < sizeof text - 1 && (n = read(ends[0], text + used, sizeof text - 1 - used)) > 0) {
        used += (size_t) n;
    }
    text[used] = '\0';
    close(ends[0]);
    HWS_CHECK(waitpid(child, &outcome, 0) == child);
    for (const char *p = text; (p = strstr(p, "hawser: ")) != NULL; p++) {
        lines++;
    }
    fprintf(stderr, "%s\n", name);
    if (outcome != 0 || lines != wanted_lines || (wanted_text != NULL && strstr(text, wanted_text) == NULL)) {
        fprintf(stderr, "outcome=%d lines=%d wanted=%d\n%s\n", outcome, lines, wanted_lines, text);
        exit(1);
    }
}

#define RUN(test, lines) rule_run(#test, test, lines, NULL)
#define RUN_SAYING(test, lines, text) rule_run(#test, test, lines, text)

#endif
