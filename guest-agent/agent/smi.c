/* hawser smi: shows the vGPU in the style of nvidia-smi. */
#include "agent.h"
#include "hws_status_text.h"

#include "hws_description.h"
#include "hws_status.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_INTERVAL_S 86400

typedef struct options {
    bool list, json;
    int interval_s; /* 0: once */
} options_t;

static const char usage[] = "usage: hawser smi [-L] [-l SECONDS] [--json]\n"
                            "  -L, --list-gpus        lists the GPUs, one on each line\n"
                            "  -l, --loop SECONDS     repeats each SECONDS, until interrupted\n"
                            "      --json             prints JSON; with --loop one object on each line\n";

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

static void print_more(const hws_status_line_t *line) {
    printf("| and %6.6s more %70s |\n", line->fields[1], "");
}

static void print_screen(void) {
    char when[64];
    time_t now = time(NULL);
    struct tm local;
    strftime(when, sizeof when, "%a %b %e %H:%M:%S %Y", localtime_r(&now, &local));
    puts(when);
    print_rule();
    printf("| Hawser %-30.30s %48.48s |\n", HAWSER_VERSION, status.from);
    if (print_table("vgpu", print_vgpu) == 0) {
        puts("| the broker does not name the vGPU                                                      |");
    }
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

static void print_line(const hws_status_line_t *line) {
    printf("GPU %s: %s (UUID: GPU-%s)\n", line->fields[1], line->fields[2], line->fields[3]);
}

static int parse(int argc, char **argv, options_t *options) {
    static const struct option known[] = {{"list-gpus", no_argument, NULL, 'L'},
                                          {"loop", required_argument, NULL, 'l'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int choice;
    while ((choice = getopt_long(argc, argv, "Ll:h", known, NULL)) != -1) {
        long long seconds;
        switch (choice) {
            case 'L':
                options->list = true;
                break;
            case 'j':
                options->json = true;
                break;
            case 'l':
                seconds = hws_status_number(optarg);
                if (seconds < 1 || seconds > MAX_INTERVAL_S) {
                    fprintf(stderr, "hawser smi: --loop takes 1 to %d seconds: %s\n", MAX_INTERVAL_S, optarg);
                    return HWS_EXIT_USAGE;
                }
                options->interval_s = (int) seconds;
                break;
            case 'h':
                fputs(usage, stdout);
                return -1;
            default:
                fputs(usage, stderr);
                return HWS_EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fputs(usage, stderr);
        return HWS_EXIT_USAGE;
    }
    return HWS_EXIT_OK;
}

int hws_agent_smi(int argc, char **argv) {
    options_t options = {0};
    int rc = parse(argc, argv, &options);
    if (rc != HWS_EXIT_OK) {
        return rc < 0 ? HWS_EXIT_OK : rc;
    }
    do {
        char error[1024];
        rc = fetch(error, sizeof error) == 0 ? HWS_EXIT_OK : HWS_EXIT_PROBLEM;
        if (rc != HWS_EXIT_OK) {
            fprintf(stderr, "hawser smi: no vGPU: %s\n", error);
        } else if (options.json) {
            print_json();
        } else if (options.list) {
            print_table("gpu", print_line);
        } else {
            print_screen();
        }
        fflush(stdout);
    } while (options.interval_s > 0 && sleep((unsigned) options.interval_s) == 0);
    return rc;
}
