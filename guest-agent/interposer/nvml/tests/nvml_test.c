/* The functions of libnvidia-ml.so.1 over a status of the test's choice. */
#include "fake_status.h"
#include "hws_nvml.h"
#include "hws_test.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#define HEAD "status 1\ndriver\t580.159.03\nvgpu\ta\t1000\t100\tshared\t0\n"
#define SHARED_GPU "gpu\t0\tNVIDIA H200\tabcdef00-0000-4000-8000-000000000001\t1000\t300\t37\t-\t-\t0000:19:00.0\t9.0\n"
#define SENSORS                                                                                                         \
    "sensors\t0\t5\t71500\t700000\t690000\t680000\t200000\t710000\t123456789\t1980\t1970\t3201\t1500\t1990\t1991\t3202" \
    "\t1545\t2\t4\t511\t50\t72600\t11\t12\t13\t14\n"
#define TRAITS "traits\t0\t24\t1\t0\t590680286\t415109342\t55550156\t4\t5\t16\t8\n"
#define FORMER_TRAITS "traits\t0\t24\t1\t0\t590680286\t415109342\t55550156\n" /* of an older broker */
#define OTHER_GPU "gpu\t1\tNVIDIA L40\tabcdef00-0000-4000-8000-000000000002\t2000\t1\t0\t-\t-\t0000:1a:00.0\t8.9\n"

static char name[96];

/* The host of the sessions is this machine. */
static const char *with_sessions(const char *head, unsigned count) {
    static char text[8192];
    char host[65] = "";
    gethostname(host, 64);
    int length = snprintf(text, sizeof text, "%s", head);
    for (unsigned i = 0; i < count; i++) {
        length += snprintf(text + length, sizeof text - (size_t) length,
                           "session\t%u\t%u\tp\t%s\ttcp\trunning\t%u\t0\t0\t0\n", i, 100 + i, host, 4096 * (i + 1));
    }
    snprintf(text + length, sizeof text - (size_t) length,
             "session\t99\t999\tp\tanother host\ttcp\trunning\t1\t0\t0\t0\n");
    return text;
}

static nvmlDevice_t open_first(const char *status) {
    nvmlDevice_t device;
    fake_status = status;
    HWS_CHECK(nvmlInit_v2() == NVML_SUCCESS);
    HWS_CHECK(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
    return device;
}

/* Lets the last status grow old. */
static void wait_for_refresh(void) {
    unsigned before = fake_status_reads;
    nvmlDevice_t device;
    nvmlUtilization_t use;
    HWS_CHECK(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
    while (fake_status_reads == before) {
        nvmlDeviceGetUtilizationRates(device, &use);
        usleep(1000);
    }
}

extern nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t, unsigned *, unsigned *);

static void shouldRefuseEachCallBeforeInit(void) {
    unsigned count;
    nvmlDevice_t device = hws_nvml_handle(0);
    nvmlMemory_t memory;
    HWS_CHECK(nvmlShutdown() == NVML_ERROR_UNINITIALIZED);
    HWS_CHECK(nvmlDeviceGetCount_v2(&count) == NVML_ERROR_UNINITIALIZED);
    HWS_CHECK(nvmlDeviceGetCount_v2(NULL) == NVML_ERROR_UNINITIALIZED);
    HWS_CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_ERROR_UNINITIALIZED);
    HWS_CHECK(nvmlSystemGetDriverVersion(name, sizeof name) == NVML_ERROR_UNINITIALIZED);
    HWS_CHECK(nvmlDeviceGetMigMode(device, &count, &count) == NVML_ERROR_UNINITIALIZED);
    HWS_CHECK(strcmp(nvmlErrorString(NVML_ERROR_UNINITIALIZED), "Uninitialized") == 0);
    HWS_CHECK(strcmp(nvmlErrorString((nvmlReturn_t) 12345), "Unknown Error") == 0);
}

/* Calls each exported function that needs nvmlInit, without arguments. */
static void call_all(nvmlReturn_t wanted) {
    char function[128];
    unsigned called = 0;
    FILE *list = fopen(HWS_EXPORTS, "r");
    HWS_CHECK(list != NULL);
    while (fscanf(list, "%127s", function) == 1) {
        if (strncmp(function, "nvmlInit", 8) == 0 || strcmp(function, "nvmlErrorString") == 0) {
            continue;
        }
        nvmlReturn_t (*call)(void *, void *, void *, void *, void *, void *);
        *(void **) &call = dlsym(RTLD_DEFAULT, function);
        HWS_CHECK(call != NULL);
        nvmlReturn_t result = call(NULL, NULL, NULL, NULL, NULL, NULL);
        if (result != wanted) {
            fprintf(stderr, "%s returns %d\n", function, result);
            exit(1);
        }
        called++;
    }
    fclose(list);
    HWS_CHECK(called > 300);
}

static void shouldRefuseEachFunctionOutsideAnInitialisation(void) {
    call_all(NVML_ERROR_UNINITIALIZED);
    nvmlDevice_t device = open_first(HEAD SHARED_GPU), again;
    HWS_CHECK(nvmlInit() == NVML_SUCCESS && nvmlShutdown() == NVML_SUCCESS);
    HWS_CHECK(nvmlDeviceGetName(device, name, sizeof name) == NVML_SUCCESS);
    HWS_CHECK(nvmlShutdown() == NVML_SUCCESS);
    call_all(NVML_ERROR_UNINITIALIZED);
    HWS_CHECK(nvmlDeviceGetName(device, name, sizeof name) == NVML_ERROR_UNINITIALIZED);
    again = open_first(HEAD SHARED_GPU);
    HWS_CHECK(again == device && nvmlDeviceGetName(device, name, sizeof name) == NVML_SUCCESS);
    nvmlShutdown();
}

static void shouldHaveTheTextsOfTheDriver(void) {
    HWS_CHECK(strcmp(nvmlErrorString(NVML_ERROR_RESET_REQUIRED), "GPU requires reset") == 0);
    HWS_CHECK(strcmp(nvmlErrorString(NVML_ERROR_ARGUMENT_VERSION_MISMATCH), "Argument version mismatch") == 0);
    HWS_CHECK(strcmp(nvmlErrorString(NVML_ERROR_DEPRECATED), "Requested functionality has been deprecated") == 0);
    HWS_CHECK(strcmp(nvmlErrorString((nvmlReturn_t) 31), "Unknown Error") == 0);
}

static void shouldCountTheDriversMemoryWithAWholeGpu(void) {
    nvmlDevice_t device = open_first(HEAD SHARED_GPU TRAITS);
    nvmlMemory_t memory;
    nvmlMemory_v2_t newer = {.version = nvmlMemory_v2};
    HWS_CHECK(nvmlDeviceGetMemoryInfo_v2(device, &newer) == NVML_SUCCESS);
    HWS_CHECK(newer.total == 1024 && newer.reserved == 24 && newer.used == 300 && newer.free == 700);
    HWS_CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS);
    HWS_CHECK(memory.total == 1024 && memory.used == 324 && memory.free == 700);
    nvmlShutdown();
}

static void shouldTellThePropertiesThatTheBrokerKnows(void) {
    nvmlDevice_t device = open_first(HEAD SHARED_GPU OTHER_GPU TRAITS), other = hws_nvml_handle(1);
    nvmlEnableState_t current, pending;
    nvmlPciInfo_t pci;
    unsigned value, period;
    HWS_CHECK(nvmlDeviceGetEccMode(device, &current, &pending) == NVML_SUCCESS);
    HWS_CHECK(current == NVML_FEATURE_ENABLED && pending == NVML_FEATURE_DISABLED);
    HWS_CHECK(nvmlDeviceGetEccMode(other, &current, &pending) == NVML_ERROR_NOT_SUPPORTED);
    HWS_CHECK(nvmlDeviceGetPciInfo_v3(device, &pci) == NVML_SUCCESS);
    HWS_CHECK(pci.pciDeviceId == 0x233510DE && pci.pciSubSystemId == 0x18BE10DE);
    HWS_CHECK(nvmlDeviceGetPciInfo_v3(other, &pci) == NVML_SUCCESS && pci.pciDeviceId == 0);
    HWS_CHECK(nvmlDeviceGetBoardId(device, &value) == NVML_SUCCESS && value == 0x1900);
    HWS_CHECK(nvmlDeviceGetEncoderUtilization(device, &value, &period) == NVML_SUCCESS && value == 0);
    nvmlShutdown();
}

typedef nvmlReturn_t link_t(nvmlDevice_t, unsigned *);

static void shouldTellTheLinkToTheMachine(void) {
    static const struct {
        link_t *function;
        unsigned wanted;
    } links[] = {{nvmlDeviceGetMaxPcieLinkGeneration, 4},
                 {nvmlDeviceGetCurrPcieLinkGeneration, 4},
                 {nvmlDeviceGetGpuMaxPcieLinkGeneration, 5},
                 {nvmlDeviceGetMaxPcieLinkWidth, 16},
                 {nvmlDeviceGetCurrPcieLinkWidth, 8},
                 {nvmlDeviceGetPcieLinkMaxSpeed, 4},
                 {nvmlDeviceGetPcieSpeed, 16000}};
    nvmlDevice_t device = open_first(HEAD SHARED_GPU TRAITS);
    unsigned value;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        HWS_CHECK(links[i].function(device, &value) == NVML_SUCCESS && value == links[i].wanted);
        HWS_CHECK(links[i].function(device, NULL) == NVML_ERROR_INVALID_ARGUMENT);
    }
    nvmlShutdown();
    device = open_first(HEAD SHARED_GPU FORMER_TRAITS);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        HWS_CHECK(links[i].function(device, &value) == NVML_ERROR_NOT_SUPPORTED);
    }
    nvmlShutdown();
    device = open_first(HEAD SHARED_GPU "traits\t0\t24\t1\t0\t1\t2\t5555\t9\t9\t16\t16\n"); /* of a later machine */
    HWS_CHECK(nvmlDeviceGetPcieSpeed(device, &value) == NVML_ERROR_NOT_SUPPORTED);
    nvmlShutdown();
}

static void shouldTellTheAccessBetweenGpus(void) {
    nvmlDevice_t device = open_first(HEAD SHARED_GPU OTHER_GPU TRAITS), other = hws_nvml_handle(1);
    static const nvmlGpuP2PStatus_t wanted[] = {
        [NVML_P2P_CAPS_INDEX_READ] = 0,
        [NVML_P2P_CAPS_INDEX_WRITE] = 1,
        [NVML_P2P_CAPS_INDEX_NVLINK] = NVML_P2P_STATUS_NOT_SUPPORTED,
        [NVML_P2P_CAPS_INDEX_ATOMICS] = 5,
        [NVML_P2P_CAPS_INDEX_PROP] = 6,
    };
    nvmlGpuP2PStatus_t state;
    nvmlGpuTopologyLevel_t level;
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        HWS_CHECK(nvmlDeviceGetP2PStatus(device, other, i, &state) == NVML_SUCCESS && state == wanted[i]);
        HWS_CHECK(nvmlDeviceGetP2PStatus(device, device, i, &state) == NVML_SUCCESS);
        HWS_CHECK(state == NVML_P2P_STATUS_NOT_SUPPORTED);
    }
    HWS_CHECK(nvmlDeviceGetP2PStatus(other, device, NVML_P2P_CAPS_INDEX_READ, &state) == NVML_SUCCESS);
    HWS_CHECK(state == NVML_P2P_STATUS_UNKNOWN); /* the broker says nothing of it */
    HWS_CHECK(nvmlDeviceGetP2PStatus(device, other, NVML_P2P_CAPS_INDEX_UNKNOWN, &state)
              == NVML_ERROR_INVALID_ARGUMENT);
    HWS_CHECK(nvmlDeviceGetTopologyCommonAncestor(device, other, &level) == NVML_SUCCESS);
    HWS_CHECK(level == NVML_TOPOLOGY_SYSTEM);
    nvmlShutdown();
}

static void shouldCountInitialisations(void) {
    unsigned count;
    fake_status = NULL;
    HWS_CHECK(nvmlInit_v2() == NVML_ERROR_DRIVER_NOT_LOADED && nvmlDeviceGetCount(&count) == NVML_ERROR_UNINITIALIZED);
    fake_status = HEAD SHARED_GPU;
    unsigned before = fake_status_reads;
    HWS_CHECK(nvmlInit() == NVML_SUCCESS && nvmlInit_v2() == NVML_SUCCESS && nvmlInitWithFlags(3) == NVML_SUCCESS);
    HWS_CHECK(fake_status_reads == before + 1);
    for (int i = 0; i < 3; i++) {
        HWS_CHECK(nvmlDeviceGetCount(&count) == NVML_SUCCESS && count == 1);
        HWS_CHECK(nvmlShutdown() == NVML_SUCCESS);
    }
    HWS_CHECK(nvmlShutdown() == NVML_ERROR_UNINITIALIZED);
}

static void shouldFindADeviceByEachName(void) {
    nvmlDevice_t first = open_first(HEAD SHARED_GPU OTHER_GPU), second, found;
    unsigned count;
    HWS_CHECK(nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS && count == 2);
    HWS_CHECK(nvmlDeviceGetHandleByIndex(1, &second) == NVML_SUCCESS && second != first);
    HWS_CHECK(nvmlDeviceGetHandleByIndex_v2(2, &found) == NVML_ERROR_INVALID_ARGUMENT);
    HWS_CHECK(nvmlDeviceGetUUID(second, name, 41) == NVML_SUCCESS);
    HWS_CHECK(nvmlDeviceGetHandleByUUID(name, &found) == NVML_SUCCESS && found == second);
    HWS_CHECK(nvmlDeviceGetHandleByUUID("GPU-ABCDEF00-0000-4000-8000-000000000001", &found) == NVML_SUCCESS);
    HWS_CHECK(found == first && nvmlDeviceGetHandleByUUID("GPU-", &found) == NVML_ERROR_NOT_FOUND);
    HWS_CHECK(nvmlDeviceGetHandleByPciBusId_v2("00000000:1A:00.0", &found) == NVML_SUCCESS && found == second);
    HWS_CHECK(nvmlDeviceGetHandleByPciBusId("0000:19:00.0", &found) == NVML_SUCCESS && found == first);
    HWS_CHECK(nvmlDeviceGetHandleByPciBusId_v2("1a:00.0", &found) == NVML_SUCCESS && found == second);
    HWS_CHECK(nvmlDeviceGetHandleByPciBusId_v2("0000:1b:00.0", &found) == NVML_ERROR_NOT_FOUND);
    HWS_CHECK(nvmlDeviceGetHandleByPciBusId_v2("nonsense", &found) == NVML_ERROR_INVALID_ARGUMENT);
    HWS_CHECK(nvmlDeviceGetHandleBySerial("1", &found) == NVML_ERROR_NOT_FOUND);
    nvmlUUID_t uuid = {.version = nvmlUUID_v1, .type = NVML_UUID_TYPE_ASCII};
    memcpy(uuid.value.str, name, sizeof uuid.value.str);
    HWS_CHECK(nvmlDeviceGetHandleByUUIDV(&uuid, &found) == NVML_SUCCESS && found == second);
    memset(uuid.value.str, 'a', sizeof uuid.value.str); /* without an end */
    HWS_CHECK(nvmlDeviceGetHandleByUUIDV(&uuid, &found) == NVML_ERROR_NOT_FOUND);
    static const unsigned char bytes[16] = {0xab, 0xcd, 0xef, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 1};
    uuid.type = NVML_UUID_TYPE_BINARY;
    memcpy(uuid.value.bytes, bytes, sizeof bytes);
    HWS_CHECK(nvmlDeviceGetHandleByUUIDV(&uuid, &found) == NVML_SUCCESS && found == first);
    uuid.version = 0;
    HWS_CHECK(nvmlDeviceGetHandleByUUIDV(&uuid, &found) == NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    nvmlShutdown();
}

static void shouldRefuseUnknownDevices(void) {
    nvmlDevice_t first = open_first(HEAD SHARED_GPU);
    nvmlDevice_t wrong[] = {NULL, hws_nvml_handle(1), (nvmlDevice_t) (uintptr_t) 0xdeadbeef};
    nvmlMemory_t memory;
    unsigned number;
    HWS_CHECK(nvmlDeviceGetMemoryInfo(first, NULL) == NVML_ERROR_INVALID_ARGUMENT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        HWS_CHECK(nvmlDeviceGetMemoryInfo(wrong[i], &memory) == NVML_ERROR_INVALID_ARGUMENT);
        HWS_CHECK(nvmlDeviceGetName(wrong[i], name, sizeof name) == NVML_ERROR_INVALID_ARGUMENT);
        HWS_CHECK(nvmlDeviceGetPowerUsage(wrong[i], &number) == NVML_ERROR_INVALID_ARGUMENT);
        number = 0;
        HWS_CHECK(nvmlDeviceGetComputeRunningProcesses_v3(wrong[i], &number, NULL) == NVML_ERROR_INVALID_ARGUMENT);
    }
    nvmlShutdown();
}

static void shouldFillOnlyBuffersThatAreLargeEnough(void) {
    nvmlDevice_t device = open_first(HEAD SHARED_GPU);
    memset(name, 'z', sizeof name);
    HWS_CHECK(nvmlDeviceGetName(device, name, 11) == NVML_ERROR_INSUFFICIENT_SIZE && name[0] == 'z');
    HWS_CHECK(nvmlDeviceGetName(device, name, 12) == NVML_SUCCESS && strcmp(name, "NVIDIA H200") == 0
              && name[12] == 'z');
    HWS_CHECK(nvmlDeviceGetUUID(device, name, 40) == NVML_ERROR_INSUFFICIENT_SIZE);
    HWS_CHECK(nvmlDeviceGetUUID(device, name, 41) == NVML_SUCCESS);
    HWS_CHECK(nvmlSystemGetDriverVersion(name, 10) == NVML_ERROR_INSUFFICIENT_SIZE);
    HWS_CHECK(nvmlSystemGetDriverVersion(name, 11) == NVML_SUCCESS && strcmp(name, "580.159.03") == 0);
    HWS_CHECK(nvmlSystemGetNVMLVersion(name, 80) == NVML_SUCCESS && strcmp(name, "13.580.159.03") == 0);
    nvmlShutdown();
}

static void shouldFillEachVersionOfAStructure(void) {
    nvmlDevice_t device = open_first(HEAD SHARED_GPU);
    nvmlMemory_t memory;
    nvmlMemory_v2_t newer = {.version = nvmlMemory_v2};
    HWS_CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS);
    HWS_CHECK(memory.total == 1000 && memory.used == 300 && memory.free == 700);
    HWS_CHECK(nvmlDeviceGetMemoryInfo_v2(device, &newer) == NVML_SUCCESS && newer.version == nvmlMemory_v2);
    HWS_CHECK(newer.total == 1000 && newer.used == 300 && newer.free == 700 && newer.reserved == 0);
    newer.version = sizeof newer | 3u << 24;
    HWS_CHECK(nvmlDeviceGetMemoryInfo_v2(device, &newer) == NVML_ERROR_FUNCTION_NOT_FOUND);

    nvmlPciInfo_t pci[2];
    memset(pci, 0x5a, sizeof pci);
    HWS_CHECK(nvmlDeviceGetPciInfo(device, pci) == NVML_SUCCESS && strcmp(pci->busIdLegacy, "0000:19:00.0") == 0);
    HWS_CHECK(pci->bus == 0x19 && pci->pciDeviceId == 0 && pci->pciSubSystemId == 0x5a5a5a5a && pci->busId[0] == 0x5a);
    HWS_CHECK(nvmlDeviceGetPciInfo_v2(device, pci) == NVML_SUCCESS && pci->pciSubSystemId == 0
              && pci->busId[0] == 0x5a);
    HWS_CHECK(nvmlDeviceGetPciInfo_v3(device, pci) == NVML_SUCCESS && strcmp(pci->busId, "00000000:19:00.0") == 0);
    HWS_CHECK(pci[1].domain == 0x5a5a5a5a);
    nvmlPciInfoExt_t ext = {.version = nvmlPciInfoExt_v1};
    HWS_CHECK(nvmlDeviceGetPciInfoExt(device, &ext) == NVML_SUCCESS && ext.bus == 0x19 && ext.baseClass == 3);
    HWS_CHECK(strcmp(ext.busId, "00000000:19:00.0") == 0);
    ext.version = 1;
    HWS_CHECK(nvmlDeviceGetPciInfoExt(device, &ext) == NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    nvmlShutdown();
}

static void shouldCountProcessesForASmallBuffer(void) {
    nvmlDevice_t device = open_first(with_sessions(HEAD SHARED_GPU, 3));
    unsigned count = 0;
    HWS_CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL) == NVML_ERROR_INSUFFICIENT_SIZE
              && count == 3);
    nvmlProcessInfo_v1_t v1[4];
    nvmlProcessInfo_v2_t v2[4];
    memset(v1, 0x5a, sizeof v1);
    memset(v2, 0x5a, sizeof v2);
    count = 2;
    HWS_CHECK(nvmlDeviceGetComputeRunningProcesses(device, &count, v1) == NVML_ERROR_INSUFFICIENT_SIZE && count == 3);
    HWS_CHECK(v1[0].pid == 0x5a5a5a5a);
    HWS_CHECK(nvmlDeviceGetComputeRunningProcesses(device, &count, v1) == NVML_SUCCESS && count == 3);
    HWS_CHECK(v1[2].pid == 102 && v1[2].usedGpuMemory == 12288 && v1[3].pid == 0x5a5a5a5a);
    count = 4;
    HWS_CHECK(nvmlDeviceGetComputeRunningProcesses_v2(device, &count, v2) == NVML_SUCCESS && count == 3);
    HWS_CHECK(v2[0].pid == 100 && v2[0].usedGpuMemory == 4096 && v2[0].gpuInstanceId == 0xffffffff);
    HWS_CHECK(v2[3].pid == 0x5a5a5a5a);
    count = 4;
    HWS_CHECK(nvmlDeviceGetGraphicsRunningProcesses_v3(device, &count, v2) == NVML_SUCCESS && count == 0);
    HWS_CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, NULL, v2) == NVML_ERROR_INVALID_ARGUMENT);
    nvmlProcessDetail_v1_t details[4];
    nvmlProcessDetailList_t list = {.version = nvmlProcessDetailList_v1, .procArray = details};
    HWS_CHECK(nvmlDeviceGetRunningProcessDetailList(device, &list) == NVML_ERROR_INSUFFICIENT_SIZE);
    HWS_CHECK(list.numProcArrayEntries == 3);
    HWS_CHECK(nvmlDeviceGetRunningProcessDetailList(device, &list) == NVML_SUCCESS && details[1].pid == 101);
    list.version++;
    HWS_CHECK(nvmlDeviceGetRunningProcessDetailList(device, &list) == NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    nvmlShutdown();
    device = open_first(with_sessions(HEAD SHARED_GPU OTHER_GPU, 1));
    count = 4;
    HWS_CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, v2) == NVML_SUCCESS && count == 1);
    HWS_CHECK(v2[0].usedGpuMemory == (unsigned long long) NVML_VALUE_NOT_AVAILABLE);
    nvmlShutdown();
}

static void shouldTellSensorsOnlyWhereTheBrokerDoes(void) {
    nvmlDevice_t device = open_first(HEAD SHARED_GPU);
    unsigned value, most;
    unsigned long long big;
    nvmlTemperature_t temperature = {.version = nvmlTemperature_v1};
    nvmlFieldValue_t fields[5] = {{.fieldId = NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION},
                                  {.fieldId = NVML_FI_DEV_POWER_INSTANT},
                                  {.fieldId = 60000},
                                  {.fieldId = NVML_FI_DEV_POWER_AVERAGE},
                                  {.fieldId = NVML_FI_DEV_MEMORY_TEMP}};
    nvmlEnableState_t mode;
    HWS_CHECK(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &value) == NVML_ERROR_NOT_SUPPORTED);
    HWS_CHECK(nvmlDeviceGetTemperatureV(device, &temperature) == NVML_ERROR_NOT_SUPPORTED);
    HWS_CHECK(nvmlDeviceGetPowerUsage(device, &value) == NVML_ERROR_NOT_SUPPORTED);
    HWS_CHECK(nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &value) == NVML_ERROR_NOT_SUPPORTED);
    HWS_CHECK(nvmlDeviceGetTotalEnergyConsumption(device, &big) == NVML_ERROR_NOT_SUPPORTED);
    HWS_CHECK(nvmlDeviceGetFieldValues(device, 3, fields) == NVML_SUCCESS);
    HWS_CHECK(fields[0].nvmlReturn == NVML_ERROR_NOT_SUPPORTED && fields[2].nvmlReturn == NVML_ERROR_NOT_SUPPORTED);
    nvmlShutdown();
    device = open_first(HEAD "gpu\t0\tNVIDIA H200\tu\t1000\t300\t37\t41\t71\t0000:19:00.0\t9.0\n" SENSORS);
    nvmlUtilization_t use;
    HWS_CHECK(nvmlDeviceGetUtilizationRates(device, &use) == NVML_SUCCESS && use.gpu == 37 && use.memory == 5);
    HWS_CHECK(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS && value == 41);
    HWS_CHECK(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_COUNT, &value) == NVML_ERROR_INVALID_ARGUMENT);
    HWS_CHECK(nvmlDeviceGetTemperatureV(device, &temperature) == NVML_SUCCESS && temperature.temperature == 41);
    HWS_CHECK(nvmlDeviceGetPowerUsage(device, &value) == NVML_SUCCESS && value == 71500);
    HWS_CHECK(nvmlDeviceGetEnforcedPowerLimit(device, &value) == NVML_SUCCESS && value == 700000);
    HWS_CHECK(nvmlDeviceGetPowerManagementLimit(device, &value) == NVML_SUCCESS && value == 690000);
    HWS_CHECK(nvmlDeviceGetPowerManagementDefaultLimit(device, &value) == NVML_SUCCESS && value == 680000);
    HWS_CHECK(nvmlDeviceGetPowerManagementLimitConstraints(device, &value, &most) == NVML_SUCCESS);
    HWS_CHECK(value == 200000 && most == 710000);
    HWS_CHECK(nvmlDeviceGetTotalEnergyConsumption(device, &big) == NVML_SUCCESS && big == 123456789);
    HWS_CHECK(nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &value) == NVML_SUCCESS && value == 1970);
    HWS_CHECK(nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_MEM, &value) == NVML_SUCCESS && value == 3202);
    HWS_CHECK(nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_COUNT, &value) == NVML_ERROR_NOT_SUPPORTED);
    HWS_CHECK(nvmlDeviceGetSupportedClocksEventReasons(device, &big) == NVML_SUCCESS && big == 511);
    HWS_CHECK(nvmlDeviceGetPowerManagementMode(device, &mode) == NVML_SUCCESS && mode == NVML_FEATURE_ENABLED);
    for (unsigned i = 0; i < 4; i++) {
        HWS_CHECK(nvmlDeviceGetTotalEccErrors(device, i % 2, i / 2, &big) == NVML_SUCCESS && big == 11 + i);
    }
    HWS_CHECK(nvmlDeviceGetTotalEccErrors(device, 2, 0, &big) == NVML_ERROR_INVALID_ARGUMENT);
    nvmlPstates_t state;
    HWS_CHECK(nvmlDeviceGetPerformanceState(device, &state) == NVML_SUCCESS && (int) state == 2);
    HWS_CHECK(nvmlDeviceGetCurrentClocksEventReasons(device, &big) == NVML_SUCCESS && big == 4);
    HWS_CHECK(nvmlDeviceGetFieldValues(device, 5, fields) == NVML_SUCCESS && fields[0].value.ullVal == 123456789);
    HWS_CHECK(fields[1].nvmlReturn == NVML_SUCCESS && fields[1].value.uiVal == 72600);
    HWS_CHECK(fields[2].nvmlReturn == NVML_ERROR_NOT_SUPPORTED && fields[3].value.uiVal == 71500);
    HWS_CHECK(fields[4].nvmlReturn == NVML_SUCCESS && fields[4].value.uiVal == 50);
    nvmlShutdown();
}

static void shouldFollowTheStatus(void) {
    nvmlDevice_t device = open_first(HEAD SHARED_GPU);
    nvmlMemory_t memory;
    HWS_CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS && memory.used == 300);
    fake_status =
        HEAD "gpu\t0\tother\tother\t9\t9\t9\t-\t-\t0000:11:00.0\t9.0\n"
             "gpu\t1\tNVIDIA H200\tabcdef00-0000-4000-8000-000000000001\t1000\t1500\t1\t-\t-\t0000:19:00.0\t9.0\n";
    wait_for_refresh();
    HWS_CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS && memory.used == 1000 && memory.free == 0);
    unsigned index;
    HWS_CHECK(nvmlDeviceGetIndex(device, &index) == NVML_SUCCESS && index == 0);
    fake_status = HEAD; /* the vGPU has lost its GPU */
    wait_for_refresh();
    HWS_CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_ERROR_GPU_IS_LOST);
    HWS_CHECK(nvmlDeviceGetName(device, name, sizeof name) == NVML_SUCCESS);
    fake_status = NULL; /* the broker has ended */
    wait_for_refresh();
    HWS_CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_ERROR_GPU_IS_LOST);
    fake_status = HEAD SHARED_GPU;
    wait_for_refresh();
    HWS_CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS && memory.used == 300);
    nvmlShutdown();
}

static void shouldAskTheBrokerSeldom(void) {
    nvmlDevice_t device = open_first(HEAD SHARED_GPU);
    nvmlMemory_t memory;
    wait_for_refresh();
    unsigned before = fake_status_reads;
    for (int i = 0; i < 1000; i++) {
        HWS_CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS);
    }
    /* Two if the machine stood still in between; one for each call would be a thousand. */
    HWS_CHECK(fake_status_reads - before < 100);
    nvmlShutdown();
}

static void shouldAnswerWhatSchedulersProbe(void) {
    nvmlDevice_t device = open_first(HEAD SHARED_GPU OTHER_GPU), other = hws_nvml_handle(1);
    int major, minor, same;
    unsigned value;
    nvmlBrandType_t brand;
    nvmlDeviceArchitecture_t architecture;
    HWS_CHECK(nvmlDeviceGetCudaComputeCapability(other, &major, &minor) == NVML_SUCCESS && major == 8 && minor == 9);
    HWS_CHECK(nvmlDeviceGetArchitecture(other, &architecture) == NVML_SUCCESS && architecture == NVML_DEVICE_ARCH_ADA);
    HWS_CHECK(nvmlDeviceGetArchitecture(device, &architecture) == NVML_SUCCESS);
    HWS_CHECK(architecture == NVML_DEVICE_ARCH_HOPPER);
    HWS_CHECK(nvmlDeviceGetBrand(device, &brand) == NVML_SUCCESS && brand == NVML_BRAND_NVIDIA);
    HWS_CHECK(nvmlDeviceGetMinorNumber(other, &value) == NVML_SUCCESS && value == 1);
    HWS_CHECK(nvmlDeviceOnSameBoard(device, other, &same) == NVML_SUCCESS && !same);
    HWS_CHECK(nvmlDeviceGetMaxMigDeviceCount(device, &value) == NVML_SUCCESS && value == 0);
    HWS_CHECK(nvmlDeviceGetMigMode(device, &value, &value) == NVML_ERROR_NOT_SUPPORTED);
    HWS_CHECK(nvmlSystemGetProcessName((unsigned) getpid(), name, sizeof name) == NVML_SUCCESS && name[0] != '\0');
    HWS_CHECK(nvmlSystemGetProcessName(0xfffffff0, name, sizeof name) == NVML_ERROR_NOT_FOUND);
    HWS_CHECK(nvmlSystemGetProcessName((unsigned) getpid(), name, 2) == NVML_SUCCESS && name[1] == '\0');
    nvmlEventSet_t set;
    nvmlEventData_t data;
    HWS_CHECK(nvmlEventSetCreate(&set) == NVML_SUCCESS);
    HWS_CHECK(nvmlDeviceRegisterEvents(device, 8, set) == NVML_ERROR_NOT_SUPPORTED);
    HWS_CHECK(nvmlEventSetWait_v2(set, &data, 1) == NVML_ERROR_TIMEOUT && nvmlEventSetFree(set) == NVML_SUCCESS);
    nvmlShutdown();
}

int main(void) {
    setenv("HAWSER_CONFIG", "/dev/null", 1);
    HWS_RUN(shouldRefuseEachCallBeforeInit);
    HWS_RUN(shouldRefuseEachFunctionOutsideAnInitialisation);
    HWS_RUN(shouldHaveTheTextsOfTheDriver);
    HWS_RUN(shouldCountInitialisations);
    HWS_RUN(shouldCountTheDriversMemoryWithAWholeGpu);
    HWS_RUN(shouldTellThePropertiesThatTheBrokerKnows);
    HWS_RUN(shouldTellTheLinkToTheMachine);
    HWS_RUN(shouldTellTheAccessBetweenGpus);
    HWS_RUN(shouldFindADeviceByEachName);
    HWS_RUN(shouldRefuseUnknownDevices);
    HWS_RUN(shouldFillOnlyBuffersThatAreLargeEnough);
    HWS_RUN(shouldFillEachVersionOfAStructure);
    HWS_RUN(shouldCountProcessesForASmallBuffer);
    HWS_RUN(shouldTellSensorsOnlyWhereTheBrokerDoes);
    HWS_RUN(shouldFollowTheStatus);
    HWS_RUN(shouldAskTheBrokerSeldom);
    HWS_RUN(shouldAnswerWhatSchedulersProbe);
    return 0;
}
