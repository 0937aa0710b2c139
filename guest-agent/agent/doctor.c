/*
 * hawser doctor [PROGRAM [ARGUMENT...]]: checks whether this machine, and a program, can use the vGPU, and reports what
 * prevents it.
 */
#include "doctor.h"
#include "agent.h"
#include "elf_file.h"
#include "functions.h"
#include "linker.h"

#include "hws_description.h"
#include "hws_status.h"
#include "hws_status_text.h"
#include "hws_userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned problems, warnings;

/* The broker's math libraries, from its status. */
#define MAX_LIBRARIES 64
static hws_doctor_library_t libraries[MAX_LIBRARIES];
static int library_count = -1; /* unknown, or none are needed */

/* The vGPU's sessions, from the same. */
static long long session_count, most_sessions; /* most: 0 is no limit */

void hws_doctor_say(const char *level, const char *format, ...) {
    va_list arguments;
    printf("%-5s", level);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    warnings += strcmp(level, "WARN") == 0;
    problems += strcmp(level, "FAIL") == 0;
}

const hws_doctor_library_t *hws_doctor_libraries(int *count_p) {
    *count_p = library_count;
    return libraries;
}

static void check_status(hws_status_t *status) {
    hws_status_line_t line;
    char *at = status->text;
    unsigned gpus = 0;
    bool has_driver = false;
    hws_status_clean(status->text);
    library_count = 0;
    while (hws_status_next(&at, &line)) {
        if (strcmp(line.fields[0], "broker") == 0) {
            GOOD("broker: version %s; its API is the one of these libraries", line.fields[1]);
        } else if (strcmp(line.fields[0], "vgpu") == 0) {
            GOOD("vGPU: %s", line.fields[1]);
            most_sessions = hws_status_number(line.fields[5]);
        } else if (strcmp(line.fields[0], "gpu") == 0) {
            char total[32];
            hws_status_bytes(hws_status_number(line.fields[4]), total, sizeof total);
            GOOD("GPU %s: %s, %s", line.fields[1], line.fields[2], total);
            gpus++;
        } else if (strcmp(line.fields[0], "driver") == 0) {
            has_driver = strcmp(line.fields[1], "-") != 0;
        } else if (strcmp(line.fields[0], "session") == 0 || strcmp(line.fields[0], "process") == 0) {
            session_count++;
        } else if (strcmp(line.fields[0], "library") == 0 && library_count < MAX_LIBRARIES) {
            libraries[library_count++] = (hws_doctor_library_t) {line.fields[1], line.fields[2]};
        }
    }
    library_count = has_driver ? library_count : -1;
    if (gpus == 0) {
        FAIL("the broker has no GPU for this vGPU yet: see its log");
    }
}

/* Asks the broker over RDMA, where a session is free for it. */
static void ping_over_rdma(const hws_config_t *config, bool usable) {
    if (most_sessions > 0 && session_count >= most_sessions) {
        NOTE("RDMA: the broker was not asked, because the vGPU's sessions are all in use (%lld): run hawser doctor "
             "again when one of them has ended",
             most_sessions);
    } else {
        hws_doctor_ping_rdma(config, usable);
    }
}

static void check_vgpu(void) {
    static hws_status_t status;
    hws_config_t config;
    char error[1024];
    bool found = false;
    if (hws_config_load(&config, error, sizeof error) != 0) {
        FAIL("configuration: %s", error);
        return;
    }
    if (hws_config_takes_region(&config)) {
        if (hws_status_read(&config, HWS_DESCRIPTION_HASH, &status, &found, error, sizeof error) == 0) {
            GOOD("shared memory: %s", status.from);
            check_status(&status);
            return;
        }
        if (found || config.carrier == HWS_CARRIER_SHM || config.missing[0] != '\0') {
            (config.carrier == HWS_CARRIER_SHM || config.missing[0] != '\0') ? FAIL("shared memory: %s", error)
                                                                             : WARN("shared memory: %s", error);
        } else {
            NOTE("shared memory: %s", error);
        }
    }
    if (config.carrier == HWS_CARRIER_SHM) {
        return;
    }
    bool usable = config.carrier != HWS_CARRIER_TCP
        && hws_doctor_check_rdma(&(hws_doctor_rdma_t) {.sysfs = config.sysfs,
                                                       .devices = "/dev",
                                                       .device = config.rdma_device,
                                                       .required = config.carrier == HWS_CARRIER_RDMA});
    if (config.missing[0] != '\0') {
        FAIL("TCP: %s", config.missing);
    } else if (hws_status_ask(&config, HWS_DESCRIPTION_HASH, &status, error, sizeof error) != 0) {
        FAIL("TCP: %s", error);
    } else {
        GOOD("TCP: %s, and the token is accepted (settings: %s)", status.from, config.from);
        check_status(&status);
        if (config.carrier != HWS_CARRIER_TCP) {
            ping_over_rdma(&config, usable);
        }
    }
}

/* How the names of the libraries begin that Hawser replaces. */
static const char *const replaced[] = {"libcuda.so",   "libcudart",   "libnvidia-ml.so", "libcublas",
                                       "libcufft.so",  "libcudnn.so", "libcusolver.so",  "libcusparse.so",
                                       "libcurand.so", "libnccl.so",  "libcusparseLt.so"};
/* The same of NVIDIA's other libraries, which contain a runtime of their own and therefore cannot run in a guest. */
static const char *const closed[] = {"libcudnn_", "libcufft", "libcurand", "libcusolver", "libcusparse", "libnccl",
                                     "libcupti",  "libnpp",   "libnvjpeg", "libcufile",   "libcudadevrt"};

#define BEGINS_LIKE_ONE_OF(name, list) begins_like_one_of((name), (list), sizeof(list) / sizeof *(list))

static bool begins_like_one_of(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strncmp(name, list[i], strlen(list[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool hws_doctor_is_closed(const char *name) {
    return BEGINS_LIKE_ONE_OF(name, closed);
}

/* Reports on a CUDA runtime inside a file. Returns whether there is one. */
static bool check_runtime(const char *path, bool has_device_code) {
    static hws_functions_t functions;
    char error[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? 0 : hws_functions_read(fd, &functions, error, sizeof error);
    if (fd >= 0) {
        close(fd);
    }
    if (fd >= 0 && rc != 0) {
        WARN("%s: its symbol table is damaged, so a CUDA runtime in it would not be redirected: %s", path, error);
    } else if (fd >= 0 && functions.major >= 12) {
        GOOD("%s: a CUDA %d runtime is linked into it statically, with symbols: `hawser run` redirects it", path,
             functions.major);
        return true;
    } else if (fd >= 0 && functions.major == 11) {
        FAIL("%s: a runtime of CUDA 11 or older is linked into it statically: build it with CUDA 12 or 13", path);
        return true;
    }
    if (has_device_code) {
        FAIL("%s: a CUDA runtime is linked into it statically, and the file is stripped: link it with nvcc -cudart "
             "shared, or ask the vendor",
             path);
    }
    return has_device_code;
}

void hws_doctor_check_code(const char *path, bool is_program) {
    hws_elf_file_t file;
    char error[HWS_MAX_PATH + 64];
    if (hws_elf_read(path, &file, error, sizeof error) != 0) {
        WARN("%s", error);
    } else if (!check_runtime(path, hws_elf_has_static_runtime(&file)) && is_program && file.has_device_code) {
        GOOD("%s: carries device code and uses the CUDA runtime as a library", path);
    }
}

/*
 * Checks a line of the dynamic linker's list: "\tNAME => PATH (0x...)", "\tNAME => not found", or, for a library named
 * by its path as our audit library does, "\tPATH (0x...)".
 */
static void check_library(char *line, const char *folder) {
    char *name = line + strspn(line, "\t "), *arrow = strstr(name, " => "), *path = arrow == NULL ? name : arrow + 4;
    char *end = strstr(path, " (0x");
    if (arrow != NULL) {
        *arrow = '\0';
    }
    if (end != NULL) {
        *end = '\0';
    }
    if (arrow == NULL) {
        char *slash = strrchr(name, '/');
        if (slash == NULL) {
            return; /* the kernel's linux-vdso.so.1 */
        }
        name = slash + 1;
    }
    bool ours = BEGINS_LIKE_ONE_OF(name, replaced);
    if (end == NULL) {
        FAIL("%s: not found%s", name, ours ? ", and this version is not among ours" : "");
    } else if (ours) {
        if (strncmp(path, folder, strlen(folder)) == 0) {
            GOOD("%s: ours", name);
        } else {
            FAIL("%s: taken from %s, not from %s", name, path, folder);
        }
    } else if (hws_doctor_is_closed(name)) {
        FAIL("%s: Hawser does not serve this library yet; it would run here, where there is no GPU", name);
    } else {
        hws_doctor_check_code(path, false);
    }
}

/* Makes the program's dynamic linker list what it would load under `hawser run`, without running the program. */
static void check_libraries(const hws_elf_file_t *program, const char *path, const char *folder) {
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    char *arguments[] = {(char *) program->interpreter, "--list", (char *) path, NULL};
    if (pipe(ends) != 0 || posix_spawn_file_actions_init(&actions) != 0) {
        FAIL("%s: its libraries cannot be looked up: %s", path, strerror(errno));
        return;
    }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    int failure = posix_spawn(&child, program->interpreter, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *list = failure == 0 ? fdopen(ends[0], "r") : NULL;
    if (list == NULL) {
        FAIL("%s: its dynamic linker %s cannot be started: %s", path, program->interpreter,
             strerror(failure == 0 ? errno : failure));
        close(ends[0]);
        return;
    }
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, list) >= 0) {
        check_library(line, folder);
    }
    free(line);
    fclose(list);
    int outcome;
    if (waitpid(child, &outcome, 0) == child && outcome != 0) {
        FAIL("%s: its dynamic linker refuses it", path);
    }
}

static void check_program(const char *name, const char *folder) {
    char path[HWS_MAX_PATH], error[HWS_MAX_PATH + 64];
    hws_elf_file_t file;
    if (hws_agent_find_program(name, path) != 0) {
        FAIL("%s: there is no such program", name);
        return;
    }
    if (hws_elf_read(path, &file, error, sizeof error) != 0) {
        FAIL("%s", error);
        return;
    }
    if (file.is_script) {
        NOTE("%s: a script for %s; the libraries that it will load are unknown", path, file.interpreter);
        return;
    }
    if (!file.is_elf) {
        FAIL("%s: not a program for Linux on x86-64", path);
        return;
    }
    hws_doctor_check_code(path, true);
    if (!file.is_dynamic) {
        FAIL("%s: statically linked: it cannot load the guest libraries", path);
        return;
    }
    if (file.run_path[0] != '\0') {
        NOTE("%s: looks for libraries in %s first: start it by hawser run", path, file.run_path);
    }
    check_libraries(&file, path, folder);
}

/* Whether programs find the libraries by themselves. If not, that is no problem: there is hawser run. */
static void check_linker(const char *folder) {
    char driver[HWS_MAX_PATH], error[HWS_MAX_PATH];
    if (hws_linker_driver("", driver, error, sizeof error) != 0) {
        NOTE("linker: %s", error);
    } else if (driver[0] == '\0') {
        NOTE("linker: programs find no libcuda.so.1: use `hawser libraries on` or `hawser run PROGRAM`");
    } else if (strncmp(driver, folder, strlen(folder)) == 0 && driver[strlen(folder)] == '/') {
        GOOD("linker: programs find the guest libraries");
    } else {
        NOTE("linker: programs load %s, which is not Hawser's: use `hawser libraries on` or `hawser run PROGRAM`",
             driver);
    }
}

/* How this user's programs get pages of managed memory. */
static void check_pages(void) {
    hws_userfault_t kind;
    int descriptor = hws_userfault_open(&kind);
    if (descriptor >= 0) {
        close(descriptor);
    }
    switch (kind) {
        case HWS_USERFAULT_ALL:
            GOOD("managed memory: by userfaultfd, also in system calls");
            break;
        case HWS_USERFAULT_PROGRAM:
            NOTE("managed memory: by userfaultfd; system calls on it may fail with EFAULT for this user: add the user "
                 "to the group " HWS_USERFAULT_GROUP);
            break;
        case HWS_USERFAULT_NONE:
            NOTE("managed memory: by SIGSEGV, because userfaultfd is forbidden here; system calls on it may fail with "
                 "EFAULT");
            break;
    }
}

int hws_agent_doctor(int argc, char **argv) {
    if (argc > 1 && argv[1][0] == '-') {
        bool asked = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
        fputs("usage: hawser doctor [PROGRAM [ARGUMENT...]]\n", asked ? stdout : stderr);
        return asked ? HWS_EXIT_OK : HWS_EXIT_USAGE;
    }
    char folder[HWS_MAX_PATH], error[HWS_MAX_PATH + 256];
    bool has_libraries = hws_agent_libraries(folder, error, sizeof error) == 0;
    if (has_libraries) {
        GOOD("guest libraries: %s", folder);
    } else {
        FAIL("guest libraries: %s", error);
    }
    if (has_libraries) {
        check_linker(folder);
    }
    check_vgpu();
    check_pages();
    fflush(stdout);
    if (argc > 1 && has_libraries) {
        if (hws_agent_prefer(folder) != 0) {
            FAIL("no memory for the environment");
        } else {
            check_program(argv[1], folder);
            if (argc > 2 && problems == 0) { /* with arguments, it may be run */
                hws_doctor_run(argv + 1, folder);
            }
        }
    }
    if (problems == 0) {
        printf("%s\n",
               warnings == 0 ? "Nothing stands in the way." : "Nothing stands in the way, but see the warnings.");
    } else {
        printf("%u problem%s.\n", problems, problems == 1 ? "" : "s");
    }
    return problems == 0 ? HWS_EXIT_OK : HWS_EXIT_PROBLEM;
}
