/* hawser smi dmon: a row for each GPU and interval. */
#include "agent.h"
#include "smi.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_SECONDS 86400
#define HEAD_ROWS 40 /* then the head comes again */

static const char usage[] =
    "usage: hawser smi dmon [-i ID] [-s pucvmet] [-d SECONDS] [-c COUNT] [-o DT]\n"
    "  -i ID         the GPUs: indexes, UUIDs or PCI bus ids, separated by commas\n"
    "  -s LETTERS    the columns: p power and temperature, u utilisation, c clocks, v violations, m memory,\n"
    "                e ECC errors, t PCIe (default: puc); a vGPU has no figures for v and t\n"
    "  -d SECONDS    the interval (default: 1)\n"
    "  -c COUNT      the number of rows for each GPU (default: no end)\n"
    "  -o DT         prints date and time\n";

static const struct {
    char letter;
    const char *title, *unit, *field; /* field NULL: a vGPU never has it */
} columns[] = {
    {'p', "pwr", "W", "power.draw"},
    {'p', "gtemp", "C", "temperature.gpu"},
    {'p', "mtemp", "C", "temperature.memory"},
    {'u', "sm", "%", "utilization.gpu"},
    {'u', "mem", "%", "utilization.memory"},
    {'u', "enc", "%", "utilization.encoder"},
    {'u', "dec", "%", "utilization.decoder"},
    {'u', "jpg", "%", "utilization.jpeg"},
    {'u', "ofa", "%", "utilization.ofa"},
    {'c', "mclk", "MHz", "clocks.current.memory"},
    {'c', "pclk", "MHz", "clocks.current.graphics"},
    {'v', "pviol", "%", NULL},
    {'v', "tviol", "bool", NULL},
    {'m', "fb", "MB", "memory.used"},
    {'m', "bar1", "MB", NULL},
    {'m', "ccpm", "MB", NULL},
    {'e', "sbecc", "errs", "ecc.errors.corrected.volatile.total"},
    {'e', "dbecc", "errs", "ecc.errors.uncorrected.volatile.total"},
    {'e', "pci", "errs", NULL},
    {'t', "rxpci", "MB/s", NULL},
    {'t', "txpci", "MB/s", NULL},
};

typedef struct monitor {
    const char *ids, *letters;
    int interval_s;
    long count; /* of rows; 0: no end */
    bool date, time;
} monitor_t;

/* Prints a line of the head. `unit`: the second one. */
static void print_head(const monitor_t *monitor, bool unit) {
    printf("#");
    if (monitor->date) {
        printf("%-12s", unit ? "YYYYMMDD" : "Date");
    }
    if (monitor->time) {
        printf("%-13s", unit ? "HH:MM:SS" : "Time");
    }
    printf(monitor->date || monitor->time ? "%3s " : "%4s ", unit ? "Idx" : "gpu");
    for (const char *letter = monitor->letters; *letter != '\0'; letter++) {
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
            if (columns[i].letter == *letter) {
                printf("%6s ", unit ? columns[i].unit : columns[i].title);
            }
        }
    }
    puts("");
}

static void print_row(const monitor_t *monitor, nvmlDevice_t device) {
    char text[HWS_SMI_MAX_TEXT];
    struct tm local;
    time_t now = time(NULL);
    unsigned index = 0;
    localtime_r(&now, &local);
    printf(" ");
    if (monitor->date) {
        strftime(text, sizeof text, "%Y%m%d", &local);
        printf("%-12s", text);
    }
    if (monitor->time) {
        strftime(text, sizeof text, "%H:%M:%S", &local);
        printf("%-13s", text);
    }
    nvmlDeviceGetIndex(device, &index);
    printf(monitor->date || monitor->time ? "%3u " : "%4u ", index);
    for (const char *letter = monitor->letters; *letter != '\0'; letter++) {
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
            if (columns[i].letter != *letter) {
                continue;
            }
            snprintf(text, sizeof text, "%s", HWS_SMI_NOT_AVAILABLE);
            if (columns[i].field != NULL) {
                hws_smi_read(hws_smi_field(columns[i].field, strlen(columns[i].field)), device, false, text);
            }
            if (text[0] == '[') {
                printf("%6s ", "-");
            } else {
                printf("%6.0f ", strtod(text, NULL));
            }
        }
    }
    puts("");
}

static long read_number(const char *text, long most) {
    char *end;
    long value = strtol(text, &end, 10);
    return end == text || *end != '\0' || value < 1 || value > most ? -1 : value;
}

static int parse(int argc, char **argv, monitor_t *monitor) {
    int choice;
    optind = 1;
    while ((choice = getopt(argc, argv, "i:s:d:c:o:h")) != -1) {
        switch (choice) {
            case 'i':
                monitor->ids = optarg;
                break;
            case 's':
                monitor->letters = optarg;
                break;
            case 'd':
                monitor->interval_s = (int) read_number(optarg, MAX_SECONDS);
                break;
            case 'c':
                monitor->count = read_number(optarg, 1L << 30);
                break;
            case 'o':
                monitor->date = strpbrk(optarg, "dD") != NULL;
                monitor->time = strpbrk(optarg, "tT") != NULL;
                break;
            case 'h':
                fputs(usage, stdout);
                return -1;
            default:
                fputs(usage, stderr);
                return HWS_EXIT_USAGE;
        }
    }
    if (optind < argc || monitor->interval_s < 0 || monitor->count < 0 || monitor->letters[0] == '\0'
        || strspn(monitor->letters, "pucvmet") != strlen(monitor->letters)) {
        fputs(usage, stderr);
        return HWS_EXIT_USAGE;
    }
    return HWS_EXIT_OK;
}

int hws_smi_dmon(int argc, char **argv) {
    monitor_t monitor = {.letters = "puc", .interval_s = 1};
    hws_smi_gpus_t gpus;
    int rc = parse(argc, argv, &monitor);
    if (rc != HWS_EXIT_OK) {
        return rc < 0 ? HWS_EXIT_OK : rc;
    }
    if (hws_smi_choose(monitor.ids, &gpus) != 0) {
        puts("No devices were found");
        return HWS_EXIT_NO_DEVICE;
    }
    for (long row = 0; monitor.count == 0 || row < monitor.count; row++) {
        if (row > 0) {
            sleep((unsigned) monitor.interval_s);
        }
        if (row % HEAD_ROWS == 0) {
            print_head(&monitor, false);
            print_head(&monitor, true);
        }
        for (unsigned i = 0; i < gpus.count; i++) {
            print_row(&monitor, gpus.devices[i]);
        }
        fflush(stdout);
    }
    return HWS_EXIT_OK;
}
