#include "hws_address.h"

#include "hws_layout.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" DIGITS "-_."
#define MAX_PORT_DIGITS 5

/* Takes a host of so many bytes and a port. Returns 0, or -1. */
static int take(const char *host, size_t host_bytes, const char *port, hws_address_t *address_p) {
    hws_address_t address = {.host = ""};
    size_t digits = strspn(port, DIGITS);
    if (host_bytes == 0 || host_bytes >= sizeof address.host || digits == 0 || digits > MAX_PORT_DIGITS
        || port[digits] != '\0' || atoi(port) < 1 || atoi(port) > 65535) {
        return -1;
    }
    memcpy(address.host, host, host_bytes);
    memcpy(address.port, port, digits);
    *address_p = address;
    return 0;
}

int hws_address_split(const char *text, const char *default_port, hws_address_t *address_p) {
    if (*text == '[') {
        const char *end = strchr(text, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            return -1;
        }
        return take(text + 1, (size_t) (end - text - 1), end[1] == ':' ? end + 2 : default_port, address_p);
    }
    const char *colon = strchr(text, ':');
    if (colon == NULL) {
        return take(text, strlen(text), default_port, address_p);
    }
    return strchr(colon + 1, ':') != NULL ? -1 : take(text, (size_t) (colon - text), colon + 1, address_p);
}

int hws_address_split_moved(const char *text, hws_address_t *address_p) {
    hws_address_t address;
    unsigned char bytes[sizeof(struct in6_addr)];
    /* No default port: a broker that names another one knows its port. */
    if (strlen(text) > HWS_MAX_ADDRESS_BYTES || hws_address_split(text, "", &address) != 0 || address.port[0] == '0') {
        return -1;
    }
    if (*text == '[' ? inet_pton(AF_INET6, address.host, bytes) != 1
                     : address.host[strspn(address.host, NAME_CHARACTERS)] != '\0' || address.host[0] == '-') {
        return -1;
    }
    *address_p = address;
    return 0;
}
