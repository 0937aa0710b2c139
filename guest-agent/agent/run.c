/* hawser run PROGRAM [ARGUMENT...] */
#include "agent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int hws_agent_run(int argc, char **argv) {
    int first = 1;
    if (argc > 1 && strcmp(argv[1], "--") == 0) {
        first = 2;
    }
    if (first >= argc || (first == 1 && argv[1][0] == '-')) {
        fprintf(stderr, "hawser run: name a program: hawser run PROGRAM [ARGUMENT...]\n");
        return HWS_EXIT_USAGE;
    }
    char folder[HWS_MAX_PATH], error[HWS_MAX_PATH + 256];
    if (hws_agent_libraries(folder, error, sizeof error) != 0) {
        fprintf(stderr, "hawser run: %s\n", error);
        return HWS_EXIT_CANNOT_RUN;
    }
    if (hws_agent_prefer(folder) != 0) {
        fprintf(stderr, "hawser run: no memory for the environment\n");
        return HWS_EXIT_CANNOT_RUN;
    }
    execvp(argv[first], argv + first);
    int failure = errno;
    fprintf(stderr, "hawser run: %s: %s\n", argv[first], strerror(failure));
    return failure == ENOENT ? HWS_EXIT_NOT_FOUND : HWS_EXIT_CANNOT_RUN;
}
