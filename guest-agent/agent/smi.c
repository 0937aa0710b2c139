/* hawser smi: shows the vGPU in the style of nvidia-smi. */
#include "smi.h"
#include "agent.h"

#include "hws_description.h"
#include "hws_status.h"
#include "hws_status_text.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_INTERVAL_S 86400
#define DEFAULT_INTERVAL_S 5

typedef struct options {
    bool list, json, log, xml, version, has_format;
    const char *parts, *gpu_fields, *process_fields, *ids; /* NULL: not given */
    hws_smi_format_t format;
    long long interval_ms; /* 0: once */
} options_t;

static const char usage[] =
    "usage: hawser smi [-L] [-q [-d PARTS] [-x]] [--query-gpu=FIELDS | --query-compute-apps=FIELDS]\n"
    "                  [--format=csv[,noheader][,nounits]] [-i ID] [-l [SECONDS] | -lms MILLISECONDS] [-f FILE] [--json]\n"
    "       hawser smi dmon [-h]\n"
    "  -L, --list-gpus        lists the GPUs, one on each line\n"
    "  -q, --query            prints everything about the GPUs; -d MEMORY,UTILIZATION,... limits it, -x prints XML\n"
    "      --query-gpu=FIELDS, --query-compute-apps=FIELDS\n"
    "                         prints these properties of the GPUs or their processes; --help-query-gpu and\n"
    "                         --help-query-compute-apps list the properties\n"
    "      --format=FORMAT    of these: csv, with noheader and nounits\n"
    "  -i, --id=ID            only these GPUs: indexes, UUIDs or PCI bus ids, separated by commas\n"
    "  -l, --loop[=SECONDS]   repeats each SECONDS (5), until interrupted; -lms, --loop-ms=MILLISECONDS\n"
    "  -f, --filename=FILE    writes to a file\n"
    "      --version          prints the versions of the driver, NVML and CUDA\n"
    "      --json             prints JSON; with --loop one object on each line\n"
    "  dmon                   prints a row for each GPU and interval: hawser smi dmon -h\n"
    "Names, formats and options are those of nvidia-smi. A value that a vGPU does not have reads [N/A].\n";

static hws_status_t status;

static int fetch(char *error, size_t capacity) {
    hws_config_t config;
    if (hws_config_load(&config, error, capacity) != 0) {
        return -1;
    }
    int rc = hws_status_fetch(&config, HWS_DESCRIPTION_HASH, &status, error, capacity);
    hws_status_clean(status.text);
    return rc;
}

static void print_text(const char *text) {
    putchar('"');
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            putchar('\\');
        }
        putchar(*p);
    }
    putchar('"');
}

static void print_number(const char *name, const char *field) {
    long long value = hws_status_number(field);
    if (value < 0) {
        printf(",\"%s\":null", name);
    } else {
        printf(",\"%s\":%lld", name, value);
    }
}

static void print_named(const char *name, const char *field) {
    printf(",\"%s\":", name);
    print_text(field);
}

static void print_json_gpu(const hws_status_line_t *line) {
    printf("{\"index\":%lld", hws_status_number(line->fields[1]));
    print_named("name", line->fields[2]);
    print_named("uuid", line->fields[3]);
    print_number("totalBytes", line->fields[4]);
    print_number("usedBytes", line->fields[5]);
    print_number("utilizationPercent", line->fields[6]);
    print_number("temperatureCelsius", line->fields[7]);
    print_number("powerWatts", line->fields[8]);
    putchar('}');
}

static void print_json_session(const hws_status_line_t *line) {
    printf("{\"id\":%lld", hws_status_number(line->fields[1]));
    print_number("pid", line->fields[2]);
    print_named("program", line->fields[3]);
    print_named("host", line->fields[4]);
    print_named("carrier", line->fields[5]);
    print_named("state", line->fields[6]);
    print_number("deviceBytes", line->fields[7]);
    print_number("kernels", line->fields[8]);
    print_number("roundTrips", line->fields[9]);
    print_number("startedSeconds", line->fields[10]);
    putchar('}');
}

/* Makes a copy of the text, because taking lines changes it. Valid until the next call. */
static char *begin_lines(void) {
    static char copy[sizeof status.text];
    return memcpy(copy, status.text, sizeof copy);
}

/* Finds the next line of a kind. */
static bool next_of(const char *kind, char **at, hws_status_line_t *line_p) {
    while (hws_status_next(at, line_p)) {
        if (strcmp(line_p->fields[0], kind) == 0) {
            return true;
        }
    }
    return false;
}

/* Prints the lines of one kind as the elements of an array. */
static void print_json_list(const char *name, const char *kind, void (*print)(const hws_status_line_t *)) {
    char *at = begin_lines();
    hws_status_line_t line;
    const char *separator = "";
    printf(",\"%s\":[", name);
    while (next_of(kind, &at, &line)) {
        printf("%s", separator);
        print(&line);
        separator = ",";
    }
    putchar(']');
}

static void print_json(void) {
    char *at = begin_lines();
    hws_status_line_t line;
    printf("{\"from\":");
    print_text(status.from);
    while (hws_status_next(&at, &line)) {
        if (strcmp(line.fields[0], "broker") == 0) {
            print_named("broker", line.fields[1]);
        } else if (strcmp(line.fields[0], "vgpu") == 0) {
            print_named("vgpu", line.fields[1]);
            print_number("memoryBytes", line.fields[2]);
            print_number("computeShare", line.fields[3]);
            print_named("mode", line.fields[4]);
            print_number("maxSessions", line.fields[5]);
        } else if (strcmp(line.fields[0], "swap") == 0) {
            print_number("residentBytes", line.fields[1]);
            print_number("swappedBytes", line.fields[2]);
            print_number("swaps", line.fields[3]);
            print_number("swapWaitedMs", line.fields[4]);
        } else if (strcmp(line.fields[0], "more") == 0) {
            print_number("sessionsNotListed", line.fields[1]);
        }
    }
    print_json_list("gpus", "gpu", print_json_gpu);
    print_json_list("sessions", "session", print_json_session);
    puts("}");
}

static void print_rule(void) {
    puts("+----------------------------------------------------------------------------------------+");
}

static void print_gpu(const hws_status_line_t *line) {
    char used[32], total[32], memory[80], sensors[48] = "", busy[24] = "n/a";
    hws_status_bytes(hws_status_number(line->fields[5]), used, sizeof used);
    hws_status_bytes(hws_status_number(line->fields[4]), total, sizeof total);
    snprintf(memory, sizeof memory, "%s / %s", used, total);
    long long celsius = hws_status_number(line->fields[7]), watts = hws_status_number(line->fields[8]);
    int length = celsius < 0 ? 0 : snprintf(sensors, sizeof sensors, "%lldC ", celsius);
    if (watts >= 0) {
        snprintf(sensors + length, sizeof sensors - (size_t) length, "%lldW", watts);
    }
    if (hws_status_number(line->fields[6]) >= 0) {
        snprintf(busy, sizeof busy, "%lld%%", hws_status_number(line->fields[6]));
    }
    printf("| %3.3s  %-36.36s %-10.10s | %23.23s | %5.5s |\n", line->fields[1], line->fields[2], sensors, memory, busy);
}

static void print_age(long long started, char *text, size_t capacity) {
    long long seconds = started < 0 ? -1 : (long long) time(NULL) - started;
    if (seconds < 0) {
        snprintf(text, capacity, "-");
    } else {
        snprintf(text, capacity, "%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
}

static void print_session(const hws_status_line_t *line) {
    char memory[32], age[32];
    hws_status_bytes(hws_status_number(line->fields[7]), memory, sizeof memory);
    print_age(hws_status_number(line->fields[10]), age, sizeof age);
    printf("| %6.6s %8.8s  %-24.24s %-12.12s %-4.4s %-8.8s %9.9s %8.8s |\n", line->fields[1], line->fields[2],
           line->fields[3], line->fields[4], line->fields[5], line->fields[6], memory, age);
}

/* Prints the lines of a kind and returns their number. */
static unsigned print_table(const char *kind, void (*print)(const hws_status_line_t *)) {
    char *at = begin_lines();
    hws_status_line_t line;
    unsigned count = 0;
    while (next_of(kind, &at, &line)) {
        print(&line);
        count++;
    }
    return count;
}

static void print_vgpu(const hws_status_line_t *line) {
    char memory[32], text[96];
    long long bytes = hws_status_number(line->fields[2]);
    hws_status_bytes(bytes, memory, sizeof memory);
    snprintf(text, sizeof text, "%s, share %s%%, %s", bytes == 0 ? "memory as free" : memory, line->fields[3],
             line->fields[4]);
    printf("| vGPU %-40.40s %40.40s |\n", line->fields[1], text);
}

static void print_swap(const hws_status_line_t *line) {
    char memory[32], text[96];
    hws_status_bytes(hws_status_number(line->fields[2]), memory, sizeof memory);
    snprintf(text, sizeof text, "%s, moved %s times, waited %lld s", memory, line->fields[3],
             hws_status_number(line->fields[4]) / 1000);
    printf("| %-45.45s%41.41s |\n", "memory on the broker's host", text);
}

static void print_more(const hws_status_line_t *line) {
    printf("| and %6.6s more %70s |\n", line->fields[1], "");
}

/* As nvidia-smi, whose line scripts search. */
static void print_versions(void) {
    char *at = begin_lines();
    hws_status_line_t line;
    int cuda = 0;
    const char *driver = next_of("driver", &at, &line) && strcmp(line.fields[1], "-") != 0 ? line.fields[1] : "N/A";
    nvmlSystemGetCudaDriverVersion_v2(&cuda);
    printf("| Driver Version: %-42.42s CUDA Version: %2d.%-10d |\n", driver, cuda / 1000, cuda / 10 % 100);
}

static void print_screen(void) {
    char when[64];
    time_t now = time(NULL);
    struct tm local;
    strftime(when, sizeof when, "%a %b %e %H:%M:%S %Y", localtime_r(&now, &local));
    puts(when);
    print_rule();
    printf("| Hawser %-30.30s %48.48s |\n", HAWSER_VERSION, status.from);
    print_versions();
    if (print_table("vgpu", print_vgpu) == 0) {
        puts("| the broker does not name the vGPU                                                      |");
    }
    print_table("swap", print_swap);
    print_rule();
    puts("| GPU  Name                                            |            Memory-Usage |  Util |");
    if (print_table("gpu", print_gpu) == 0) {
        puts("|      the GPUs are not known yet                                                        |");
    }
    print_rule();
    puts("|     ID      PID  Program                  Host         Via  State       Memory     Time |");
    if (print_table("session", print_session) == 0) {
        puts("|  no session uses this vGPU                                                             |");
    }
    print_table("more", print_more);
    print_rule();
}

enum {
    OPTION_QUERY_GPU = 256,
    OPTION_QUERY_PROCESSES,
    OPTION_FORMAT,
    OPTION_LMS,
    OPTION_HELP_GPU,
    OPTION_VERSION,
    OPTION_HELP_PROCESSES
};

static const struct option known[] = {{"list-gpus", no_argument, NULL, 'L'},
                                      {"query", no_argument, NULL, 'q'},
                                      {"display", required_argument, NULL, 'd'},
                                      {"xml-format", no_argument, NULL, 'x'},
                                      {"query-gpu", required_argument, NULL, OPTION_QUERY_GPU},
                                      {"query-compute-apps", required_argument, NULL, OPTION_QUERY_PROCESSES},
                                      {"format", required_argument, NULL, OPTION_FORMAT},
                                      {"id", required_argument, NULL, 'i'},
                                      {"filename", required_argument, NULL, 'f'},
                                      {"loop", optional_argument, NULL, 'l'},
                                      {"loop-ms", required_argument, NULL, OPTION_LMS},
                                      {"lms", required_argument, NULL, OPTION_LMS},
                                      {"json", no_argument, NULL, 'j'},
                                      {"version", no_argument, NULL, OPTION_VERSION},
                                      {"help", no_argument, NULL, 'h'},
                                      {"help-query-gpu", no_argument, NULL, OPTION_HELP_GPU},
                                      {"help-query-compute-apps", no_argument, NULL, OPTION_HELP_PROCESSES},
                                      {NULL, 0, NULL, 0}};

/* Reads an interval. Its text may be the next argument, as nvidia-smi takes it. */
static bool read_interval(int argc, char **argv, const char *text, long long scale, long long *interval_ms_p) {
    if (text == NULL && optind < argc && hws_status_number(argv[optind]) >= 0) {
        text = argv[optind++];
    }
    long long number = text == NULL ? DEFAULT_INTERVAL_S : hws_status_number(text);
    *interval_ms_p = number * scale;
    if (number >= 1 && number <= MAX_INTERVAL_S * 1000LL / scale) {
        return true;
    }
    fprintf(stderr, "hawser smi: an interval is 1 to %lld %s: %s\n", MAX_INTERVAL_S * 1000LL / scale,
            scale == 1 ? "milliseconds" : "seconds", text == NULL ? "" : text);
    return false;
}

/* Reads csv[,noheader][,nounits]. */
static bool read_format(const char *text, hws_smi_format_t *format_p) {
    bool csv = false;
    *format_p = (hws_smi_format_t) {true, true};
    for (const char *at = text; at != NULL; at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1) {
        size_t length = strcspn(at, ",");
        if (length == 3 && strncmp(at, "csv", length) == 0) {
            csv = true;
        } else if (length == 8 && strncmp(at, "noheader", length) == 0) {
            format_p->header = false;
        } else if (length == 7 && strncmp(at, "nounits", length) == 0) {
            format_p->units = false;
        } else {
            return false;
        }
    }
    return csv;
}

/* Takes one option. Returns HWS_EXIT_OK; -1 when it has printed what was asked; or HWS_EXIT_USAGE. */
static int take(int choice, int argc, char **argv, options_t *options) {
    switch (choice) {
        case 'L':
            options->list = true;
            return HWS_EXIT_OK;
        case 'q':
            options->log = true;
            return HWS_EXIT_OK;
        case 'd':
            options->parts = optarg;
            return HWS_EXIT_OK;
        case 'x':
            options->xml = true;
            return HWS_EXIT_OK;
        case 'j':
            options->json = true;
            return HWS_EXIT_OK;
        case 'i':
            options->ids = optarg;
            return HWS_EXIT_OK;
        case OPTION_VERSION:
            options->version = true;
            return HWS_EXIT_OK;
        case OPTION_QUERY_GPU:
            options->gpu_fields = optarg;
            return HWS_EXIT_OK;
        case OPTION_QUERY_PROCESSES:
            options->process_fields = optarg;
            return HWS_EXIT_OK;
        case OPTION_FORMAT:
            options->has_format = read_format(optarg, &options->format);
            return options->has_format ? HWS_EXIT_OK : HWS_EXIT_USAGE;
        case 'l':
            return read_interval(argc, argv, optarg, 1000, &options->interval_ms) ? HWS_EXIT_OK : HWS_EXIT_USAGE;
        case OPTION_LMS:
            return read_interval(argc, argv, optarg, 1, &options->interval_ms) ? HWS_EXIT_OK : HWS_EXIT_USAGE;
        case 'f':
            if (freopen(optarg, "w", stdout) != NULL) {
                return HWS_EXIT_OK;
            }
            perror(optarg);
            return HWS_EXIT_USAGE;
        case 'h':
            fputs(usage, stdout);
            return -1;
        case OPTION_HELP_GPU:
            hws_smi_list_fields();
            return -1;
        case OPTION_HELP_PROCESSES:
            hws_smi_list_process_fields();
            return -1;
        default:
            return HWS_EXIT_USAGE;
    }
}

static int parse(int argc, char **argv, options_t *options) {
    int choice, rc = HWS_EXIT_OK;
    /* As nvidia-smi, which takes long options with one dash as well: -lms. */
    while (rc == HWS_EXIT_OK && (choice = getopt_long_only(argc, argv, "Lqd:xi:l::f:h", known, NULL)) != -1) {
        rc = take(choice, argc, argv, options);
    }
    bool query = options->gpu_fields != NULL || options->process_fields != NULL;
    if (rc == HWS_EXIT_OK && optind < argc) {
        fprintf(stderr, "hawser smi: %s: not known here\n", argv[optind]);
        rc = HWS_EXIT_USAGE;
    } else if (rc == HWS_EXIT_OK && options->has_format && !query) {
        fputs("hawser smi: --format needs a query\n", stderr);
        rc = HWS_EXIT_USAGE;
    } else if (rc == HWS_EXIT_OK && (options->parts != NULL || options->xml) && !options->log) {
        fputs("hawser smi: -d and -x need -q\n", stderr);
        rc = HWS_EXIT_USAGE;
    } else if (rc == HWS_EXIT_USAGE) {
        fputs(usage, stderr);
    }
    return rc;
}

int hws_smi_choose(const char *ids, hws_smi_gpus_t *gpus_p) {
    bool chosen[HWS_SMI_MAX_GPUS] = {false};
    unsigned count = 0, index;
    nvmlDevice_t device;
    nvmlDeviceGetCount_v2(&count);
    count = count < HWS_SMI_MAX_GPUS ? count : HWS_SMI_MAX_GPUS;
    for (const char *at = ids; at != NULL; at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1) {
        char id[HWS_SMI_MAX_TEXT];
        snprintf(id, sizeof id, "%.*s", (int) strcspn(at, ","), at);
        long long number = hws_status_number(id);
        if (!(number >= 0 && number < count
              && nvmlDeviceGetHandleByIndex_v2((unsigned) number, &device) == NVML_SUCCESS)
            && nvmlDeviceGetHandleByUUID(id, &device) != NVML_SUCCESS
            && nvmlDeviceGetHandleByPciBusId_v2(id, &device) != NVML_SUCCESS) {
            return -1;
        }
        if (nvmlDeviceGetIndex(device, &index) == NVML_SUCCESS && index < count) {
            chosen[index] = true;
        }
    }
    gpus_p->count = 0;
    for (unsigned i = 0; i < count; i++) {
        if ((ids == NULL || chosen[i]) && nvmlDeviceGetHandleByIndex_v2(i, &device) == NVML_SUCCESS) {
            gpus_p->devices[gpus_p->count++] = device;
        }
    }
    return gpus_p->count > 0 ? 0 : -1;
}

/* As nvidia-smi --version. NVML's version there is the first two numbers of the driver's. */
static void print_version(void) {
    char driver[HWS_SMI_MAX_TEXT] = "";
    int cuda = 0;
    nvmlSystemGetDriverVersion(driver, sizeof driver);
    nvmlSystemGetCudaDriverVersion_v2(&cuda);
    size_t first = strcspn(driver, "."), second = driver[first] == '.' ? 1 + strcspn(driver + first + 1, ".") : 0;
    printf("NVIDIA-SMI version  : %s\nNVML version        : %.*s\nDRIVER version      : %s\n", driver,
           (int) (first + second), driver, driver);
    printf("CUDA Version        : %d.%d\n", cuda / 1000, cuda / 10 % 100);
}

/* Prints what NVML answers: --version, -L, -q and queries. Returns an exit code. */
static int print_answers(const options_t *options) {
    char error[512] = "", name[HWS_SMI_MAX_TEXT], uuid[HWS_SMI_MAX_TEXT];
    hws_smi_gpus_t gpus;
    if (options->version) {
        print_version();
        return HWS_EXIT_OK;
    }
    if (hws_smi_choose(options->ids, &gpus) != 0) {
        puts("No devices were found");
        return HWS_EXIT_NO_DEVICE;
    }
    int rc = 0;
    if (options->gpu_fields != NULL) {
        rc = hws_smi_query_gpus(options->gpu_fields, &gpus, &options->format, error, sizeof error);
    } else if (options->process_fields != NULL) {
        rc = hws_smi_query_processes(options->process_fields, &gpus, &options->format, error, sizeof error);
    } else if (options->log) {
        rc = hws_smi_log(&gpus, options->parts, options->xml, error, sizeof error);
    } else {
        for (unsigned i = 0; i < gpus.count; i++) {
            unsigned index = 0;
            nvmlDeviceGetIndex(gpus.devices[i], &index);
            hws_smi_read(hws_smi_field("name", 4), gpus.devices[i], false, name);
            hws_smi_read(hws_smi_field("uuid", 4), gpus.devices[i], false, uuid);
            printf("GPU %u: %s (UUID: %s)\n", index, name, uuid);
        }
    }
    if (rc != 0) {
        printf("%s\n", error);
        return HWS_EXIT_USAGE;
    }
    return HWS_EXIT_OK;
}

/* Prints the status as JSON or as a table. Returns an exit code. */
static int print_status(const options_t *options) {
    char error[1024];
    if (fetch(error, sizeof error) != 0) {
        fprintf(stderr, "hawser smi: no vGPU: %s\n", error);
        return HWS_EXIT_PROBLEM;
    }
    if (options->json) {
        print_json();
    } else {
        print_screen();
    }
    return HWS_EXIT_OK;
}

static void pause_ms(long long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&left, NULL);
}

/* HWS_EXIT_OK if a vGPU answers. Otherwise NVML's log has the reason. */
static int find_vgpu(const char *program) {
    if (nvmlInit_v2() == NVML_SUCCESS) {
        return HWS_EXIT_OK;
    }
    if (!hws_agent_is_nvidia_smi(program)) {
        return HWS_EXIT_PROBLEM;
    }
    puts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.");
    return HWS_EXIT_NO_DRIVER;
}

int hws_agent_smi(int argc, char **argv) {
    options_t options = {.format = {true, true}};
    bool is_dmon = argc > 1 && strcmp(argv[1], "dmon") == 0;
    int rc = is_dmon ? HWS_EXIT_OK : parse(argc, argv, &options);
    if (rc != HWS_EXIT_OK) {
        return rc < 0 ? HWS_EXIT_OK : rc;
    }
    bool answers =
        options.version || options.list || options.log || options.gpu_fields != NULL || options.process_fields != NULL;
    if (answers || is_dmon || hws_agent_is_nvidia_smi(argv[0])) {
        rc = find_vgpu(argv[0]);
    }
    if (rc != HWS_EXIT_OK || is_dmon) {
        return rc != HWS_EXIT_OK ? rc : hws_smi_dmon(argc - 1, argv + 1);
    }
    do {
        rc = answers ? print_answers(&options) : print_status(&options);
        options.format.header = false; /* once */
        fflush(stdout);
        if (options.interval_ms > 0 && rc == HWS_EXIT_OK) {
            pause_ms(options.interval_ms);
        }
    } while (options.interval_ms > 0 && (rc == HWS_EXIT_OK || !answers));
    return rc;
}
