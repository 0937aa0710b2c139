/*
 * The fabric of the test device: one sparse file that every process of a fabric maps, with a table of nodes (open
 * devices) and one of queue pairs. A queue pair holds the ring of packets that its owner sends. The file of zeros is a
 * valid, empty fabric, so no process has to be the first.
 */
#ifndef HWS_FABRIC_H
#define HWS_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HWS_FABRIC_MAGIC 0x31627266u
#define HWS_FABRIC_NODES 64
#define HWS_FABRIC_PAIRS 128
#define HWS_FABRIC_PACKETS 16
#define HWS_FABRIC_PAYLOAD (32u << 10)
/* A node without a beat for this long is dead. */
#define HWS_FABRIC_DEAD_MS 2000
#define HWS_FABRIC_BEAT_MS 100

enum hws_packet_flags { HWS_PACKET_LAST = 1, HWS_PACKET_IMMEDIATE = 2, HWS_PACKET_SOLICITED = 4 };

typedef struct hws_packet_header {
    uint64_t address; /* of the whole message */
    uint32_t key;
    uint32_t total;  /* bytes of the whole message */
    uint32_t offset; /* of this packet in the message */
    uint32_t bytes;  /* of this packet */
    uint32_t opcode; /* enum ibv_wr_opcode */
    uint32_t flags;
    uint32_t immediate;
    uint32_t status; /* enum ibv_wc_status, by the receiver before it moves the head */
} hws_packet_header_t;

typedef struct hws_packet {
    hws_packet_header_t header;
    uint8_t payload[HWS_FABRIC_PAYLOAD]; /* a READ brings its bytes back here */
} hws_packet_t;

/* The owner writes everything but `head` and `refused_ms`, which belong to the receiver. */
typedef struct hws_fabric_pair {
    _Atomic uint64_t owner; /* 0: free; else number of the node's opening << 8 | index of the node */
    _Atomic uint32_t serial;
    _Atomic uint32_t number;      /* serial << 8 | index */
    _Atomic uint32_t destination; /* number of the other queue pair */
    _Atomic uint32_t state;       /* enum ibv_qp_state */
    _Atomic uint32_t receive_psn;
    _Atomic uint32_t send_psn;
    _Atomic uint64_t refused_ms; /* since then the packet at the head has met no posted receive; 0: none has */
    _Atomic uint32_t tail;       /* packets ever sent */
    _Atomic uint32_t head;       /* packets ever carried out */
    hws_packet_t packets[HWS_FABRIC_PACKETS];
} hws_fabric_pair_t;

typedef struct hws_fabric_node {
    _Atomic uint64_t beat; /* 0: free; else time of the last beat in ms << 24 | number of the opening */
    _Atomic uint32_t wake; /* futex word of the node's engine */
    uint32_t reserved;
} hws_fabric_node_t;

typedef struct hws_fabric_arena {
    _Atomic uint32_t magic;
    _Atomic uint32_t link_down;
    hws_fabric_node_t nodes[HWS_FABRIC_NODES];
    hws_fabric_pair_t pairs[HWS_FABRIC_PAIRS];
} hws_fabric_arena_t;

/* One opening of the fabric. */
typedef struct hws_fabric {
    hws_fabric_arena_t *arena;
    int file;
    int watch; /* inotify: `link-down` appears in the folder or goes */
    uint32_t node;
    uint32_t opening; /* 24 bits, never 0 */
    uint64_t beat;    /* the last value that this node wrote; after the opening only the engine touches it */
} hws_fabric_t;

/* Maps the fabric of HAWSER_TEST_FABRIC and takes a node. Later calls need no file any more. Returns 0 or an errno. */
int hws_fabric_open(hws_fabric_t *fabric);

/* Gives up the node and its queue pairs. In a child after fork it leaves both to the parent. */
void hws_fabric_close(hws_fabric_t *fabric, bool in_child);

/* Monotonic time, equal in all processes. */
uint64_t hws_fabric_now_ms(void);

/* Shows the other nodes that this one lives. Returns false if another process took the node for dead. */
bool hws_fabric_beat(hws_fabric_t *fabric, uint64_t now_ms);

/* Whether `link-down` lies in the folder. */
bool hws_fabric_link_is_down(hws_fabric_t *fabric);

/* Takes a free queue pair. Returns NULL if there is none. */
hws_fabric_pair_t *hws_fabric_pair_take(hws_fabric_t *fabric);

void hws_fabric_pair_give(hws_fabric_pair_t *pair);

/* The queue pair of this number, or NULL. */
hws_fabric_pair_t *hws_fabric_pair_find(hws_fabric_t *fabric, uint32_t number);

/* Time of the last beat of the pair's node, or 0 if the node is gone. */
uint64_t hws_fabric_pair_beat_ms(hws_fabric_t *fabric, const hws_fabric_pair_t *pair);

/* Wakes the engine of the pair's node. */
void hws_fabric_pair_wake(hws_fabric_t *fabric, const hws_fabric_pair_t *pair);

void hws_fabric_wake(hws_fabric_t *fabric, uint32_t node);

/* Sleeps until a wake-up since `seen`, or for limit_ms. */
void hws_fabric_sleep(hws_fabric_t *fabric, uint32_t seen, uint32_t limit_ms);

#endif
