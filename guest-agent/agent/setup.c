/* hawser setup: writes the hypervisor's settings of this machine's vGPU to /run/hawser/guest.toml. */
#include "agent.h"
#include "guest_settings.h"
#include "hws_config.h"
#include "xenstore.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FW_CFG "/sys/firmware/qemu_fw_cfg/by_name/opt/io.hawser/guest.toml/raw"
#define XENSTORE "vm-data/hawser/"
#define MAX_WAIT_SECONDS 300
#define RUN_DIR "/run/hawser"
#define CA_FILE RUN_DIR "/ca.pem"
#define OUR_FIRST_WORDS "# Written by `hawser setup`"
#define ERROR_BYTES 9216 /* for a path and an error */

typedef struct hws_setup {
    const char *root; /* prefix of each path; "" */
    const char *from; /* source of the settings, for people */
    gid_t group;      /* may read them; (gid_t) -1: everybody */
    bool print;
    unsigned wait_seconds; /* for XenStore, which is filled while the domain already starts */
    hws_guest_settings_t settings;
    char error[ERROR_BYTES];
} hws_setup_t;

/* Returns 1 when QEMU has settings, 0 when not, -1 with a message. */
static int read_fw_cfg(hws_setup_t *setup) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s" FW_CFG, setup->root) >= (int) sizeof path) {
        snprintf(setup->error, sizeof setup->error, "--root is too long");
        return -1;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(setup->error, sizeof setup->error, "%s: %s", path, strerror(errno));
        return errno == ENOENT ? 0 : -1;
    }
    static char text[HWS_SETTINGS_MAX_BYTES + 1]; /* one more, to detect a longer text */
    size_t length = 0;
    ssize_t bytes;
    while ((bytes = read(fd, text + length, sizeof text - length)) > 0) {
        length += (size_t) bytes;
    }
    int failure = errno;
    close(fd);
    if (bytes < 0) {
        snprintf(setup->error, sizeof setup->error, "%s: %s", path, strerror(failure));
        return -1;
    }
    char why[ERROR_BYTES / 2];
    setup->from = "QEMU's opt/io.hawser/guest.toml";
    if (hws_guest_settings_parse(text, length, &setup->settings, why, sizeof why) != 0) {
        snprintf(setup->error, sizeof setup->error, "%s: %s", setup->from, why);
        return -1;
    }
    return 1;
}

/* Whether settings may still arrive: in a domain of Xen other than the first one. */
static bool may_come(void) {
    char capabilities[64] = "";
    if (access("/dev/xen/xenbus", F_OK) != 0 && access("/proc/xen/xenbus", F_OK) != 0) {
        return false;
    }
    int fd = open("/proc/xen/capabilities", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t ignored = read(fd, capabilities, sizeof capabilities - 1); /* "" for none, as in most domains */
        (void) ignored;
        close(fd);
    }
    return strstr(capabilities, "control_d") == NULL;
}

/* Waits until the broker's address, which is written last, is in XenStore, or the time is over. */
static void await_xenstore(const hws_setup_t *setup) {
    char value[HWS_XENSTORE_MAX_PAYLOAD + 1], why[ERROR_BYTES / 2];
    struct timespec now, pause = {0, 200000000};
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t end = now.tv_sec + setup->wait_seconds;
    /* XenStore reports changes only to a watch on the same device. Polling for some seconds is simpler. */
    while (now.tv_sec < end && may_come()
           && hws_xenstore_read(XENSTORE "broker", value, sizeof value, why, sizeof why) == 0) {
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
}

/* The same for XenStore. */
static int read_xenstore(hws_setup_t *setup) {
    static const char *const keys[] = {"carrier", "broker", "token", "ca"};
    char path[64], value[HWS_XENSTORE_MAX_PAYLOAD + 1], why[ERROR_BYTES / 2];
    int any = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(path, sizeof path, XENSTORE "%s", keys[i]);
        int found = hws_xenstore_read(path, value, sizeof value, why, sizeof why);
        if (found > 0) {
            found =
                hws_guest_settings_set(&setup->settings, keys[i], value, strlen(value), why, sizeof why) == 0 ? 1 : -1;
        }
        if (found < 0) {
            snprintf(setup->error, sizeof setup->error, "XenStore's %s: %s", path, why);
            return -1;
        }
        any |= found;
    }
    setup->from = "XenStore's vm-data/hawser";
    return any;
}

static int fail(hws_setup_t *setup, const char *what) {
    snprintf(setup->error, sizeof setup->error, "%s%s/%s: %s", setup->root, RUN_DIR, what, strerror(errno));
    return -1;
}

/* Writes a file of the run folder under a temporary name; put_in_place() renames it. */
static int write_new(hws_setup_t *setup, int folder, const char *name, const char *text, size_t length) {
    unlinkat(folder, name, 0);
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return fail(setup, name);
    }
    bool everybody = setup->group == (gid_t) -1;
    size_t written = 0;
    while (written < length) {
        ssize_t bytes = write(fd, text + written, length - written);
        if (bytes < 0) {
            break;
        }
        written += (size_t) bytes;
    }
    if (written < length || (!everybody && fchown(fd, (uid_t) -1, setup->group) != 0)
        || fchmod(fd, everybody ? 0644 : 0640) != 0) {
        fail(setup, name);
        close(fd);
        return -1;
    }
    return close(fd) == 0 ? 0 : fail(setup, name);
}

static int put_in_place(hws_setup_t *setup, int folder, const char *from, const char *to) {
    return renameat(folder, from, folder, to) == 0 ? 0 : fail(setup, to);
}

/* Opens the run folder and creates it when it is missing; -1 with a message. */
static int open_folder(hws_setup_t *setup) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s" RUN_DIR, setup->root);
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return fail(setup, "");
    }
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return folder >= 0 ? folder : fail(setup, "");
}

/* Reads the new file as every program does and compares the result with our settings. */
static int read_as_programs_do(hws_setup_t *setup) {
    static const char *const others[] = {"HAWSER_CARRIER",
                                         "HAWSER_REGION",
                                         "HAWSER_BROKER",
                                         "HAWSER_CA_FILE",
                                         "HAWSER_TOKEN",
                                         "HAWSER_TOKEN_FILE",
                                         "HAWSER_CONNECT_TIMEOUT_MS",
                                         "HAWSER_RDMA_DEVICE",
                                         "HAWSER_RDMA_PORT",
                                         "HAWSER_RDMA_GID_INDEX",
                                         "HAWSER_RDMA_PARTITION",
                                         "HAWSER_RDMA_SERVICE_LEVEL",
                                         "HAWSER_RDMA_TRAFFIC_CLASS",
                                         "HAWSER_RDMA_RETRY_MS"};
    char path[PATH_MAX], why[ERROR_BYTES / 2];
    hws_config_t config;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        unsetenv(others[i]);
    }
    snprintf(path, sizeof path, "%s" RUN_DIR "/guest.toml.new", setup->root);
    setenv("HAWSER_CONFIG", path, 1);
    if (hws_config_load(&config, why, sizeof why) != 0) {
        snprintf(setup->error, sizeof setup->error, "%s: %s", setup->from, why);
        return -1;
    }
    if (config.missing[0] != '\0') {
        snprintf(setup->error, sizeof setup->error, "%s: %s", setup->from, config.missing);
        return -1;
    }
    return 0;
}

static int write_settings(hws_setup_t *setup) {
    char text[2048];
    size_t length = hws_guest_settings_render(&setup->settings, setup->from, CA_FILE, text, sizeof text);
    size_t ca_length = strlen(setup->settings.ca);
    int folder = open_folder(setup), rc = -1;
    if (folder < 0) {
        return -1;
    }
    if (length == 0) {
        snprintf(setup->error, sizeof setup->error, "%s: the settings are too long", setup->from);
    } else if (write_new(setup, folder, "guest.toml.new", text, length) == 0 && read_as_programs_do(setup) == 0
               && (ca_length == 0
                   || (write_new(setup, folder, "ca.pem.new", setup->settings.ca, ca_length) == 0
                       && put_in_place(setup, folder, "ca.pem.new", "ca.pem") == 0))) {
        rc = put_in_place(setup, folder, "guest.toml.new", "guest.toml");
    }
    if (rc != 0) {
        unlinkat(folder, "guest.toml.new", 0);
        unlinkat(folder, "ca.pem.new", 0);
    } else if (ca_length == 0) {
        unlinkat(folder, "ca.pem", 0);
    }
    close(folder);
    return rc;
}

/*
 * Without settings of the hypervisor: removes the files that an earlier run has written. Files of other authors stay.
 */
static int forget(hws_setup_t *setup) {
    char path[PATH_MAX], begin[sizeof OUR_FIRST_WORDS] = "";
    snprintf(path, sizeof path, "%s" RUN_DIR "/guest.toml", setup->root);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? 0 : fail(setup, "guest.toml");
    }
    bool ours = read(fd, begin, sizeof begin - 1) == sizeof begin - 1 && strcmp(begin, OUR_FIRST_WORDS) == 0;
    close(fd);
    if (ours && unlink(path) != 0) {
        return fail(setup, "guest.toml");
    }
    return 0;
}

/* Prints the same text without the secret half of the token. */
static void print_settings(hws_setup_t *setup) {
    char text[2048], *dot = strchr(setup->settings.token, '.');
    if (dot != NULL) {
        snprintf(dot + 1, sizeof setup->settings.token - (size_t) (dot + 1 - setup->settings.token), "***");
    }
    size_t length = hws_guest_settings_render(&setup->settings, setup->from, CA_FILE, text, sizeof text);
    fwrite(text, 1, length, stdout);
    if (setup->settings.ca[0] != '\0') {
        printf("# " CA_FILE ":\n%s", setup->settings.ca);
    }
}

static int run(hws_setup_t *setup) {
    int found = read_fw_cfg(setup);
    if (found == 0 && setup->root[0] == '\0') {
        await_xenstore(setup);
        found = read_xenstore(setup);
    }
    if (found < 0) {
        return -1;
    }
    if (found == 0) {
        printf("The hypervisor gives no settings, neither by QEMU's fw_cfg nor by XenStore.\n");
        return setup->print ? 0 : forget(setup);
    }
    char why[ERROR_BYTES / 2];
    if (hws_guest_settings_check(&setup->settings, why, sizeof why) != 0) {
        snprintf(setup->error, sizeof setup->error, "%s: %s", setup->from, why);
        return -1;
    }
    if (setup->print) {
        print_settings(setup);
        return 0;
    }
    if (write_settings(setup) != 0) {
        return -1;
    }
    printf("%s" RUN_DIR "/guest.toml: broker %s, by %s\n", setup->root, setup->settings.broker, setup->from);
    return 0;
}

int hws_agent_setup(int argc, char **argv) {
    static hws_setup_t setup;
    setup.root = "";
    setup.group = (gid_t) -1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--print") == 0) {
            setup.print = true;
        } else if (strcmp(argv[i], "--root") == 0 && i + 1 < argc) {
            setup.root = argv[++i];
        } else if (strcmp(argv[i], "--wait") == 0 && i + 1 < argc) {
            char *end;
            unsigned long seconds = strtoul(argv[++i], &end, 10);
            if (end == argv[i] || *end != '\0' || seconds > MAX_WAIT_SECONDS) {
                fprintf(stderr, "hawser setup: --wait must be 0 to %d seconds: %s\n", MAX_WAIT_SECONDS, argv[i]);
                return HWS_EXIT_USAGE;
            }
            setup.wait_seconds = (unsigned) seconds;
        } else if (strcmp(argv[i], "--group") == 0 && i + 1 < argc) {
            struct group *group = getgrnam(argv[++i]);
            if (group == NULL) {
                fprintf(stderr, "hawser setup: there is no group %s\n", argv[i]);
                return HWS_EXIT_USAGE;
            }
            setup.group = group->gr_gid;
        } else {
            bool asked = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
            fputs("usage: hawser setup [--print] [--wait SECONDS] [--group NAME] [--root FOLDER]\n",
                  asked ? stdout : stderr);
            return asked ? HWS_EXIT_OK : HWS_EXIT_USAGE;
        }
    }
    if (strlen(setup.root) > PATH_MAX / 2) {
        fprintf(stderr, "hawser setup: --root must have at most %d bytes\n", PATH_MAX / 2);
        return HWS_EXIT_USAGE;
    }
    umask(022);
    if (run(&setup) != 0) {
        fprintf(stderr, "hawser setup: %s\n", setup.error);
        return HWS_EXIT_PROBLEM;
    }
    return HWS_EXIT_OK;
}
