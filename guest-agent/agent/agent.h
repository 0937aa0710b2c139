/* Shared by the files of the guest's `hawser` command. */
#ifndef HWS_AGENT_H
#define HWS_AGENT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Exit codes of `hawser`. `hawser run` ends with the code of its program, or as env(1): 126 cannot run, 127 not found.
 */
#define HWS_EXIT_OK 0
#define HWS_EXIT_PROBLEM 1
#define HWS_EXIT_USAGE 2
#define HWS_EXIT_NO_DEVICE 6 /* of `hawser smi`, as nvidia-smi */
#define HWS_EXIT_NO_DRIVER 9 /* of `hawser smi` under the name nvidia-smi: no vGPU */
#define HWS_EXIT_CANNOT_RUN 126
#define HWS_EXIT_NOT_FOUND 127

#define HWS_MAX_PATH 4096

int hws_agent_run(int argc, char **argv);
int hws_agent_doctor(int argc, char **argv);
int hws_agent_smi(int argc, char **argv);
int hws_agent_nvidia_smi(int argc, char **argv);

/* Whether the program was started under the name nvidia-smi. */
bool hws_agent_is_nvidia_smi(const char *program);
int hws_agent_setup(int argc, char **argv);
int hws_agent_linker(int argc, char **argv);
int hws_agent_preload(int argc, char **argv);

/*
 * The folder of the guest libraries: HAWSER_LIBRARY_DIR, else the place beside this program in archive, packages and
 * build tree. Absolute. Returns 0, or -1 with a message.
 */
int hws_agent_libraries(char folder[HWS_MAX_PATH], char *error_p, size_t error_capacity);

/*
 * Puts the libraries of a folder first for programs that this process starts: by LD_LIBRARY_PATH, and by LD_AUDIT for
 * programs whose RPATH or dlopen names others, with room for the static thread memory of their libraries
 * (GLIBC_TUNABLES). Returns 0, or -1 when memory is short.
 */
int hws_agent_prefer(const char *folder);

/* Finds the path of a program as execvp does; -1 when there is none. */
int hws_agent_find_program(const char *name, char path[HWS_MAX_PATH]);

#endif
