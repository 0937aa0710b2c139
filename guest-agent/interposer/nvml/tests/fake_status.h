/* The status that hws_status_fetch() answers in a test. */
#ifndef FAKE_STATUS_H
#define FAKE_STATUS_H

/* The text, or NULL: the broker does not answer. */
extern const char *fake_status;
/* How often the status was read. */
extern unsigned fake_status_reads;

#endif
