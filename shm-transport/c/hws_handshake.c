#include "hws_handshake.h"

#include "hws_handshake_proof.h"
#include "hws_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define NONCE_BYTES HWS_NONCE_CLIENT_BYTES
#define MAX_PROGRAM_BYTES 128
#define MAX_HOST_BYTES 65
#define MAX_HELLO_BYTES                                                                                                \
    (HWS_HELLO_FIXED_BYTES + sizeof((hws_config_t *) 0)->key_id + MAX_PROGRAM_BYTES + MAX_HOST_BYTES + 24)
/* The longest record of a handshake is a REFUSED with its message. The limit stops a broker that floods the guest. */
#define MAX_HANDSHAKE_PAYLOAD_BYTES 4096
/* First bytes of a TLS alert: content type 21 and version 3.3 (RFC 8446, 5.1). */
#define TLS_ALERT 0x030315

typedef struct hws_reader {
    hws_record_header_t header;
    uint32_t payload_bytes, capacity;
    uint8_t *payload;
} hws_reader_t;

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int receive_exactly(hws_carrier_t *carrier, void *target, size_t bytes, int64_t deadline_ms) {
    uint8_t *p = target;
    while (bytes > 0) {
        /* Set again before each piece: a peer that sends a byte now and then must not stretch the limit. */
        int64_t left_ms = deadline_ms - now_ms();
        if (left_ms <= 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        carrier->ops->set_timeout(carrier, (uint32_t) left_ms);
        struct iovec piece = {p, bytes};
        ssize_t received = carrier->ops->receive(carrier, &piece, 1);
        if (received <= 0) {
            errno = received == 0 ? ECONNRESET : errno == EAGAIN ? ETIMEDOUT : errno;
            return -1;
        }
        p += received;
        bytes -= (size_t) received;
    }
    return 0;
}

/*
 * Says why nothing came, or nothing could be sent; errno has the reason where the carrier has none. Returns
 * HWS_HANDSHAKE_CLOSED or -1.
 */
static int describe_loss(hws_carrier_t *carrier, uint32_t timeout_ms, char *error, size_t capacity) {
    const bool is_late = errno == ETIMEDOUT;
    const char *fault = !is_late && carrier->ops->fault != NULL ? carrier->ops->fault(carrier) : NULL;
    if (fault != NULL) {
        snprintf(error, capacity, "%s", fault);
        return -1;
    }
    snprintf(error, capacity,
             is_late ? "the broker did not answer in time (%u ms)" : "the broker closed the connection (within %u ms)",
             timeout_ms);
    return is_late ? -1 : HWS_HANDSHAKE_CLOSED;
}

/* Takes REFUSED. Returns -1 with a message, or HWS_HANDSHAKE_MOVED with the address in `error`. */
static int take_refused(const hws_reader_t *reader, char *error, size_t capacity) {
    const char *text = (const char *) reader->payload + HWS_REFUSED_FIXED_BYTES;
    uint32_t code = 0, length = 0;
    if (reader->payload_bytes >= HWS_REFUSED_FIXED_BYTES) {
        memcpy(&code, reader->payload + HWS_REFUSED_CODE_OFFSET, sizeof code);
        memcpy(&length, reader->payload + HWS_REFUSED_MESSAGE_OFFSET, sizeof length);
    }
    if (reader->payload_bytes < HWS_REFUSED_FIXED_BYTES || length > reader->payload_bytes - HWS_REFUSED_FIXED_BYTES) {
        snprintf(error, capacity, "the broker refused the session");
        return -1;
    }
    if (code != HWS_REFUSED_MOVED) {
        snprintf(error, capacity, "the broker refused the session: %.*s", (int) length, text);
        return -1;
    }
    if (length == 0 || length > HWS_MAX_ADDRESS_BYTES || length >= capacity || memchr(text, '\0', length) != NULL) {
        snprintf(error, capacity, "the broker sends the guest to an address that is not one (%u bytes)", length);
        return -1;
    }
    memcpy(error, text, length);
    error[length] = '\0';
    return HWS_HANDSHAKE_MOVED;
}

/* Returns 0, or as hws_handshake() does. */
static int receive_record(hws_carrier_t *carrier, hws_reader_t *reader, uint32_t timeout_ms, char *error,
                          size_t capacity) {
    int64_t deadline_ms = now_ms() + timeout_ms;
    int rc = receive_exactly(carrier, &reader->header, sizeof reader->header, deadline_ms);
    if (rc == 0) {
        int32_t bytes = reader->header.length_bytes;
        if ((bytes & 0xffffff) == TLS_ALERT) {
            snprintf(error, capacity, "this port of the broker speaks TLS: set HAWSER_BROKER=tls://host:port");
            return -1;
        }
        if (bytes < HWS_HEADER_BYTES || bytes % 8 != 0 || (uint32_t) bytes > HWS_HEADER_BYTES + reader->capacity) {
            snprintf(error, capacity, "the broker does not speak Hawser's protocol (record of %d bytes)", (int) bytes);
            return -1;
        }
        reader->payload_bytes = (uint32_t) bytes - HWS_HEADER_BYTES;
        rc = receive_exactly(carrier, reader->payload, reader->payload_bytes, deadline_ms);
    }
    if (rc != 0) {
        return describe_loss(carrier, timeout_ms, error, capacity);
    }
    return reader->header.opcode == HWS_CONTROL_REFUSED ? take_refused(reader, error, capacity) : 0;
}

static int send_record(hws_carrier_t *carrier, uint32_t opcode, uint64_t sequence, const void *payload, size_t bytes,
                       uint32_t timeout_ms, char *error, size_t capacity) {
    hws_record_header_t header = {
        .length_bytes = (int32_t) (HWS_HEADER_BYTES + bytes), .opcode = opcode, .sequence = sequence};
    struct iovec pieces[2] = {{&header, sizeof header}, {(void *) payload, bytes}};
    carrier->ops->set_timeout(carrier, timeout_ms);
    if (carrier->ops->send(carrier, pieces, 2) != 0) {
        const bool is_late = errno == EAGAIN;
        snprintf(error, capacity, "the broker closed the connection: %s", strerror(errno));
        return is_late ? -1 : HWS_HANDSHAKE_CLOSED;
    }
    return 0;
}

static size_t put_text(uint8_t *payload, size_t at, const char *text, size_t length) {
    memcpy(payload + at, text, length);
    return at + (size_t) hws_pad8(length);
}

static size_t bounded_length(const char *text, size_t limit) {
    return text == NULL ? 0 : strnlen(text, limit);
}

/* Writes the payload of HELLO. Returns its length. */
static size_t put_hello(uint8_t payload[MAX_HELLO_BYTES], const hws_config_t *config, uint64_t description_hash,
                        const uint8_t nonce[NONCE_BYTES]) {
    /* Only the list of sessions shows it, so a long name is cut. */
    char host[MAX_HOST_BYTES] = "";
    gethostname(host, sizeof host - 1);
    size_t key_bytes = strlen(config->key_id);
    size_t program_bytes = bounded_length(program_invocation_short_name, MAX_PROGRAM_BYTES);
    size_t host_bytes = bounded_length(host, sizeof host - 1);
    uint32_t words[2] = {HWS_HANDSHAKE_VERSION, (uint32_t) getpid()};
    uint32_t lengths[3] = {(uint32_t) key_bytes, (uint32_t) program_bytes, (uint32_t) host_bytes};
    memset(payload, 0, MAX_HELLO_BYTES);
    memcpy(payload, words, sizeof words);
    memcpy(payload + HWS_HELLO_DESCRIPTION_HASH_OFFSET, &description_hash, sizeof description_hash);
    memcpy(payload + HWS_HELLO_CLIENT_NONCE_OFFSET, nonce, NONCE_BYTES);
    memcpy(payload + HWS_HELLO_KEY_ID_OFFSET, lengths, sizeof lengths);
    size_t at = put_text(payload, HWS_HELLO_FIXED_BYTES, config->key_id, key_bytes);
    at = put_text(payload, at, program_invocation_short_name, program_bytes);
    return put_text(payload, at, host, host_bytes);
}

static int take_welcome(const hws_reader_t *reader, hws_welcome_t *welcome_p, char *error, size_t capacity) {
    if (reader->header.opcode != HWS_CONTROL_WELCOME || reader->payload_bytes != HWS_WELCOME_FIXED_BYTES) {
        snprintf(error, capacity, "the broker does not speak Hawser's protocol (record %u of %u bytes for WELCOME)",
                 reader->header.opcode, reader->payload_bytes);
        return -1;
    }
    uint32_t version;
    /* Other flags are of workers that can do more than this guest knows. */
    hws_welcome_t welcome = {.next_sequence = 3, .may_leave = (reader->header.flags & HWS_FLAG_MAY_LEAVE) != 0};
    memcpy(&version, reader->payload, 4);
    memcpy(&welcome.device_count, reader->payload + 4, 4);
    memcpy(&welcome.session_id, reader->payload + 8, 8);
    memcpy(&welcome.credit_window_bytes, reader->payload + 16, 8);
    memcpy(&welcome.max_record_bytes, reader->payload + 24, 4);
    memcpy(&welcome.max_bulk_bytes, reader->payload + 28, 4);
    if (version != HWS_PROTOCOL_VERSION) {
        snprintf(error, capacity, "the protocol must be version %u: the worker speaks %u", HWS_PROTOCOL_VERSION,
                 version);
        return -1;
    }
    if (welcome.device_count == 0 || welcome.device_count > HWS_MAX_DEVICES
        || welcome.max_record_bytes > HWS_MAX_RECORD_BYTES || welcome.max_bulk_bytes > HWS_MAX_BULK_BYTES
        || welcome.max_bulk_bytes < 4096 || welcome.max_bulk_bytes % 8 != 0
        || welcome.max_record_bytes < welcome.max_bulk_bytes + 4096
        || welcome.credit_window_bytes < welcome.max_record_bytes) {
        snprintf(error, capacity, "the worker's limits are invalid: devices=%u window=%llu record=%u bulk=%u",
                 welcome.device_count, (unsigned long long) welcome.credit_window_bytes, welcome.max_record_bytes,
                 welcome.max_bulk_bytes);
        return -1;
    }
    *welcome_p = welcome;
    return 0;
}

/* The purpose of a handshake, with the data that it sends beside the proof. */
typedef struct hws_wanted {
    hws_purpose_t purpose;
    const hws_welcome_t *session; /* the one that a stripe joins, or that comes from another broker */
    const uint8_t *offer;         /* this end of RDMA; NULL for none */
} hws_wanted_t;

/* Sends the proof and an offer. */
static int send_open(hws_carrier_t *carrier, const uint8_t proof[HWS_PROOF_BYTES], const uint8_t *offer,
                     uint32_t timeout_ms, char *error, size_t capacity) {
    uint8_t payload[HWS_OPEN_FIXED_BYTES + HWS_RDMA_END_BYTES] = {0};
    const uint32_t bytes = HWS_RDMA_END_BYTES;
    memcpy(payload + HWS_OPEN_PROOF_OFFSET, proof, HWS_PROOF_BYTES);
    memcpy(payload + HWS_OPEN_OFFER_OFFSET, &bytes, sizeof bytes);
    memcpy(payload + HWS_OPEN_FIXED_BYTES, offer, bytes);
    return send_record(carrier, HWS_CONTROL_OPEN, 2, payload, sizeof payload, timeout_ms, error, capacity);
}

/* Sends the last record of this end: the proof, with an offer, or with the session whose connection this is. */
static int send_proof(hws_carrier_t *carrier, const hws_wanted_t *wanted, const uint8_t proof[HWS_PROOF_BYTES],
                      uint32_t timeout_ms, char *error, size_t capacity) {
    hws_purpose_t purpose = wanted->purpose;
    const hws_welcome_t *session = wanted->session;
    if (wanted->offer != NULL) {
        return send_open(carrier, proof, wanted->offer, timeout_ms, error, capacity);
    }
    if (session == NULL) {
        return send_record(carrier, purpose == HWS_PURPOSE_STATUS ? HWS_CONTROL_ASK_STATUS : HWS_CONTROL_PROOF, 2,
                           proof, HWS_PROOF_BYTES, timeout_ms, error, capacity);
    }
    _Static_assert(HWS_RESUME_FIXED_BYTES == HWS_JOIN_FIXED_BYTES
                       && HWS_RESUME_SESSION_ID_OFFSET == HWS_JOIN_SESSION_ID_OFFSET
                       && HWS_RESUME_SESSION_NONCE_OFFSET == HWS_JOIN_SESSION_NONCE_OFFSET,
                   "RESUME reads as JOIN does");
    uint8_t payload[HWS_JOIN_FIXED_BYTES];
    memcpy(payload + HWS_JOIN_PROOF_OFFSET, proof, HWS_PROOF_BYTES);
    memcpy(payload + HWS_JOIN_SESSION_ID_OFFSET, &session->session_id, sizeof session->session_id);
    memcpy(payload + HWS_JOIN_SESSION_NONCE_OFFSET, session->session_nonce, sizeof session->session_nonce);
    return send_record(carrier, purpose == HWS_PURPOSE_JOIN ? HWS_CONTROL_JOIN : HWS_CONTROL_RESUME, 2, payload,
                       sizeof payload, timeout_ms, error, capacity);
}

/* Says that the broker has not proved itself. Returns -1. */
static int refuse_unproved(char *error, size_t capacity) {
    snprintf(error, capacity, "the other end must prove that it has the token: it is not the token's broker");
    return -1;
}

/*
 * Sends HELLO, receives CHALLENGE and sends the guest's proof. A broker that has not proved itself gets the guest's
 * proof all the same, so that a broker without the token can report that. The caller accepts only REFUSED from such a
 * broker. RESUME goes only to a broker that has proved itself: another one has named it, and the session's nonce is a
 * secret of the session. nonce receives the nonce of HELLO.
 */
static int introduce(hws_carrier_t *carrier, const hws_config_t *config, const hws_wanted_t *wanted,
                     uint64_t description_hash, uint8_t nonce[NONCE_BYTES], bool *is_proved_p, char *error,
                     size_t capacity) {
    uint8_t hello[MAX_HELLO_BYTES], payload[MAX_HANDSHAKE_PAYLOAD_BYTES], proof[HWS_PROOF_BYTES];
    if (getrandom(nonce, NONCE_BYTES, 0) != NONCE_BYTES) {
        snprintf(error, capacity, "no random numbers for the handshake: %s", strerror(errno));
        return -1;
    }
    size_t hello_bytes = put_hello(hello, config, description_hash, nonce);
    hws_reader_t reader = {.capacity = sizeof payload, .payload = payload};
    int rc =
        send_record(carrier, HWS_CONTROL_HELLO, 1, hello, hello_bytes, config->connect_timeout_ms, error, capacity);
    if (rc == 0) {
        rc = receive_record(carrier, &reader, config->connect_timeout_ms, error, capacity);
    }
    if (rc != 0) {
        return rc;
    }
    if (reader.header.opcode == HWS_CONTROL_OLD_CHALLENGE) {
        /* The guest never falls back to the old proof: a copy of an old broker's database is enough to make it. */
        snprintf(error, capacity, "the broker must speak version %u of the handshake: its challenge is of version %u",
                 HWS_HANDSHAKE_VERSION, HWS_OLD_HANDSHAKE_VERSION);
        return -1;
    }
    if (reader.header.opcode != HWS_CONTROL_CHALLENGE || reader.payload_bytes != HWS_CHALLENGE_FIXED_BYTES) {
        snprintf(error, capacity, "the broker does not speak Hawser's protocol (record %u for CHALLENGE)",
                 reader.header.opcode);
        return -1;
    }
    hws_token_keys_t keys;
    hws_transcript_t transcript = {payload + HWS_CHALLENGE_SERVER_NONCE_OFFSET, hello, hello_bytes};
    hws_token_keys_derive(config->secret, &keys);
    *is_proved_p = hws_handshake_proof_is_of_broker(&keys, &transcript, payload + HWS_CHALLENGE_SERVER_PROOF_OFFSET);
    hws_handshake_proof_of_guest(&keys, wanted->purpose, &transcript, proof);
    explicit_bzero(&keys, sizeof keys);
    if (wanted->purpose == HWS_PURPOSE_RESUME && !*is_proved_p) {
        return refuse_unproved(error, capacity);
    }
    return send_proof(carrier, wanted, proof, config->connect_timeout_ms, error, capacity);
}

/*
 * Passes on the result of a handshake whose broker has proved itself. Another broker may only refuse: its guest neither
 * takes its data nor goes where it sends the guest.
 */
static int require_proof(int rc, bool is_proved, char *error, size_t capacity) {
    if ((rc == 0 || rc == HWS_HANDSHAKE_MOVED) && !is_proved) {
        return refuse_unproved(error, capacity);
    }
    return rc;
}

/* Runs the handshake up to WELCOME. */
static int begin_session(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                         const uint8_t *offer, hws_welcome_t *welcome_p, char *error, size_t capacity) {
    const hws_wanted_t wanted = {.purpose = HWS_PURPOSE_SESSION, .offer = offer};
    bool is_proved = false;
    uint8_t nonce[NONCE_BYTES];
    hws_welcome_t welcome;
    int rc = introduce(carrier, config, &wanted, description_hash, nonce, &is_proved, error, capacity);
    if (rc == 0) {
        rc = hws_handshake_await_welcome(carrier, HWS_WORKER_START_FACTOR * config->connect_timeout_ms, &welcome, error,
                                         capacity);
    }
    rc = require_proof(rc, is_proved, error, capacity);
    if (rc == 0) {
        memcpy(welcome.session_nonce, nonce, sizeof welcome.session_nonce);
        *welcome_p = welcome;
    }
    return rc;
}

int hws_handshake(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                  hws_welcome_t *welcome_p, char *error_p, size_t error_capacity) {
    return begin_session(carrier, config, description_hash, NULL, welcome_p, error_p, error_capacity);
}

/* Takes ANSWER. Its reason is text that the worker chooses, so it is cut. */
static int take_answer(const hws_reader_t *reader, hws_rdma_answer_t *answer, char *error, size_t capacity) {
    uint32_t end = 0, reason = 0;
    bool is_sound = reader->header.opcode == HWS_CONTROL_ANSWER && reader->payload_bytes >= HWS_ANSWER_FIXED_BYTES;
    if (is_sound) {
        memcpy(&end, reader->payload + HWS_ANSWER_END_OFFSET, sizeof end);
        memcpy(&reason, reader->payload + HWS_ANSWER_REASON_OFFSET, sizeof reason);
        is_sound = (end == 0 || end == HWS_RDMA_END_BYTES) && reason <= HWS_MAX_TEXT_BYTES
            && HWS_ANSWER_FIXED_BYTES + hws_pad8(end) + hws_pad8(reason) == reader->payload_bytes;
    }
    if (!is_sound) {
        snprintf(error, capacity, "the worker's answer to OPEN is invalid: record %u of %u bytes",
                 reader->header.opcode, reader->payload_bytes);
        return -1;
    }
    const uint8_t *data = reader->payload + HWS_ANSWER_FIXED_BYTES;
    *answer = (hws_rdma_answer_t) {.accepted = end != 0};
    memcpy(answer->end, data, end);
    snprintf(answer->reason, sizeof answer->reason, "%.*s", (int) reason, (const char *) data + end);
    return 0;
}

int hws_handshake_with_offer(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                             const uint8_t *offer, hws_welcome_t *welcome_p, hws_rdma_answer_t *answer_p, char *error_p,
                             size_t error_capacity) {
    uint8_t payload[MAX_HANDSHAKE_PAYLOAD_BYTES];
    hws_reader_t reader = {.capacity = sizeof payload, .payload = payload};
    int rc = begin_session(carrier, config, description_hash, offer, welcome_p, error_p, error_capacity);
    if (rc != 0) {
        return rc;
    }
    rc = receive_record(carrier, &reader, config->connect_timeout_ms, error_p, error_capacity);
    if (rc == HWS_HANDSHAKE_MOVED) {
        snprintf(error_p, error_capacity, "the session has begun here, and cannot be elsewhere");
    }
    if (rc != 0 || take_answer(&reader, answer_p, error_p, error_capacity) != 0) {
        return -1;
    }
    return carrier->ops->set_timeout(carrier, 0);
}

/* Runs the handshake of a further connection of a session, up to the answer in `reader`. Returns 0 or -1. */
static int introduce_further(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                             const hws_wanted_t *wanted, hws_reader_t *reader, char *error, size_t capacity) {
    bool is_proved = false;
    uint8_t nonce[NONCE_BYTES];
    int rc = introduce(carrier, config, wanted, description_hash, nonce, &is_proved, error, capacity);
    if (rc == 0) {
        rc = receive_record(carrier, reader, config->connect_timeout_ms, error, capacity);
    }
    rc = require_proof(rc, is_proved, error, capacity);
    if (rc == HWS_HANDSHAKE_MOVED) {
        snprintf(error, capacity, "the session's broker must take its further connections");
    }
    return rc == 0 ? 0 : -1;
}

int hws_handshake_join(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                       const hws_welcome_t *session, uint32_t *first_chunk_p, char *error_p, size_t error_capacity) {
    const hws_wanted_t wanted = {.purpose = HWS_PURPOSE_JOIN, .session = session};
    uint8_t payload[MAX_HANDSHAKE_PAYLOAD_BYTES];
    hws_reader_t reader = {.capacity = sizeof payload, .payload = payload};
    if (introduce_further(carrier, config, description_hash, &wanted, &reader, error_p, error_capacity) != 0) {
        return -1;
    }
    uint32_t first = 0;
    if (reader.header.opcode == HWS_CONTROL_JOINED && reader.payload_bytes == HWS_JOINED_FIXED_BYTES) {
        memcpy(&first, payload + HWS_JOINED_FIRST_CHUNK_OFFSET, sizeof first);
    }
    if (first < HWS_FIRST_STRIPE_CHUNK || first > HWS_FIRST_STRIPE_CHUNK + (HWS_MAX_STRIPES - 1) * HWS_STRIPE_CHUNKS) {
        snprintf(error_p, error_capacity, "the worker's answer to JOIN is invalid: record %u of %u bytes, chunk %u",
                 reader.header.opcode, reader.payload_bytes, first);
        return -1;
    }
    *first_chunk_p = first;
    return carrier->ops->set_timeout(carrier, 0);
}

int hws_handshake_resume(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                         const hws_welcome_t *session, char *error_p, size_t error_capacity) {
    const hws_wanted_t wanted = {.purpose = HWS_PURPOSE_RESUME, .session = session};
    uint8_t payload[MAX_HANDSHAKE_PAYLOAD_BYTES];
    hws_reader_t reader = {.capacity = sizeof payload, .payload = payload};
    if (introduce_further(carrier, config, description_hash, &wanted, &reader, error_p, error_capacity) != 0) {
        return -1;
    }
    if (reader.header.opcode != HWS_CONTROL_PARKED || reader.payload_bytes != HWS_PARKED_FIXED_BYTES) {
        snprintf(error_p, error_capacity, "the broker's answer to RESUME is invalid: record %u of %u bytes",
                 reader.header.opcode, reader.payload_bytes);
        return -1;
    }
    return carrier->ops->set_timeout(carrier, 0);
}

int hws_handshake_ask_status(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                             char *text_p, size_t capacity, char *error_p, size_t error_capacity) {
    const hws_wanted_t wanted = {.purpose = HWS_PURPOSE_STATUS};
    bool is_proved = false;
    uint8_t nonce[NONCE_BYTES];
    int rc = introduce(carrier, config, &wanted, description_hash, nonce, &is_proved, error_p, error_capacity);
    if (rc != 0) {
        return require_proof(rc, is_proved, error_p, error_capacity);
    }
    uint32_t bytes = 0, room = (uint32_t) hws_pad8(capacity + HWS_STATUS_FIXED_BYTES);
    hws_reader_t reader = {.capacity = room, .payload = malloc(room)};
    if (reader.payload == NULL) {
        snprintf(error_p, error_capacity, "no memory for the broker's answer");
        return -1;
    }
    rc = receive_record(carrier, &reader, config->connect_timeout_ms, error_p, error_capacity);
    rc = require_proof(rc, is_proved, error_p, error_capacity);
    if (rc == 0) {
        bool is_sound = reader.header.opcode == HWS_CONTROL_STATUS && reader.payload_bytes >= HWS_STATUS_FIXED_BYTES;
        if (is_sound) {
            memcpy(&bytes, reader.payload + HWS_STATUS_TEXT_OFFSET, sizeof bytes);
            is_sound = bytes < capacity && HWS_STATUS_FIXED_BYTES + hws_pad8(bytes) == reader.payload_bytes;
        }
        if (is_sound) {
            memcpy(text_p, reader.payload + HWS_STATUS_FIXED_BYTES, bytes);
            text_p[bytes] = '\0';
        } else {
            snprintf(error_p, error_capacity,
                     "the broker does not speak Hawser's protocol (record %u of %u bytes for "
                     "STATUS)",
                     reader.header.opcode, reader.payload_bytes);
            rc = -1;
        }
    }
    free(reader.payload);
    return rc;
}

int hws_handshake_await_welcome(hws_carrier_t *carrier, uint32_t timeout_ms, hws_welcome_t *welcome_p, char *error_p,
                                size_t error_capacity) {
    uint8_t payload[MAX_HANDSHAKE_PAYLOAD_BYTES];
    hws_reader_t reader = {.capacity = sizeof payload, .payload = payload};
    int rc = receive_record(carrier, &reader, timeout_ms, error_p, error_capacity);
    if (rc == 0) {
        rc = take_welcome(&reader, welcome_p, error_p, error_capacity);
    }
    return rc != 0 ? rc : carrier->ops->set_timeout(carrier, 0);
}

int hws_handshake_call(hws_carrier_t *carrier, uint32_t opcode, uint64_t sequence, const void *payload, size_t bytes,
                       uint32_t timeout_ms, char *error_p, size_t error_capacity) {
    uint8_t answer[MAX_HANDSHAKE_PAYLOAD_BYTES];
    hws_reader_t reader = {.capacity = sizeof answer, .payload = answer};
    hws_record_header_t header = {.length_bytes = (int32_t) (HWS_HEADER_BYTES + bytes),
                                  .opcode = opcode,
                                  .sequence = sequence,
                                  .thread = 1,
                                  .flags = HWS_FLAG_REPLY};
    struct iovec pieces[2] = {{&header, sizeof header}, {(void *) payload, bytes}};
    carrier->ops->set_timeout(carrier, timeout_ms);
    if (carrier->ops->send(carrier, pieces, 2) != 0) {
        errno = errno == EAGAIN ? ETIMEDOUT : errno;
        describe_loss(carrier, timeout_ms, error_p, error_capacity);
        return -1;
    }
    if (receive_record(carrier, &reader, timeout_ms, error_p, error_capacity) != 0) {
        return -1;
    }
    if (reader.header.opcode != (opcode | HWS_REPLY_BIT) || reader.header.sequence != sequence
        || reader.header.flags != 0) {
        snprintf(error_p, error_capacity, "the worker's answer is invalid: record %08x of call %llu with status %u",
                 reader.header.opcode, (unsigned long long) reader.header.sequence, reader.header.flags);
        return -1;
    }
    return 0;
}
