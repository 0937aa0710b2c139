/* The test device of libibverbs: what tests of the carrier rdma rely on. */
#include "verbs_end.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/hws-verbs-XXXXXX";
static end_t a, b;
static address_t to_a, to_b;

static void set_link(bool is_up) {
    char path[128];
    snprintf(path, sizeof path, "%s/link-down", folder);
    if (is_up) {
        HWS_CHECK(unlink(path) == 0);
    } else {
        int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
        HWS_CHECK(file >= 0 && close(file) == 0);
    }
}

static void open_both(options_t of_a, options_t of_b) {
    end_open_device(&a);
    end_open_device(&b);
    end_prepare(&a, of_a);
    end_prepare(&b, of_b);
    to_a = end_address(&a);
    to_b = end_address(&b);
    end_connect(&a, &to_b);
    end_connect(&b, &to_a);
}

static void close_both(void) {
    end_close(&a);
    end_close(&b);
}

static void open_plain(void) {
    open_both((options_t) {0}, (options_t) {0});
}

static void fill(uint8_t *bytes, uint32_t count, uint32_t seed) {
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t) ((i + seed) * 2654435761u >> 24);
    }
}

static void shouldDescribeTheDevice(void) {
    end_open_device(&a);
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    struct ibv_gid_entry entry, entries[8];
    __be16 pkey;
    HWS_CHECK(ibv_query_device(a.context, &device) == 0 && device.phys_port_cnt == 1 && device.max_qp > 0);
    HWS_CHECK(ibv_query_port(a.context, 2, &port) == EINVAL);
    HWS_CHECK(ibv_query_port(a.context, 1, &port) == 0);
    HWS_CHECK(port.state == IBV_PORT_ACTIVE && port.link_layer == IBV_LINK_LAYER_ETHERNET);
    HWS_CHECK(port.active_mtu == IBV_MTU_4096 && port.gid_tbl_len == 8);
    HWS_CHECK(ibv_query_gid_ex(a.context, 1, 3, &entry, 0) == 0 && entry.gid_type == IBV_GID_TYPE_ROCE_V2);
    HWS_CHECK(ibv_query_gid_ex(a.context, 1, 7, &entry, 0) == ENODATA);
    HWS_CHECK(ibv_query_gid_table(a.context, entries, 8, 0) == 4);
    HWS_CHECK(ibv_query_pkey(a.context, 1, 0, &pkey) == 0 && pkey == 0xffff);
    HWS_CHECK(strcmp(ibv_get_device_name(a.context->device), "hawser_test0") == 0);
    set_link(false);
    uint64_t limit_ms = now_ms() + END_LIMIT_MS;
    do {
        HWS_CHECK(now_ms() < limit_ms && ibv_query_port(a.context, 1, &port) == 0);
    } while (port.state != IBV_PORT_DOWN);
    set_link(true);
    HWS_CHECK(ibv_close_device(a.context) == 0);
}

static void shouldWriteBytesBeforeTheImmediateThatFollows(void) {
    open_plain();
    end_receive(&b, 5, 0, 0);
    fill(a.memory, 300000, 1);
    struct ibv_sge sges[2] = {{(uintptr_t) a.memory, 1000, a.region->lkey},
                              {(uintptr_t) a.memory + 1000, 299000, a.region->lkey}};
    struct ibv_send_wr last = {
        .wr_id = 2, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .send_flags = IBV_SEND_SIGNALED, .imm_data = htonl(77)};
    struct ibv_send_wr first = {.wr_id = 1,
                                .next = &last,
                                .sg_list = sges,
                                .num_sge = 2,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .wr.rdma = {.remote_addr = to_b.memory, .rkey = to_b.key}};
    struct ibv_send_wr *bad;
    HWS_CHECK(ibv_post_send(a.pair, &first, &bad) == 0);
    end_await_immediate(&b, 5, 77, 0);
    HWS_CHECK(memcmp(a.memory, b.memory, 300000) == 0);
    /* The unsignaled one is silent. */
    struct ibv_wc wc = end_await(a.sends);
    HWS_CHECK(wc.wr_id == 2 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_WRITE);
    end_must_be_empty(a.sends);
    close_both();
}

static void shouldTakeInlineBytesAtThePost(void) {
    open_plain();
    end_receive(&b, 1, 0, 0);
    set_link(false);
    memcpy(a.memory, "inline", 7);
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_INLINE, 9, 0, 7);
    memcpy(a.memory, "changed", 7);
    HWS_CHECK(end_try_post(&a, &to_b, IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 9, 0, 65) == EINVAL);
    set_link(true);
    end_await_immediate(&b, 1, 9, 7);
    HWS_CHECK(memcmp(b.memory, "inline", 7) == 0);
    close_both();
}

static void shouldReadAndSend(void) {
    open_plain();
    fill(b.memory, 200000, 3);
    end_post(&a, &to_b, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 1, 0, 200000);
    struct ibv_wc wc = end_await(a.sends);
    HWS_CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_READ);
    HWS_CHECK(memcmp(a.memory, b.memory, 200000) == 0);
    end_receive(&b, 2, 300000, 100000);
    end_post(&a, &to_b, IBV_WR_SEND, IBV_SEND_SIGNALED, 3, 0, 100000);
    wc = end_await(b.receives);
    HWS_CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len == 100000 && wc.wr_id == 2);
    HWS_CHECK(memcmp(a.memory, b.memory + 300000, 100000) == 0);
    end_await_status(a.sends, 3, IBV_WC_SUCCESS);
    end_receive(&b, 4, 0, 10);
    end_post(&a, &to_b, IBV_WR_SEND, 0, 5, 0, 11);
    end_await_status(a.sends, 5, IBV_WC_REM_INV_REQ_ERR);
    end_await_status(b.receives, 4, IBV_WC_LOC_LEN_ERR);
    close_both();
}

static void shouldKeepTheOrder(void) {
    open_plain();
    uint32_t received = 0;
    for (uint32_t i = 0; i < END_DEPTH; i++) {
        end_receive(&b, i, 0, 0);
    }
    for (uint32_t sent = 0; sent < 2000; sent++) {
        /* Every eighth one is signaled, and its completion frees all of them. */
        bool is_signaled = sent % 8 == 7;
        end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, is_signaled ? IBV_SEND_SIGNALED : 0, sent, 8 * (sent % 64), 8);
        if (is_signaled) {
            end_await_status(a.sends, sent, IBV_WC_SUCCESS);
            for (; received <= sent; received++) {
                end_await_immediate(&b, received, received, 8);
                end_receive(&b, received + END_DEPTH, 0, 0);
            }
        }
    }
    close_both();
}

/* The request is refused at the other end, and both ends flush what they have. */
static void must_refuse(int access, enum ibv_wr_opcode opcode, uint32_t key_change, uint64_t shift, uint32_t bytes) {
    open_both((options_t) {0}, (options_t) {.access = access});
    end_receive(&b, 11, 0, 0);
    end_receive(&b, 12, 0, 0);
    address_t wrong = to_b;
    wrong.key += key_change;
    wrong.memory += shift;
    set_link(false);
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 0, 0);
    end_post(&a, &wrong, opcode, 0, 2, 0, bytes);
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 3, 0, 8);
    set_link(true);
    end_await_status(a.sends, 1, IBV_WC_SUCCESS);
    end_await_status(a.sends, 2, IBV_WC_REM_ACCESS_ERR);
    end_await_status(a.sends, 3, IBV_WC_WR_FLUSH_ERR);
    end_await_status(b.receives, 11, IBV_WC_WR_FLUSH_ERR);
    end_await_status(b.receives, 12, IBV_WC_WR_FLUSH_ERR);
    HWS_CHECK(end_state(&a) == IBV_QPS_ERR && end_state(&b) == IBV_QPS_ERR);
    /* What is posted now is flushed, too. */
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE, 0, 4, 0, 8);
    end_await_status(a.sends, 4, IBV_WC_WR_FLUSH_ERR);
    for (uint32_t i = 0; i < END_BYTES; i++) {
        HWS_CHECK(b.memory[i] == 0);
    }
    close_both();
}

static void shouldRefuseForeignMemory(void) {
    int reads = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    int writes = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    must_refuse(0, IBV_WR_RDMA_WRITE, 1, 0, 8);
    must_refuse(0, IBV_WR_RDMA_READ, 1, 0, 8);
    must_refuse(0, IBV_WR_RDMA_WRITE, 0, END_BYTES - 7, 8);
    must_refuse(0, IBV_WR_RDMA_WRITE, 0, (uint64_t) -1, 8);
    must_refuse(0, IBV_WR_RDMA_WRITE, 0, 1, END_BYTES);
    must_refuse(reads, IBV_WR_RDMA_WRITE, 0, 0, 8);
    must_refuse(writes, IBV_WR_RDMA_READ, 0, 0, 8);
}

static void shouldRefuseAForeignLocalKey(void) {
    open_plain();
    struct ibv_sge sge = {(uintptr_t) a.memory + END_BYTES - 4, 8, a.region->lkey};
    struct ibv_send_wr wr = {.wr_id = 6, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    wr.wr.rdma.remote_addr = to_b.memory;
    wr.wr.rdma.rkey = to_b.key;
    HWS_CHECK(ibv_post_send(a.pair, &wr, &bad) == 0);
    end_await_status(a.sends, 6, IBV_WC_LOC_PROT_ERR);
    close_both();
}

/* As an address of a GPU is, whose memory the kernel cannot pin. */
static void shouldRefuseAddressesWithoutPages(void) {
    open_plain();
    void *reserved = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HWS_CHECK(reserved != MAP_FAILED);
    HWS_CHECK(ibv_reg_mr(a.pd, reserved, 8192, IBV_ACCESS_LOCAL_WRITE) == NULL && errno == EFAULT);
    HWS_CHECK(munmap(reserved, 8192) == 0);
    close_both();
}

static void shouldWaitForAReceive(void) {
    open_plain();
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED, 4, 0, 8);
    /* Longer than the tries of a link that is down. */
    pause_ms(300);
    end_must_be_empty(a.sends);
    end_receive(&b, 8, 0, 0);
    end_await_immediate(&b, 8, 4, 8);
    end_await_status(a.sends, 4, IBV_WC_SUCCESS);
    close_both();
    open_both((options_t) {.patience = 1}, (options_t) {0});
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 4, 0, 8);
    end_await_status(a.sends, 4, IBV_WC_RNR_RETRY_EXC_ERR);
    close_both();
}

static bool has_event(end_t *end, int limit_ms) {
    struct pollfd ready = {.fd = end->channel->fd, .events = POLLIN};
    return poll(&ready, 1, limit_ms) == 1;
}

static void take_event(end_t *end) {
    struct ibv_cq *cq;
    void *context;
    HWS_CHECK(has_event(end, END_LIMIT_MS));
    HWS_CHECK(ibv_get_cq_event(end->channel, &cq, &context) == 0 && cq == end->receives && context == end);
    ibv_ack_cq_events(cq, 1);
}

static void send_and_await(uint32_t id, unsigned flags) {
    end_receive(&b, id, 0, 0);
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED | flags, id, 0, 8);
    end_await_status(a.sends, id, IBV_WC_SUCCESS);
}

static void *send_late(void *unused) {
    pause_ms(100);
    send_and_await(7, 0);
    return unused;
}

static void shouldMakeOneEventForEachArm(void) {
    open_plain();
    /* Not armed; and arming says nothing of a completion that is there already. */
    send_and_await(1, 0);
    HWS_CHECK(ibv_req_notify_cq(b.receives, 0) == 0);
    HWS_CHECK(!has_event(&b, 0));
    send_and_await(2, 0);
    take_event(&b);
    send_and_await(3, 0);
    HWS_CHECK(!has_event(&b, 0));
    /* Armed for solicited ones only. */
    HWS_CHECK(ibv_req_notify_cq(b.receives, 1) == 0);
    send_and_await(4, 0);
    HWS_CHECK(!has_event(&b, 0));
    send_and_await(5, IBV_SEND_SOLICITED);
    take_event(&b);
    for (uint32_t id = 1; id <= 5; id++) {
        end_await_immediate(&b, id, id, 8);
    }
    HWS_CHECK(ibv_req_notify_cq(b.receives, 0) == 0);
    pthread_t sender;
    HWS_CHECK(pthread_create(&sender, NULL, send_late, NULL) == 0);
    take_event(&b);
    end_await_immediate(&b, 7, 7, 8);
    HWS_CHECK(pthread_join(sender, NULL) == 0);
    /* An event that nobody takes goes with its queue: end_close() would hang or fail. */
    HWS_CHECK(ibv_req_notify_cq(b.receives, 0) == 0);
    send_and_await(8, 0);
    HWS_CHECK(has_event(&b, END_LIMIT_MS));
    close_both();
}

static void shouldFreeTheSendQueueByPolledCompletions(void) {
    open_plain();
    for (uint32_t i = 0; i < END_DEPTH; i++) {
        end_post(&a, &to_b, IBV_WR_RDMA_WRITE, i % 32 == 31 ? IBV_SEND_SIGNALED : 0, i, 0, 8);
    }
    HWS_CHECK(end_try_post(&a, &to_b, IBV_WR_RDMA_WRITE, 0, 99, 0, 8) == ENOMEM);
    /* Carried out is not enough. */
    pause_ms(100);
    HWS_CHECK(end_try_post(&a, &to_b, IBV_WR_RDMA_WRITE, 0, 99, 0, 8) == ENOMEM);
    end_await_status(a.sends, 31, IBV_WC_SUCCESS);
    for (uint32_t i = 0; i < 32; i++) {
        end_post(&a, &to_b, IBV_WR_RDMA_WRITE, 0, i, 0, 8);
    }
    HWS_CHECK(end_try_post(&a, &to_b, IBV_WR_RDMA_WRITE, 0, 99, 0, 8) == ENOMEM);
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
    for (uint32_t i = 0; i < END_DEPTH; i++) {
        end_receive(&b, i, 0, 0);
    }
    HWS_CHECK(ibv_post_recv(b.pair, &wr, &bad) == ENOMEM && bad == &wr);
    close_both();
}

static void shouldNoticeAnOverflowOfCompletions(void) {
    open_both((options_t) {.entries = 4}, (options_t) {0});
    for (uint32_t i = 0; i < 5; i++) {
        end_post(&a, &to_b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, i, 0, 8);
    }
    uint64_t limit_ms = now_ms() + END_LIMIT_MS;
    while (end_state(&a) != IBV_QPS_ERR) {
        HWS_CHECK(now_ms() < limit_ms);
        pause_ms(1);
    }
    struct ibv_wc wcs[5];
    HWS_CHECK(ibv_poll_cq(a.sends, 5, wcs) == 4);
    HWS_CHECK(ibv_poll_cq(a.sends, 5, wcs) < 0);
    close_both();
}

/* One try of timeout 17 is 537 ms, and there are two. */
static void shouldBridgeAShortLossOfTheLink(void) {
    open_both((options_t) {.timeout = 17, .retries = 1}, (options_t) {0});
    end_receive(&b, 1, 0, 0);
    set_link(false);
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED, 1, 0, 8);
    pause_ms(400);
    end_must_be_empty(a.sends);
    end_must_be_empty(b.receives);
    set_link(true);
    end_await_immediate(&b, 1, 1, 8);
    end_await_status(a.sends, 1, IBV_WC_SUCCESS);
    close_both();
}

static void shouldGiveUpOnALongLossOfTheLink(void) {
    open_both((options_t) {.timeout = 17, .retries = 1}, (options_t) {0});
    end_receive(&b, 1, 0, 0);
    set_link(false);
    uint64_t from_ms = now_ms();
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE, 0, 1, 0, 8);
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 2, 0, 8);
    end_await_status(a.sends, 1, IBV_WC_RETRY_EXC_ERR);
    HWS_CHECK(now_ms() - from_ms >= 1074);
    end_await_status(a.sends, 2, IBV_WC_WR_FLUSH_ERR);
    HWS_CHECK(end_state(&a) == IBV_QPS_ERR);
    set_link(true);
    /* The other end had nothing under way, and nothing reaches it any more. */
    pause_ms(200);
    HWS_CHECK(end_state(&b) == IBV_QPS_RTS);
    end_must_be_empty(b.receives);
    close_both();
}

static void shouldGiveUpOnAnEndThatIsGone(void) {
    open_plain();
    HWS_CHECK(ibv_destroy_qp(b.pair) == 0);
    b.pair = NULL;
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE, 0, 1, 0, 8);
    end_await_status(a.sends, 1, IBV_WC_RETRY_EXC_ERR);
    close_both();
}

static void shouldNotConnectWithAnotherPacketNumber(void) {
    end_open_device(&a);
    end_open_device(&b);
    end_prepare(&a, (options_t) {0});
    end_prepare(&b, (options_t) {0});
    to_a = end_address(&a);
    to_b = end_address(&b);
    to_a.psn ^= 1;
    end_connect(&a, &to_b);
    end_connect(&b, &to_a);
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE, 0, 1, 0, 8);
    end_await_status(a.sends, 1, IBV_WC_RETRY_EXC_ERR);
    close_both();
}

static void shouldForgetEverythingInReset(void) {
    open_plain();
    /* It lies in the ring, for want of a receive. */
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED, 1, 0, 8);
    pause_ms(50);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    HWS_CHECK(ibv_modify_qp(a.pair, &attr, IBV_QP_STATE) == 0);
    end_receive(&b, 1, 0, 0);
    end_receive(&b, 2, 0, 0);
    attr = (struct ibv_qp_attr) {.qp_state = IBV_QPS_INIT, .port_num = 1};
    HWS_CHECK(ibv_modify_qp(a.pair, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS) == 0);
    end_connect(&a, &to_b);
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED, 2, 0, 8);
    end_await_status(a.sends, 2, IBV_WC_SUCCESS);
    end_await_immediate(&b, 1, 2, 8);
    attr = (struct ibv_qp_attr) {.qp_state = IBV_QPS_ERR};
    HWS_CHECK(ibv_modify_qp(b.pair, &attr, IBV_QP_STATE) == 0);
    end_await_status(b.receives, 2, IBV_WC_WR_FLUSH_ERR);
    close_both();
}

static void shouldLeaveTheParentAloneInAChild(void) {
    open_plain();
    end_receive(&b, 1, 0, 0);
    pid_t child = fork();
    HWS_CHECK(child >= 0);
    if (child == 0) {
        struct ibv_wc wc;
        HWS_CHECK(ibv_poll_cq(b.receives, 1, &wc) < 0);
        HWS_CHECK(end_try_post(&a, &to_b, IBV_WR_RDMA_WRITE, 0, 1, 0, 8) == EINVAL);
        HWS_CHECK(ibv_destroy_qp(a.pair) == 0 && ibv_destroy_qp(b.pair) == 0);
        HWS_CHECK(ibv_close_device(a.context) == 0 && ibv_close_device(b.context) == 0);
        _exit(0);
    }
    int status;
    HWS_CHECK(waitpid(child, &status, 0) == child && status == 0);
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1, 0, 8);
    end_await_immediate(&b, 1, 1, 8);
    close_both();
}

/* As the jail of a worker: another user, and no way to a file, a socket or a new descriptor. */
static void enter_jail(void) {
    HWS_CHECK(getuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
    struct sock_filter rules[32];
    const int refused[] = {SYS_open,   SYS_openat,   SYS_stat,      SYS_newfstatat,    SYS_access,
                           SYS_socket, SYS_unlink,   SYS_unlinkat,  SYS_inotify_init1, SYS_memfd_create,
                           SYS_pipe2,  SYS_eventfd2, SYS_ftruncate, SYS_kill};
    unsigned short count = 0;
    rules[count++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        rules[count++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned) refused[i], 0, 1);
        rules[count++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    rules[count++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = count, .filter = rules};
    HWS_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    /* The engine runs already, so the filter is for all threads. */
    HWS_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

/* The other process: it answers every immediate with the same one, until it is killed. */
static void echo(int socket) {
    end_open_device(&b);
    enter_jail();
    end_prepare(&b, (options_t) {0});
    to_b = end_address(&b);
    for (uint32_t i = 0; i < END_DEPTH; i++) {
        end_receive(&b, i, 0, 0);
    }
    HWS_CHECK(write(socket, &to_b, sizeof to_b) == sizeof to_b && read(socket, &to_a, sizeof to_a) == sizeof to_a);
    end_connect(&b, &to_a);
    HWS_CHECK(ibv_req_notify_cq(b.receives, 0) == 0);
    for (;;) {
        struct ibv_wc wc;
        while (ibv_poll_cq(b.receives, 1, &wc) == 0) {
            take_event(&b);
            HWS_CHECK(ibv_req_notify_cq(b.receives, 0) == 0);
        }
        HWS_CHECK(wc.status == IBV_WC_SUCCESS);
        end_receive(&b, wc.wr_id, 0, 0);
        end_post(&b, &to_a, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED, ntohl(wc.imm_data), 0, wc.byte_len);
        end_await_status(b.sends, ntohl(wc.imm_data), IBV_WC_SUCCESS);
    }
}

static void shouldConnectTwoProcessesUntilOneIsKilled(void) {
    int sockets[2];
    HWS_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    pid_t child = fork();
    HWS_CHECK(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) close(sockets[0]);
        echo(sockets[1]);
    }
    (void) close(sockets[1]);
    end_open_device(&a);
    end_prepare(&a, (options_t) {.timeout = 16, .retries = 1});
    to_a = end_address(&a);
    HWS_CHECK(read(sockets[0], &to_b, sizeof to_b) == sizeof to_b);
    HWS_CHECK(write(sockets[0], &to_a, sizeof to_a) == sizeof to_a);
    end_connect(&a, &to_b);
    uint8_t *sent = malloc(100000);
    uint64_t from_ms = now_ms();
    for (uint32_t i = 0; i < 200; i++) {
        end_receive(&a, i, 0, 0);
        fill(sent, 100000, i);
        memcpy(a.memory, sent, 100000);
        end_post(&a, &to_b, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED, i, 0, i % 2 == 0 ? 8 : 100000);
        end_await_status(a.sends, i, IBV_WC_SUCCESS);
        end_await_immediate(&a, i, i, i % 2 == 0 ? 8 : 100000);
        HWS_CHECK(memcmp(a.memory, sent, 100000) == 0);
    }
    fprintf(stderr, "200 round trips: ms=%lu\n", (unsigned long) (now_ms() - from_ms));
    free(sent);
    int status;
    HWS_CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
    HWS_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    from_ms = now_ms();
    end_post(&a, &to_b, IBV_WR_RDMA_WRITE, 0, 1, 0, 8);
    end_await_status(a.sends, 1, IBV_WC_RETRY_EXC_ERR);
    HWS_CHECK(now_ms() - from_ms < 5000);
    (void) close(sockets[0]);
    end_close(&a);
}

int main(void) {
    HWS_CHECK(mkdtemp(folder) != NULL && chmod(folder, 0777) == 0);
    HWS_CHECK(setenv("HAWSER_TEST_FABRIC", folder, 1) == 0);
    /* First, while this process has no thread that a child would miss. */
    HWS_RUN(shouldConnectTwoProcessesUntilOneIsKilled);
    HWS_RUN(shouldDescribeTheDevice);
    HWS_RUN(shouldWriteBytesBeforeTheImmediateThatFollows);
    HWS_RUN(shouldTakeInlineBytesAtThePost);
    HWS_RUN(shouldReadAndSend);
    HWS_RUN(shouldKeepTheOrder);
    HWS_RUN(shouldRefuseForeignMemory);
    HWS_RUN(shouldRefuseAForeignLocalKey);
    HWS_RUN(shouldRefuseAddressesWithoutPages);
    HWS_RUN(shouldWaitForAReceive);
    HWS_RUN(shouldMakeOneEventForEachArm);
    HWS_RUN(shouldFreeTheSendQueueByPolledCompletions);
    HWS_RUN(shouldNoticeAnOverflowOfCompletions);
    HWS_RUN(shouldBridgeAShortLossOfTheLink);
    HWS_RUN(shouldGiveUpOnALongLossOfTheLink);
    HWS_RUN(shouldGiveUpOnAnEndThatIsGone);
    HWS_RUN(shouldNotConnectWithAnotherPacketNumber);
    HWS_RUN(shouldForgetEverythingInReset);
    HWS_RUN(shouldLeaveTheParentAloneInAChild);
    char arena[128];
    snprintf(arena, sizeof arena, "%s/arena", folder);
    HWS_CHECK(unlink(arena) == 0 && rmdir(folder) == 0);
    return 0;
}
