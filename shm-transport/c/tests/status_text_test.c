/* Parsing of a broker's status: also when it is cut, empty, too long or full of control characters. */
#include "../hws_status_text.h"
#include "hws_test.h"

#include <stdlib.h>
#include <string.h>

static const char sample[] =
    "status 1\nbroker\t0.1\nvgpu\ta\t1024\t100\tshared\t0\n\ngpu\t0\tSoft\tu\t5\t-\t-\t-\t-\n"
    "session\t1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13"
    "\t14\t15\t16\t17\t18\t19\t20\t21\t22\t23\t24\t25\t26\t27\t28\t29\t30\t31\t32\t33\t34\t35\t36\t37\t38\t39\t40\n";

static void shouldTakeLinesAndFields(void) {
    char text[sizeof sample], *at = strcpy(text, sample);
    hws_status_line_t line;
    HWS_CHECK(hws_status_next(&at, &line) && line.count == 1 && strcmp(line.fields[0], "status 1") == 0);
    HWS_CHECK(strcmp(line.fields[5], "") == 0);
    HWS_CHECK(hws_status_next(&at, &line) && line.count == 2 && strcmp(line.fields[1], "0.1") == 0);
    HWS_CHECK(hws_status_next(&at, &line) && line.count == 6 && hws_status_number(line.fields[2]) == 1024);
    HWS_CHECK(hws_status_next(&at, &line) && strcmp(line.fields[0], "gpu") == 0);
    HWS_CHECK(hws_status_number(line.fields[5]) == -1);
    HWS_CHECK(hws_status_next(&at, &line) && line.count == HWS_STATUS_MAX_FIELDS);
    HWS_CHECK(strcmp(line.fields[11], "11") == 0);
    HWS_CHECK(!hws_status_next(&at, &line) && !hws_status_next(&at, &line));
}

static void shouldTakeEveryTruncation(void) {
    for (size_t cut = 0; cut < sizeof sample; cut++) {
        char *text = calloc(1, cut + 1), *at = text;
        hws_status_line_t line;
        unsigned lines = 0;
        memcpy(text, sample, cut);
        while (hws_status_next(&at, &line)) {
            HWS_CHECK(line.count >= 1 && line.count <= HWS_STATUS_MAX_FIELDS && ++lines <= 6);
        }
        free(text);
    }
}

static void shouldMakeTextFitForATerminal(void) {
    char text[] = "a\x1b[31m\tb\r\x7f\nc\xc3\xa4";
    hws_status_clean(text);
    HWS_CHECK(strcmp(text, "a?[31m\tb??\nc\xc3\xa4") == 0);
}

static void shouldReadNumbersAndWriteSizes(void) {
    char text[32];
    HWS_CHECK(hws_status_number("-5") == -1 && hws_status_number("") == -1 && hws_status_number("7x") == -1);
    HWS_CHECK(hws_status_number("99999999999999999999") == -1 && hws_status_number("0") == 0);
    hws_status_bytes(512ll << 20, text, sizeof text);
    HWS_CHECK(strcmp(text, "512 MiB") == 0);
    hws_status_bytes(16ll << 30, text, sizeof text);
    HWS_CHECK(strcmp(text, "16.0 GiB") == 0);
    hws_status_bytes(-1, text, sizeof text);
    HWS_CHECK(strcmp(text, "-") == 0);
}

int main(void) {
    shouldTakeLinesAndFields();
    shouldTakeEveryTruncation();
    shouldMakeTextFitForATerminal();
    shouldReadNumbersAndWriteSizes();
    return 0;
}
