/*
 * The status of a vGPU, which its broker reports without a session: for the guest's `hawser` command.
 * Over TCP the token's proof opens the status, as it opens a session. A region has the status in its header.
 *
 * The text is UTF-8, one line for each item, with fields separated by tabs; "-" marks an unknown value. A reader skips
 * lines whose first word it does not know. The utilisation is the vGPU's. An exclusive vGPU has the whole GPU's, and is
 * the only one with the GPU's temperature, watts and sensors: they would show a neighbour's work.
 *   status 1
 *   broker <version>
 *   driver <version of the driver beside the GPU>
 *   vgpu <name> <memoryBytes of each GPU, 0: what is free> <computeShare 1..100> <shared|exclusive> <maxSessions, 0: any>
 *   swap <bytes on the GPU> <bytes on the host> <how often the memory left the GPU> <milliseconds that sessions waited
 *       for it>: only of a swappable vGPU
 *   gpu <index> <name> <uuid> <totalBytes that a guest sees> <usedBytes of the vGPU> <utilisation %> <Celsius> <watts>
 *       <PCI bus id> <compute capability, as 9.0>
 *   traits <index of the GPU> <bytes that the driver reserves, beyond totalBytes; 0 for a part of the GPU> <ECC mode 0|1>
 *       <pending ECC mode> <PCI device id> <PCI subsystem id> <for each GPU of the vGPU four digits of nvmlGpuP2PStatus_t:
 *       reading, writing, atomics, properties> <highest PCIe generation of GPU and machine> <of the GPU> <most PCIe lanes>
 *       <lanes in use>
 *   sensors <index of the GPU> <memory utilisation %> <milliwatts> <limit in force> <limit> <default limit> <least limit>
 *       <greatest limit> <millijoules> <MHz graphics> <SM> <memory> <video> <maximum MHz graphics> <SM> <memory> <video>
 *       <performance state> <reasons for the clocks, bits of NVML> <bits that the GPU can report> <Celsius of the memory>
 *       <milliwatts at this moment> <corrected errors since the driver's start> <uncorrected> <corrected ever>
 *       <uncorrected ever>
 *   library <soname of a math library that workers may open> <its version>
 *   session <id> <guest pid> <program> <host> <tcp|shm> <starting|running|ending> <deviceBytes> <kernels> <roundTrips> <started, Unix seconds>
 *   process <guest pid> <host> <deviceBytes>: of a session that does not fit with all its fields
 *   more <sessions that did not fit>
 */
#ifndef HWS_STATUS_H
#define HWS_STATUS_H

#include "hws_config.h"
#include "hws_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hws_status {
    char text[HWS_MAX_STATUS_BYTES + 1]; /* ends with a NUL; the broker's bytes, unchecked */
    char from[800];                      /* "region PATH" or "broker HOST:PORT" */
} hws_status_t;

/*
 * Requests the status over TCP or TLS from the broker that holds the vGPU (hws_broker_open), within
 * config->connect_timeout_ms for each step. status_p->from names that broker. It becomes config->reached, which the
 * next question tries first: a program that watches its vGPU waits for no other broker. Returns 0, or -1 with a message in error_p
 * that names the broker: no broker or token is configured, no broker listens, or the broker refuses.
 */
int hws_status_ask(hws_config_t *config, uint64_t description_hash, hws_status_t *status_p, char *error_p,
                   size_t error_capacity);

/*
 * Reads the status from the configured region, or from the first ivshmem device that has one. Returns 0, or -1 with a
 * message in error_p: there is no region, it has another version, or its broker shows no life for 2.5 s. *found_p:
 * whether there was a region at all.
 */
int hws_status_read(const hws_config_t *config, uint64_t description_hash, hws_status_t *status_p, bool *found_p,
                    char *error_p, size_t error_capacity);

/*
 * The status by the first way that answers, as programs connect: the region, else the broker. A region stays mapped, so
 * that a further call does not wait for the broker's beat. One thread at a time. Returns 0, or -1 with a message in
 * error_p.
 */
int hws_status_fetch(hws_config_t *config, uint64_t description_hash, hws_status_t *status_p, char *error_p,
                     size_t error_capacity);

#endif
