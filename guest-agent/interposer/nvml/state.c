/* The library's state: how often it is initialised, and the last status. */
#include "hws_nvml.h"

#include "hws_config.h"
#include "hws_description.h"
#include "hws_log.h"
#include "hws_status.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_HOST 64 /* the broker shortens longer names: StatusText.MAX_NAME */

struct nvmlDevice_st {
    char unused;
};

/* A handle is the address of an entry. Handles stay valid when a program initialises the library again. */
static struct nvmlDevice_st handles[HWS_NVML_MAX_GPUS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below; held while the status is read */
static unsigned users;
static hws_config_t config;
static hws_nvml_facts_t facts, next; /* the GPUs of `facts` are those of the initialisation */
static nvmlReturn_t outcome;         /* of the last attempt to read the status */
static uint64_t read_ms;             /* its time */

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void prepare_forks(void) {
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* Reads the status into `next`. Returns 0, or -1 with a message. */
static int fetch(char *error, size_t capacity) {
    static hws_status_t status;
    char host[MAX_HOST + 1] = "";
    int rc = hws_status_fetch(&config, HWS_DESCRIPTION_HASH, &status, error, capacity);
    if (rc == 0) {
        gethostname(host, MAX_HOST);
        hws_nvml_parse(status.text, host, &next);
    }
    read_ms = now_ms();
    return rc;
}

static void refresh(void) {
    char error[1024];
    if (now_ms() - read_ms < HWS_NVML_REFRESH_MS) {
        return;
    }
    nvmlReturn_t before = outcome;
    outcome = fetch(error, sizeof error) == 0 ? NVML_SUCCESS : NVML_ERROR_GPU_IS_LOST;
    if (outcome != NVML_SUCCESS) {
        if (before == NVML_SUCCESS) {
            hws_log(HWS_WARN, "NVML: the vGPU does not answer: %s", error);
        }
        return;
    }
    for (unsigned i = 0; i < facts.gpu_count; i++) {
        hws_nvml_gpu_t *gpu = &facts.gpus[i];
        gpu->present = false;
        for (unsigned k = 0; k < next.gpu_count && !gpu->present; k++) {
            if (strcmp(gpu->uuid, next.gpus[k].uuid) == 0) {
                char peers[sizeof gpu->peers];
                memcpy(peers, gpu->peers, sizeof peers); /* by the indexes of the initialisation */
                *gpu = next.gpus[k];
                memcpy(gpu->peers, peers, sizeof peers);
                gpu->index = i;
            }
        }
    }
    facts.process_count = next.process_count;
    memcpy(facts.processes, next.processes, sizeof facts.processes);
}

nvmlReturn_t hws_nvml_start(void) {
    char error[1024];
    nvmlReturn_t result = NVML_SUCCESS;
    pthread_mutex_lock(&lock);
    if (users == 0) {
        if (hws_config_load(&config, error, sizeof error) != 0 || fetch(error, sizeof error) != 0) {
            hws_log(HWS_WARN, "NVML: no vGPU: %s", error);
            result = NVML_ERROR_DRIVER_NOT_LOADED;
        } else {
            facts = next;
            outcome = NVML_SUCCESS;
        }
    }
    users += result == NVML_SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t hws_nvml_stop(void) {
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = users > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    users -= users > 0;
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t hws_nvml_entered(void) {
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = users > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t hws_nvml_vgpu(unsigned *count_p, char driver_p[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE]) {
    HWS_TRY(hws_nvml_entered());
    pthread_mutex_lock(&lock);
    *count_p = facts.gpu_count;
    memcpy(driver_p, facts.driver, sizeof facts.driver);
    pthread_mutex_unlock(&lock);
    return NVML_SUCCESS;
}

nvmlDevice_t hws_nvml_handle(unsigned index) {
    return &handles[index];
}

/* The entry of a handle, with the lock held; NULL for an unknown handle. */
static hws_nvml_gpu_t *find(nvmlDevice_t device) {
    for (unsigned i = 0; i < facts.gpu_count; i++) {
        if (device == &handles[i]) {
            return &facts.gpus[i];
        }
    }
    return NULL;
}

/* Takes the lock and checks the call; the caller gives the lock back. */
static nvmlReturn_t enter(nvmlDevice_t device, bool fresh, hws_nvml_gpu_t **gpu_p) {
    pthread_mutex_lock(&lock);
    if (users == 0) {
        return NVML_ERROR_UNINITIALIZED;
    }
    *gpu_p = find(device);
    if (*gpu_p == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (fresh) {
        refresh();
        return outcome != NVML_SUCCESS || !(*gpu_p)->present ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t hws_nvml_gpu(nvmlDevice_t device, bool fresh, hws_nvml_gpu_t *gpu_p) {
    hws_nvml_gpu_t *gpu;
    nvmlReturn_t result = enter(device, fresh, &gpu);
    if (result == NVML_SUCCESS) {
        *gpu_p = *gpu;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t hws_nvml_processes(nvmlDevice_t device, hws_nvml_process_t *processes_p, unsigned capacity,
                                unsigned *count_p) {
    hws_nvml_gpu_t *gpu;
    nvmlReturn_t result = enter(device, true, &gpu);
    if (result == NVML_SUCCESS) {
        *count_p = facts.process_count;
        for (unsigned i = 0; i < facts.process_count && i < capacity; i++) {
            processes_p[i] = facts.processes[i];
            /* A session has one figure for all its GPUs. */
            processes_p[i].used_bytes = facts.gpu_count == 1 ? facts.processes[i].used_bytes : -1;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t hws_nvml_text(const char *text, char *buffer_p, unsigned capacity) {
    size_t bytes = strlen(text) + 1;
    if (bytes > capacity) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    memcpy(buffer_p, text, bytes);
    return NVML_SUCCESS;
}

nvmlReturn_t hws_unsupported(const char *name) {
    HWS_TRY(hws_nvml_entered());
    /* Monitors ask for many figures again and again, and expect that some are missing. */
    hws_log(HWS_DEBUG, "%s is not supported", name);
    return NVML_ERROR_NOT_SUPPORTED;
}
