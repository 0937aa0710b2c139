/* Reading a status: a broker chooses each byte of it. */
#include "hws_nvml.h"
#include "hws_test.h"

#include <string.h>

static const char sample[] =
    "status 1\nbroker\t0.1\ndriver\t580.159.03\nvgpu\ta\t1024\t100\texclusive\t0\n"
    "gpu\t0\tNVIDIA H200\tABCDEF00-0000-4000-8000-000000000001\t1000\t10\t37\t41\t71\t0000:19:00.0\t9.0\n"
    "sensors\t0\t5\t71500\t700000\t700000\t700000\t200000\t700000\t123456789\t1980\t1980\t3201\t1500\t1980\t1980\t3201"
    "\t1545\t0\t4\n"
    "gpu\t1\tNVIDIA L40\tu1\t2000\t-\t-\t-\t-\t00000001:0A:1F.0\t8.9\n"
    "session\t7\t42\tpython\there\ttcp\trunning\t4096\t1\t1\t1\nsession\t8\t43\tother\tthere\ttcp\trunning\t1\t1\t1\t1\n"
    "session\t9\t44\tlast\there\ttcp\tending\t1\t1\t1\t1\nsession\t10\t45\tnew\there\ttcp\tstarting\t-\t-\t-\t-\n"
    "traits\t0\t24\t1\t0\t17\t18\t55550000\t4\t5\t16\t8\n"
    "process\t46\there\t8192\nprocess\t47\tthere\t1\n";

static hws_nvml_facts_t facts;

static void parse(const char *text, size_t bytes) {
    char *copy = calloc(1, bytes + 1);
    memcpy(copy, text, bytes);
    hws_nvml_parse(copy, "here", &facts);
    free(copy);
}

static void shouldReadEachFigure(void) {
    parse(sample, sizeof sample - 1);
    HWS_CHECK(strcmp(facts.driver, "580.159.03") == 0 && facts.gpu_count == 2);
    const hws_nvml_gpu_t *gpu = &facts.gpus[0];
    HWS_CHECK(gpu->present && strcmp(gpu->name, "NVIDIA H200") == 0);
    HWS_CHECK(strcmp(gpu->uuid, "GPU-abcdef00-0000-4000-8000-000000000001") == 0);
    HWS_CHECK(gpu->total_bytes == 1000 && gpu->used_bytes == 10 && gpu->utilization == 37 && gpu->celsius == 41);
    HWS_CHECK(gpu->domain == 0 && gpu->bus == 0x19 && gpu->device == 0 && gpu->major == 9 && gpu->minor == 0);
    HWS_CHECK(gpu->sensors[HWS_SENSOR_MEMORY_UTILIZATION] == 5 && gpu->sensors[HWS_SENSOR_POWER_MW] == 71500);
    HWS_CHECK(gpu->sensors[HWS_SENSOR_ENERGY_MJ] == 123456789 && gpu->sensors[HWS_SENSOR_CLOCK_MHZ + 2] == 3201);
    HWS_CHECK(gpu->sensors[HWS_SENSOR_MAX_CLOCK_MHZ + 3] == 1545 && gpu->sensors[HWS_SENSOR_CLOCK_REASONS] == 4);
    HWS_CHECK(gpu->traits[HWS_TRAIT_RESERVED_BYTES] == 24 && gpu->traits[HWS_TRAIT_PENDING_ECC_MODE] == 0);
    HWS_CHECK(gpu->traits[HWS_TRAIT_PCI_SUBSYSTEM_ID] == 18 && strcmp(gpu->peers, "55550000") == 0);
    HWS_CHECK(gpu->traits[HWS_TRAIT_PCIE_GENERATION] == 4 && gpu->traits[HWS_TRAIT_GPU_PCIE_GENERATION] == 5);
    HWS_CHECK(gpu->traits[HWS_TRAIT_MAX_PCIE_WIDTH] == 16 && gpu->traits[HWS_TRAIT_PCIE_WIDTH] == 8);
    gpu = &facts.gpus[1];
    HWS_CHECK(gpu->traits[HWS_TRAIT_PCIE_WIDTH] == -1);
    HWS_CHECK(gpu->traits[HWS_TRAIT_ECC_MODE] == -1 && gpu->peers[0] == '\0');
    HWS_CHECK(gpu->domain == 1 && gpu->bus == 0x0a && gpu->device == 0x1f && gpu->major == 8 && gpu->minor == 9);
    HWS_CHECK(gpu->used_bytes == -1 && gpu->utilization == -1 && gpu->celsius == -1);
    HWS_CHECK(gpu->sensors[HWS_SENSOR_POWER_MW] == -1 && gpu->sensors[HWS_SENSOR_CLOCK_REASONS] == -1);
}

static void shouldListOnlyLiveProcessesOfThisMachine(void) {
    parse(sample, sizeof sample - 1);
    HWS_CHECK(facts.process_count == 3);
    HWS_CHECK(facts.processes[0].pid == 42 && facts.processes[0].used_bytes == 4096);
    HWS_CHECK(facts.processes[1].pid == 45 && facts.processes[1].used_bytes == -1);
    HWS_CHECK(facts.processes[2].pid == 46 && facts.processes[2].used_bytes == 8192);
}

static void shouldTakeEveryTruncation(void) {
    for (size_t cut = 0; cut < sizeof sample; cut++) {
        parse(sample, cut);
        HWS_CHECK(facts.gpu_count <= 2 && facts.process_count <= 4);
    }
}

static void shouldSkipWhatNoBrokerWrites(void) {
    static const char *const wrong[] = {"gpu\t1\tname\tuuid\n",
                                        "gpu\t-1\tname\tuuid\n",
                                        "gpu\t\tname\tuuid\n",
                                        "gpu\t0\tname\t\n",
                                        "gpu\n",
                                        "sensors\t0\t1\n",
                                        "sensors\t99999999999999999999\t1\n",
                                        "sensors\t-\t1\n",
                                        "traits\t0\t1\n",
                                        "traits\t-\t1\n",
                                        "session\t1\t0\tp\there\n",
                                        "session\t1\t-5\tp\there\n",
                                        "session\t1\t99999999999\tp\there\n",
                                        "session\t1\tabc\tp\there\n",
                                        "driver\t-\n",
                                        "process\n",
                                        "process\t0\there\t1\n",
                                        "process\t-1\there\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        parse(wrong[i], strlen(wrong[i]));
        HWS_CHECK(facts.gpu_count == 0 && facts.process_count == 0 && facts.driver[0] == '\0');
    }
}

/* Names as long as the text, and more lines than the tables have rows. */
static void shouldLimitNamesAndLines(void) {
    static char text[61440];
    memset(text, 'x', sizeof text);
    memcpy(text, "gpu\t0\t", 6);
    text[30000] = '\t';
    parse(text, sizeof text);
    HWS_CHECK(facts.gpu_count == 1 && strlen(facts.gpus[0].name) == sizeof facts.gpus[0].name - 1);
    HWS_CHECK(strlen(facts.gpus[0].uuid) == sizeof facts.gpus[0].uuid - 1 && facts.gpus[0].total_bytes == -1);
    memcpy(text, "driver\t", 7);
    parse(text, sizeof text);
    HWS_CHECK(strlen(facts.driver) == sizeof facts.driver - 1);
    int length = 0;
    for (int i = 0; i < 200; i++) {
        length += snprintf(text + length, sizeof text - (size_t) length, "gpu\t%d\tn\tu%d\n", i, i);
    }
    for (int i = 1; i <= 1500; i++) {
        length += snprintf(text + length, sizeof text - (size_t) length, "session\t1\t%d\tp\there\n", i);
    }
    HWS_CHECK(length < (int) sizeof text);
    parse(text, (size_t) length);
    HWS_CHECK(facts.gpu_count == HWS_NVML_MAX_GPUS && facts.process_count == HWS_NVML_MAX_PROCESSES);
}

/* Any bytes at all, and sound lines with some bytes replaced. */
static void shouldTakeAnyBytes(void) {
    uint64_t seed = 20261123;
    char text[sizeof sample];
    for (int round = 0; round < 20000; round++) {
        memcpy(text, sample, sizeof text);
        int changes = round % 3 == 0 ? (int) sizeof text - 1 : 1 + round % 20;
        for (int i = 0; i < changes; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[(seed >> 33) % (sizeof text - 1)] = (char) (seed >> 56);
        }
        parse(text, sizeof text - 1);
        HWS_CHECK(facts.gpu_count <= HWS_NVML_MAX_GPUS && facts.process_count <= HWS_NVML_MAX_PROCESSES);
        for (unsigned i = 0; i < facts.gpu_count; i++) {
            HWS_CHECK(facts.gpus[i].index == i && memchr(facts.gpus[i].name, 0, sizeof facts.gpus[i].name) != NULL);
            HWS_CHECK(facts.gpus[i].domain >= -1 && facts.gpus[i].bus <= 0xff && facts.gpus[i].device <= 0x1f);
        }
    }
}

int main(void) {
    HWS_RUN(shouldReadEachFigure);
    HWS_RUN(shouldListOnlyLiveProcessesOfThisMachine);
    HWS_RUN(shouldTakeEveryTruncation);
    HWS_RUN(shouldSkipWhatNoBrokerWrites);
    HWS_RUN(shouldLimitNamesAndLines);
    HWS_RUN(shouldTakeAnyBytes);
    return 0;
}
