/* New handles of the libraries. */
#include "hws_math.h"

#include <stdlib.h>

void *hws_math_new_handle(hws_kind_t kind, size_t bytes, uint64_t *id_p) {
    const hws_service_t *service = hws_math_service();
    void *state = calloc(1, bytes);
    uint64_t id = state == NULL ? 0 : service->handle_new(kind);
    if (id == 0) {
        free(state);
        return NULL;
    }
    service->handle_attach(kind, id, state); /* the handle owns it */
    *id_p = id;
    return state;
}
