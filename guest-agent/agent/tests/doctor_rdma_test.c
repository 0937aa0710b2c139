/* hawser doctor: lines about RDMA, from a made /sys and /dev. */
#include "tests/hws_test.h"

#include "doctor_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/hws-doctor-XXXXXX";

/* Writes a file below the folder, and makes the folders above it. */
static void put(const char *path, const char *text) {
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    for (char *slash = strchr(whole + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash = '/';
    }
    FILE *file = fopen(whole, "we");
    HWS_CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0 && chmod(whole, 0666) == 0);
}

static void expect(bool usable, bool required, const char *device, const char *line) {
    char sysfs[256], devices[256];
    snprintf(sysfs, sizeof sysfs, "%s/sys", folder);
    snprintf(devices, sizeof devices, "%s/dev", folder);
    report[0] = '\0';
    bool found = hws_doctor_check_rdma(
        &(hws_doctor_rdma_t) {.sysfs = sysfs, .devices = devices, .device = device, .required = required});
    if (found != usable || strstr(report, line) == NULL) {
        fprintf(stderr, "usable=%d, expected %d and \"%s\" in:\n%s", found, usable, line, report);
        abort();
    }
}

/* Returns false when this machine permits less. */
static bool limit_locked(rlim_t kib) {
    struct rlimit limit;
    HWS_CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    limit.rlim_cur = kib << 10;
    return limit.rlim_cur <= limit.rlim_max && setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
}

int main(void) {
    HWS_CHECK(mkdtemp(folder) != NULL);
    /* Any library stands for libibverbs. */
    setenv("HAWSER_VERBS_LIBRARY", "libm.so.6", 1);

    expect(false, false, "", "note RDMA: this machine has no adapter\n");
    expect(false, true, "mlx5_1", "FAIL RDMA: this machine has no adapter mlx5_1\n");

    put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
    put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
    put("sys/class/infiniband/mlx5_0/ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    expect(false, true, "", "FAIL RDMA: mlx5_0 port 1 (Ethernet) is DOWN: set its network interface up\n");
    put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    expect(false, true, "", "has no GID: give its network interface an address\n");
    /* RoCE of version 1 does not count. */
    put("sys/class/infiniband/mlx5_0/ports/1/gids/1", "fe80:0000:0000:0000:5054:00ff:fe00:0001\n");
    put("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/1", "IB/RoCE v1\n");
    expect(false, true, "", "has no GID");
    put("sys/class/infiniband/mlx5_0/ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    put("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2", "RoCE v2\n");
    expect(false, true, "", "FAIL RDMA: mlx5_0 has no interface for programs: load the module ib_uverbs\n");
    put("sys/class/infiniband_verbs/abi_version", "6\n");
    put("sys/class/infiniband_verbs/uverbs3/ibdev", "mlx5_0\n");
    expect(false, true, "", "/dev/infiniband/uverbs3 cannot be opened by this user: No such file or directory\n");
    put("dev/infiniband/uverbs3", "");
    expect(true, true, "", "ok RDMA: mlx5_0 port 1: Ethernet, active, GID 2 0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    expect(true, true, "mlx5_0", "ok RDMA: libm.so.6\n");
    expect(false, false, "mlx5_1", "note RDMA: this machine has no adapter mlx5_1\n");

    /* The first port of an InfiniBand adapter has its GID at 0; another adapter's port may be down. */
    put("sys/class/infiniband/ibp1/ports/1/state", "2: INIT\n");
    put("sys/class/infiniband/ibp1/ports/1/link_layer", "InfiniBand\n");
    put("sys/class/infiniband/ibp1/ports/1/gids/0", "fe80:0000:0000:0000:02d2:69e8:4797:efbd\n");
    put("sys/class/infiniband_verbs/uverbs4/ibdev", "ibp1\n");
    put("dev/infiniband/uverbs4", "");
    expect(true, false, "", "note RDMA: ibp1 port 1 (InfiniBand) is INIT: check the cable, the subnet manager");
    expect(false, true, "ibp1", "FAIL RDMA: ibp1 port 1 (InfiniBand) is INIT");
    put("sys/class/infiniband/ibp1/ports/1/state", "4: ACTIVE\n");
    expect(true, true, "ibp1", "InfiniBand, active, GID 0 fe80:");

    setenv("HAWSER_VERBS_LIBRARY", "libhws-none.so.1", 1);
    expect(false, true, "ibp1", "install libibverbs1 and ibverbs-providers");
    setenv("HAWSER_VERBS_LIBRARY", "libm.so.6", 1);

    if (geteuid() == 0) {
        expect(true, true, "ibp1", "ok RDMA: locked memory is not limited\n");
        /* Root may lock everything: the limit shows only without root's capabilities. */
        HWS_CHECK(chmod(folder, 0755) == 0 && seteuid(65534) == 0);
    }
    if (limit_locked(20480)) {
        expect(true, true, "ibp1", "note RDMA: locked memory is limited to 20480 KiB (ulimit -l)");
    }
    HWS_CHECK(limit_locked(64));
    expect(false, true, "ibp1", "FAIL RDMA: locked memory is limited to 64 KiB (ulimit -l): a session needs 20480 KiB");
    if (getuid() == 0) {
        HWS_CHECK(seteuid(0) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0); /* for the leak check */
    }
    printf("ok\n");
    return 0;
}
