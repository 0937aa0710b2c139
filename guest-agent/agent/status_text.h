/* The text of hws_status.h taken apart. */
#ifndef HWS_STATUS_TEXT_H
#define HWS_STATUS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define HWS_STATUS_MAX_FIELDS 12

/* A line: its fields point into the text. */
typedef struct hws_status_line {
    size_t count;                               /* 1..HWS_STATUS_MAX_FIELDS; what a newer broker adds behind is left out */
    const char *fields[HWS_STATUS_MAX_FIELDS];  /* fields[0]: what the line is about; "" beyond count */
} hws_status_line_t;

/*
 * Makes the bytes of a broker fit for a terminal, in place: control characters other than tab and line feed become '?'.
 */
void hws_status_clean(char *text);

/*
 * Takes the next line, changing the text: ends of fields become NULs. *text_p is where it begins and, afterwards, where
 * the following one does. False at the end.
 */
bool hws_status_next(char **text_p, hws_status_line_t *line_p);

/* A field as a number that is not negative; -1 when it is "-" or none. */
long long hws_status_number(const char *field);

/* Bytes as people read them: "512 MiB", "139.8 GiB". */
void hws_status_bytes(long long bytes, char *text_p, size_t capacity);

#endif
