/* Shared by the files of `hawser doctor`: lines of its report, and what it knows of libraries. */
#ifndef HWS_DOCTOR_H
#define HWS_DOCTOR_H

#include "hws_config.h"

#include <stdbool.h>
#include <stddef.h>

/* Prints a line; `level` is ok, note, WARN or FAIL. WARN and FAIL are counted for the exit code. */
void hws_doctor_say(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define GOOD(...) hws_doctor_say("ok", __VA_ARGS__)
#define NOTE(...) hws_doctor_say("note", __VA_ARGS__)
#define WARN(...) hws_doctor_say("WARN", __VA_ARGS__)
#define FAIL(...) hws_doctor_say("FAIL", __VA_ARGS__)
/* An obstacle to RDMA: of a guest that uses no other carrier a problem, of others a note. */
#define OBSTACLE(required, ...) hws_doctor_say((required) ? "FAIL" : "note", "RDMA: " __VA_ARGS__)

/* A math library of the broker. The texts live as long as the process. */
typedef struct hws_doctor_library {
    const char *soname, *version; /* version "-": unknown */
} hws_doctor_library_t;

/*
 * The math libraries that the broker has reported. *count_p is -1 when no broker has answered, and for the software GPU,
 * which needs none of NVIDIA's.
 */
const hws_doctor_library_t *hws_doctor_libraries(int *count_p);

/* Whether a file name is that of a library of NVIDIA's that Hawser does not replace and that needs a GPU. */
bool hws_doctor_is_closed(const char *name);

/* Reports a CUDA runtime that is linked statically into a file. */
void hws_doctor_check_code(const char *path, bool is_program);

/*
 * Runs a program with the guest libraries of `folder`, which the environment names already, and reports each library of
 * NVIDIA's that it loads or would have loaded: the place, the version of its wheel, and the broker's version.
 */
void hws_doctor_run(char **argv, const char *folder);

/* The machine that the check of the carrier rdma looks at. */
typedef struct hws_doctor_rdma {
    const char *sysfs;   /* /sys, or a test's folder */
    const char *devices; /* /dev, or a test's folder */
    const char *device;  /* the configured adapter; "" for any */
    bool required;       /* rdma is the only carrier: obstacles are problems and not notes */
} hws_doctor_rdma_t;

/*
 * Reports on the adapters, their ports and GIDs, libibverbs and the limit of locked memory. Returns whether a session
 * over RDMA can begin, as far as this machine can tell.
 */
bool hws_doctor_check_rdma(const hws_doctor_rdma_t *machine);

/*
 * Begins a session over RDMA, reports whether the fabric carries its records and how fast, and ends the session. The
 * broker has config->connect_timeout_ms for each answer, and its worker what hws_handshake() gives it. `usable`: the
 * result of hws_doctor_check_rdma(); if false, an end that cannot be made is no news.
 */
void hws_doctor_ping_rdma(const hws_config_t *config, bool usable);

#endif
