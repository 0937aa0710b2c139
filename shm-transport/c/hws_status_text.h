/* Parses the text of hws_status.h. */
#ifndef HWS_STATUS_TEXT_H
#define HWS_STATUS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define HWS_STATUS_MAX_FIELDS 32

/* A line. Its fields point into the text. */
typedef struct hws_status_line {
    size_t count;                              /* 1..HWS_STATUS_MAX_FIELDS; further fields are ignored */
    const char *fields[HWS_STATUS_MAX_FIELDS]; /* fields[0]: the kind of the line; "" beyond count */
} hws_status_line_t;

/* Makes a broker's bytes safe for a terminal, in place: control characters other than tab and line feed become '?'. */
void hws_status_clean(char *text);

/*
 * Takes the next line and changes the text: ends of fields become NULs. *text_p is the line's beginning and,
 * afterwards, the next line's. Returns false at the end.
 */
bool hws_status_next(char **text_p, hws_status_line_t *line_p);

/* A field as a number that is not negative; -1 when it is "-" or no number. */
long long hws_status_number(const char *field);

/* Formats bytes for people: "512 MiB", "139.8 GiB". */
void hws_status_bytes(long long bytes, char *text_p, size_t capacity);

#endif
