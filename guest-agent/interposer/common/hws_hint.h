/* A likely cause of a later error 700. The guest has noticed it at a launch. */
#ifndef HWS_HINT_H
#define HWS_HINT_H

/* Logs the line and keeps it for error 700. Only the first line is kept; call it once. Any thread. */
__attribute__((format(printf, 1, 2))) void hws_hint_set(const char *format, ...);

/* Logs the line again when an error 700 has arrived; does nothing without a line. */
void hws_hint_repeat(void);

/* CUDA's text for error 700 with the line after it; NULL without a line. Valid for the life of the process. */
const char *hws_hint_text(const char *plain);

#endif
