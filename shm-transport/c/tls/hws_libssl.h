/*
 * Loads OpenSSL (libssl.so.3 or libssl.so.1.1) at run time, so that the guest libraries depend on glibc alone. A guest
 * without TLS needs no OpenSSL. Types are opaque. The constants are OpenSSL's, unchanged from 1.1.1 to 3.x.
 */
#ifndef HWS_LIBSSL_H
#define HWS_LIBSSL_H

#include <stddef.h>
#include <stdint.h>

/* openssl/ssl.h, openssl/tls1.h, openssl/bio.h */
#define HWS_SSL_VERIFY_PEER 1
#define HWS_SSL_CTRL_MODE 33
#define HWS_SSL_CTRL_SET_READ_AHEAD 41
#define HWS_SSL_CTRL_SET_TLSEXT_HOSTNAME 55
#define HWS_SSL_CTRL_SET_MIN_PROTO_VERSION 123
#define HWS_TLS1_2_VERSION 0x0303
#define HWS_SSL_MODE_ENABLE_PARTIAL_WRITE 1
#define HWS_SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER 2
#define HWS_SSL_OP_NO_RENEGOTIATION 0x40000000ul
#define HWS_SSL_ERROR_SSL 1
#define HWS_SSL_ERROR_WANT_READ 2
#define HWS_SSL_ERROR_WANT_WRITE 3
#define HWS_SSL_ERROR_SYSCALL 5
#define HWS_SSL_ERROR_ZERO_RETURN 6
#define HWS_BIO_TYPE_SOURCE_SINK 0x0400
#define HWS_BIO_CTRL_FLUSH 11
#define HWS_BIO_FLAGS_READ 1
#define HWS_BIO_FLAGS_WRITE 2
#define HWS_BIO_FLAGS_SHOULD_RETRY 8
#define HWS_BIO_FLAGS_RETRY 15
/* openssl/crypto.h. OpenSSL's exit handler would free what our threads still use. */
#define HWS_OPENSSL_INIT_NO_ATEXIT 0x00080000ul

/* openssl/x509_vfy.h */
#define HWS_X509_V_OK 0
#define HWS_X509_V_ERR_HOSTNAME_MISMATCH 62
#define HWS_X509_V_ERR_IP_ADDRESS_MISMATCH 64

typedef struct hws_bio hws_bio_t;
typedef struct hws_bio_method hws_bio_method_t;
typedef struct hws_ssl hws_ssl_t;
typedef struct hws_ssl_context hws_ssl_context_t;
typedef struct hws_verify_param hws_verify_param_t;

/* The functions, by their names in OpenSSL. */
typedef struct hws_libssl {
    int (*OPENSSL_init_ssl)(uint64_t, const void *);
    const void *(*TLS_client_method)(void);
    hws_ssl_context_t *(*SSL_CTX_new)(const void *);
    void (*SSL_CTX_free)(hws_ssl_context_t *);
    long (*SSL_CTX_ctrl)(hws_ssl_context_t *, int, long, void *);
    uint64_t (*SSL_CTX_set_options)(hws_ssl_context_t *, uint64_t);
    void (*SSL_CTX_set_verify)(hws_ssl_context_t *, int, void *);
    void (*SSL_CTX_set_default_read_buffer_len)(hws_ssl_context_t *, size_t);
    int (*SSL_CTX_set_default_verify_paths)(hws_ssl_context_t *);
    int (*SSL_CTX_load_verify_locations)(hws_ssl_context_t *, const char *, const char *);
    hws_ssl_t *(*SSL_new)(hws_ssl_context_t *);
    void (*SSL_free)(hws_ssl_t *);
    long (*SSL_ctrl)(hws_ssl_t *, int, long, void *);
    int (*SSL_set1_host)(hws_ssl_t *, const char *);
    hws_verify_param_t *(*SSL_get0_param)(hws_ssl_t *);
    void (*SSL_set_bio)(hws_ssl_t *, hws_bio_t *, hws_bio_t *);
    int (*SSL_connect)(hws_ssl_t *);
    int (*SSL_read)(hws_ssl_t *, void *, int);
    int (*SSL_write)(hws_ssl_t *, const void *, int);
    int (*SSL_get_error)(const hws_ssl_t *, int);
    long (*SSL_get_verify_result)(const hws_ssl_t *);
    int (*X509_VERIFY_PARAM_set1_ip_asc)(hws_verify_param_t *, const char *);
    const char *(*X509_verify_cert_error_string)(long);
    unsigned long (*ERR_peek_last_error)(void);
    const char *(*ERR_reason_error_string)(unsigned long);
    void (*ERR_clear_error)(void);
    hws_bio_method_t *(*BIO_meth_new)(int, const char *);
    int (*BIO_meth_set_write)(hws_bio_method_t *, int (*)(hws_bio_t *, const char *, int));
    int (*BIO_meth_set_read)(hws_bio_method_t *, int (*)(hws_bio_t *, char *, int));
    int (*BIO_meth_set_ctrl)(hws_bio_method_t *, long (*)(hws_bio_t *, int, long, void *));
    hws_bio_t *(*BIO_new)(const hws_bio_method_t *);
    void (*BIO_set_data)(hws_bio_t *, void *);
    void *(*BIO_get_data)(hws_bio_t *);
    void (*BIO_set_init)(hws_bio_t *, int);
    void (*BIO_set_flags)(hws_bio_t *, int);
    void (*BIO_clear_flags)(hws_bio_t *, int);
} hws_libssl_t;

/*
 * Loads the library once for the process; it stays loaded. One thread at a time. Returns the functions, or NULL with a
 * message in error_p.
 */
const hws_libssl_t *hws_libssl_load(char *error_p, size_t error_capacity);

#endif
