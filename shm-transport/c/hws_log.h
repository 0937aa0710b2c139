/*
 * Lines for the user: one line each on stderr, with the prefix "hawser: ". HAWSER_LOG=error|warn|info|debug sets the
 * least important level shown; the default is warn.
 */
#ifndef HWS_LOG_H
#define HWS_LOG_H

#include <stdbool.h>

typedef enum hws_level { HWS_ERROR, HWS_WARN, HWS_INFO, HWS_DEBUG } hws_level_t;

bool hws_log_enabled(hws_level_t level);

/* Any thread. Each line is one write(2), so that lines of several threads do not mix. */
__attribute__((format(printf, 2, 3))) void hws_log(hws_level_t level, const char *format, ...);

#endif
