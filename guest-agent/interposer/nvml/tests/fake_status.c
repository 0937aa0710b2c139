#include "fake_status.h"

#include "hws_status.h"

#include <stdio.h>
#include <string.h>

const char *fake_status;
unsigned fake_status_reads;

int hws_status_fetch(hws_config_t *config, uint64_t description_hash, hws_status_t *status_p, char *error_p,
                     size_t error_capacity) {
    (void) config;
    (void) description_hash;
    fake_status_reads++;
    if (fake_status == NULL) {
        snprintf(error_p, error_capacity, "the test's broker does not answer");
        return -1;
    }
    snprintf(status_p->text, sizeof status_p->text, "%s", fake_status);
    return 0;
}
