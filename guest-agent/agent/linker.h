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

/*
 * The linker loads libraries from a folder that it knows also into set-uid programs. So only root may be able to write
 * it and all folders above it, up to the root folder. Returns 0, or -1 with a message.
 */
int hws_linker_check_owner(const char *root, const char *folder, char *error_p, size_t error_capacity);

/* Replaces a file by this text, whole or not at all. Returns 0, or -1 with a message. */
int hws_linker_replace(const char *path, const char *text, char *error_p, size_t error_capacity);

/*
 * Reads the command line WHAT [--root FOLDER]. root_p is a prefix of each path, folder_p the folder of the guest
 * libraries, *inside_p the same folder as programs below the prefix name it. Returns 0, or -1 with a message.
 */
int hws_linker_root(int argc, char **argv, char root_p[HWS_MAX_PATH], char folder_p[HWS_MAX_PATH],
                    const char **inside_p, char *error_p, size_t error_capacity);

#endif
