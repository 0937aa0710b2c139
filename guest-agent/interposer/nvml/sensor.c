#include "hws_nvml.h"

#include <time.h>

/* A figure of the whole GPU, which the broker reports to an exclusive vGPU. */
static nvmlReturn_t read_sensor(nvmlDevice_t device, hws_sensor_t sensor, unsigned long long *value_p) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(value_p != NULL);
    HWS_TRY(hws_nvml_gpu(device, true, &gpu));
    if (gpu.sensors[sensor] < 0) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *value_p = (unsigned long long) gpu.sensors[sensor];
    return NVML_SUCCESS;
}

static nvmlReturn_t read_number(nvmlDevice_t device, hws_sensor_t sensor, unsigned *value_p) {
    unsigned long long value;
    HWS_REQUIRE(value_p != NULL);
    HWS_TRY(read_sensor(device, sensor, &value));
    *value_p = (unsigned) value;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensorType,
                                                 unsigned int *temp) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(temp != NULL && sensorType == NVML_TEMPERATURE_GPU);
    HWS_TRY(hws_nvml_gpu(device, true, &gpu));
    if (gpu.celsius < 0) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *temp = (unsigned) gpu.celsius;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature) {
    unsigned celsius;
    HWS_REQUIRE(temperature != NULL);
    if (temperature->version != nvmlTemperature_v1) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    HWS_TRY(nvmlDeviceGetTemperature(device, temperature->sensorType, &celsius));
    temperature->temperature = (int) celsius;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power) {
    return read_number(device, HWS_SENSOR_POWER_MW, power);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit) {
    return read_number(device, HWS_SENSOR_ENFORCED_LIMIT_MW, limit);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *limit) {
    return read_number(device, HWS_SENSOR_LIMIT_MW, limit);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *defaultLimit) {
    return read_number(device, HWS_SENSOR_DEFAULT_LIMIT_MW, defaultLimit);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *minLimit,
                                                                     unsigned int *maxLimit) {
    unsigned least;
    HWS_REQUIRE(minLimit != NULL && maxLimit != NULL);
    HWS_TRY(read_number(device, HWS_SENSOR_MIN_LIMIT_MW, &least));
    HWS_TRY(read_number(device, HWS_SENSOR_MAX_LIMIT_MW, maxLimit));
    *minLimit = least;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy) {
    return read_sensor(device, HWS_SENSOR_ENERGY_MJ, energy);
}

static nvmlReturn_t read_clock(nvmlDevice_t device, hws_sensor_t first, nvmlClockType_t type, unsigned *clock_p) {
    HWS_TRY(hws_nvml_entered());
    if (type >= NVML_CLOCK_COUNT) {
        return NVML_ERROR_NOT_SUPPORTED; /* as driver 580 */
    }
    return read_number(device, (hws_sensor_t) (first + type), clock_p);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock) {
    return read_clock(device, HWS_SENSOR_CLOCK_MHZ, type, clock);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock) {
    return read_clock(device, HWS_SENSOR_MAX_CLOCK_MHZ, type, clock);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t clockType, nvmlClockId_t clockId,
                                           unsigned int *clockMHz) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(clockMHz != NULL && clockType < NVML_CLOCK_COUNT && clockId < NVML_CLOCK_ID_COUNT);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    return clockId == NVML_CLOCK_ID_CURRENT ? nvmlDeviceGetClockInfo(device, clockType, clockMHz)
                                            : NVML_ERROR_NOT_SUPPORTED;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *pState) {
    return read_number(device, HWS_SENSOR_PERFORMANCE_STATE, (unsigned *) pState);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t *pState) {
    return nvmlDeviceGetPerformanceState(device, pState);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                               unsigned long long *clocksEventReasons) {
    return read_sensor(device, HWS_SENSOR_CLOCK_REASONS, clocksEventReasons);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                                  unsigned long long *clocksThrottleReasons) {
    return nvmlDeviceGetCurrentClocksEventReasons(device, clocksThrottleReasons);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                                 unsigned long long *supportedClocksEventReasons) {
    return read_sensor(device, HWS_SENSOR_SUPPORTED_CLOCK_REASONS, supportedClocksEventReasons);
}

HWS_EXPORT nvmlReturn_t
nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, unsigned long long *supportedClocksThrottleReasons) {
    return nvmlDeviceGetSupportedClocksEventReasons(device, supportedClocksThrottleReasons);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
    unsigned milliwatts;
    HWS_REQUIRE(mode != NULL);
    HWS_TRY(nvmlDeviceGetPowerUsage(device, &milliwatts));
    *mode = NVML_FEATURE_ENABLED; /* a GPU that measures its power manages it */
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t errorType,
                                                    nvmlEccCounterType_t counterType, unsigned long long *eccCounts) {
    HWS_REQUIRE(errorType < NVML_MEMORY_ERROR_TYPE_COUNT && counterType < NVML_ECC_COUNTER_TYPE_COUNT);
    int error = NVML_MEMORY_ERROR_TYPE_COUNT * (int) counterType + (int) errorType;
    return read_sensor(device, (hws_sensor_t) (HWS_SENSOR_ERRORS + error), eccCounts);
}

/* Sets the result and the value of a field. */
static void read_field(nvmlDevice_t device, nvmlFieldValue_t *field) {
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    switch (field->fieldId) {
        case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
            field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
            field->nvmlReturn = read_sensor(device, HWS_SENSOR_ENERGY_MJ, &field->value.ullVal);
            break;
        case NVML_FI_DEV_MEMORY_TEMP:
            field->nvmlReturn = read_number(device, HWS_SENSOR_MEMORY_CELSIUS, &field->value.uiVal);
            break;
        case NVML_FI_DEV_POWER_AVERAGE:
            field->nvmlReturn = read_number(device, HWS_SENSOR_POWER_MW, &field->value.uiVal);
            break;
        case NVML_FI_DEV_POWER_INSTANT:
            field->nvmlReturn = read_number(device, HWS_SENSOR_INSTANT_POWER_MW, &field->value.uiVal);
            break;
        default:
            field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    }
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(values != NULL && valuesCount > 0);
    HWS_TRY(hws_nvml_gpu(device, true, &gpu));
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < valuesCount; i++) {
        nvmlFieldValue_t *field = &values[i];
        field->timestamp = (long long) now.tv_sec * 1000000 + now.tv_nsec / 1000;
        field->latencyUsec = 0;
        read_field(device, field);
    }
    return NVML_SUCCESS;
}
