/* Names and texts of cusparseStatus_t, which cuSPARSE and cuSPARSELt share. Any thread. */
#ifndef HWS_CUSPARSE_STATUS_H
#define HWS_CUSPARSE_STATUS_H

#include "hws_cusparse_types.h"

/* The name of a status; never NULL. */
static inline const char *hws_cusparse_status_name(cusparseStatus_t status) {
    switch ((int) status) {
#undef HWS_RESULT
#define HWS_RESULT(name, value, text)                                                                                  \
    case value:                                                                                                        \
        return #name;
#include "hws_cusparse_results.inc"
#undef HWS_RESULT
        default:
            return "unrecognized error code";
    }
}

/* The text of a status; never NULL. */
static inline const char *hws_cusparse_status_text(cusparseStatus_t status) {
    switch ((int) status) {
#define HWS_RESULT(name, value, text)                                                                                  \
    case value:                                                                                                        \
        return text;
#include "hws_cusparse_results.inc"
#undef HWS_RESULT
        default:
            return "unrecognized error code";
    }
}

#endif
