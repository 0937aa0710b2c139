/* The libraries that the machine's dynamic linker knows: /etc/ld.so.conf.d and its cache. */
#ifndef HWS_LINKER_H
#define HWS_LINKER_H

#include "agent.h"

#include <stdbool.h>

#define HWS_LINKER_CONF "/etc/ld.so.conf.d/hawser.conf"

/*
 * Where the linker finds libcuda.so.1 for programs that name no folder; "" for nowhere. `root` is a prefix of each
 * path. Returns 0, or -1 with a message.
 */
int hws_linker_driver(const char *root, char path_p[HWS_MAX_PATH], char *error_p, size_t error_capacity);

#endif
