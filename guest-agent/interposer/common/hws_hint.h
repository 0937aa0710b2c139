/* A likely cause of a later error 700, which the guest has seen at a launch. */
#ifndef HWS_HINT_H
#define HWS_HINT_H

/* Writes the line to stderr and keeps it for error 700. The first one counts; call it once. Any thread. */
__attribute__((format(printf, 1, 2))) void hws_hint_set(const char *format, ...);

/* Repeats the line on stderr for an error 700 that has arrived; nothing where there is none. */
void hws_hint_repeat(void);

/* CUDA's text for error 700 with the line behind it; NULL where there is none. For ever. */
const char *hws_hint_text(const char *plain);

#endif
