#include "hws_libssl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ENTRY(name) {#name, offsetof(hws_libssl_t, name)}

static const struct {
    const char *name;
    size_t offset;
} entries[] = {
    ENTRY(OPENSSL_init_ssl),
    ENTRY(TLS_client_method),
    ENTRY(SSL_CTX_new),
    ENTRY(SSL_CTX_free),
    ENTRY(SSL_CTX_ctrl),
    ENTRY(SSL_CTX_set_options),
    ENTRY(SSL_CTX_set_verify),
    ENTRY(SSL_CTX_set_default_read_buffer_len),
    ENTRY(SSL_CTX_set_default_verify_paths),
    ENTRY(SSL_CTX_load_verify_locations),
    ENTRY(SSL_new),
    ENTRY(SSL_free),
    ENTRY(SSL_ctrl),
    ENTRY(SSL_set1_host),
    ENTRY(SSL_get0_param),
    ENTRY(SSL_set_bio),
    ENTRY(SSL_connect),
    ENTRY(SSL_read),
    ENTRY(SSL_write),
    ENTRY(SSL_get_error),
    ENTRY(SSL_get_verify_result),
    ENTRY(X509_VERIFY_PARAM_set1_ip_asc),
    ENTRY(X509_verify_cert_error_string),
    ENTRY(ERR_peek_last_error),
    ENTRY(ERR_reason_error_string),
    ENTRY(ERR_clear_error),
    ENTRY(BIO_meth_new),
    ENTRY(BIO_meth_set_write),
    ENTRY(BIO_meth_set_read),
    ENTRY(BIO_meth_set_ctrl),
    ENTRY(BIO_new),
    ENTRY(BIO_set_data),
    ENTRY(BIO_get_data),
    ENTRY(BIO_set_init),
    ENTRY(BIO_set_flags),
    ENTRY(BIO_clear_flags),
};

static hws_libssl_t library;
static bool loaded;

const hws_libssl_t *hws_libssl_load(char *error_p, size_t error_capacity) {
    if (loaded) {
        return &library;
    }
    /* Local: the program's own OpenSSL, of any version, must not find these names. */
    void *handle = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        handle = dlopen("libssl.so.1.1", RTLD_NOW | RTLD_LOCAL);
    }
    if (handle == NULL) {
        snprintf(error_p, error_capacity,
                 "tls:// needs OpenSSL on this machine: neither libssl.so.3 nor libssl.so.1.1 "
                 "can be loaded");
        return NULL;
    }
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        /* This finds functions of libcrypto, too: dlsym with a handle also searches the library's dependencies. */
        void *found = dlsym(handle, entries[i].name);
        if (found == NULL) {
            snprintf(error_p, error_capacity, "the machine's OpenSSL lacks %s", entries[i].name);
            dlclose(handle);
            return NULL;
        }
        memcpy((char *) &library + entries[i].offset, &found, sizeof found);
    }
    if (library.OPENSSL_init_ssl(HWS_OPENSSL_INIT_NO_ATEXIT, NULL) != 1) {
        snprintf(error_p, error_capacity, "the machine's OpenSSL does not start");
        return NULL;
    }
    loaded = true;
    return &library;
}
