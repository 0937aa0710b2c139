/* Moves to another broker with connections that end, hostile workers, and the end or the fork of the process. */
#include "../tcp/hws_stripe.h"
#include "moving_session.h"

#include <fcntl.h>
#include <sys/wait.h>

static void shouldGoOnWhenTheOldConnectionEndsFirst(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    for (unsigned i = 0; i < 2; i++) {
        leave_for(there.name);
        const int fd = connection_of(&there, i);
        HWS_CHECK(take_left()[0] == '\0');
        const hws_record_header_t cut = {.length_bytes = HWS_HEADER_BYTES + 8, .opcode = HWS_CONTROL_OUTPUT};
        fake_write(&cut, 12 + 20 * i); /* the rest of this one never comes */
        shutdown(fake_fd, SHUT_RDWR);
        close(fake_fd);
        if (i == 0) {
            nap(); /* the guest mostly sees the end first, and must go on either way */
        }
        put_resumed(fd);
        fake_fd = fd;
        round_trip();
    }
    HWS_CHECK(hws_channel_status() == 0);
    close_session();
    fake_broker_stop(&there);
}

/* The other end of the parked connection does something else than RESUMED, which only ends that connection. */
static void shouldStayWhenTheNewConnectionEndsOrSendsAnotherRecord(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    for (unsigned i = 0; i < 5; i++) {
        leave_for(there.name);
        const int fd = connection_of(&there, i);
        HWS_CHECK(take_left()[0] == '\0');
        const hws_record_header_t half = {.length_bytes = HWS_HEADER_BYTES, .opcode = HWS_CONTROL_RESUMED};
        const hws_record_header_t refused = {.length_bytes = HWS_HEADER_BYTES, .opcode = HWS_CONTROL_STAY};
        const hws_record_header_t longer = {.length_bytes = HWS_HEADER_BYTES + 8, .opcode = HWS_CONTROL_RESUMED};
        switch (i) {
            case 0:
                shutdown(fd, SHUT_RDWR);
                break;
            case 1:
                HWS_CHECK(send(fd, &half, 20, MSG_NOSIGNAL) == 20);
                shutdown(fd, SHUT_WR);
                break;
            case 2:
                HWS_CHECK(send(fd, &refused, sizeof refused, MSG_NOSIGNAL) == sizeof refused);
                break;
            case 3:
                HWS_CHECK(send(fd, &longer, sizeof longer, MSG_NOSIGNAL) == sizeof longer);
                break;
            default:
                fake_put_refused(fd, HWS_REFUSED_INTERNAL, "out of luck");
        }
        expect_end(fd);
        close(fd);
        fake_put(HWS_CONTROL_STAY, 0, 0, NULL, 0);
        round_trip();
    }
    HWS_CHECK(hws_channel_status() == 0);
    close_session();
    fake_broker_stop(&there);
}

static void shouldLoseTheSessionWhenBothConnectionsEnd(void) {
    for (int i = 0; i < 2; i++) {
        fake_broker_t there;
        fake_broker_start(&there, FAKE_PARKS, NULL);
        open_session();
        leave_for(there.name);
        const int fd = connection_of(&there, 0);
        HWS_CHECK(take_left()[0] == '\0');
        call_t held;
        start_call(&held);
        shutdown(i == 0 ? fd : fake_fd, SHUT_RDWR);
        nap();
        HWS_CHECK(hws_channel_status() == 0);
        shutdown(i == 0 ? fake_fd : fd, SHUT_RDWR);
        fake_join(&held.thread);
        HWS_CHECK(held.status == HWS_LOST_STATUS && atomic_load(&fake_failed_status) == HWS_LOST_STATUS);
        close(fd);
        close_session();
        fake_broker_stop(&there);
    }
}

/* A session whose worker breaks a rule is lost. */
static void expect_loss(uint32_t opcode, const void *payload, uint32_t bytes) {
    call_t call;
    begin_call(&call);
    fake_put(opcode, 0, 0, payload, bytes);
    fake_join(&call.thread);
    HWS_CHECK(call.status == HWS_LOST_STATUS);
    close_session();
}

static void shouldRefuseMalformedOrUnexpectedRecords(void) {
    uint8_t payload[512] = {0};
    const struct {
        uint32_t length, bytes;
        const char *text;
    } leaves[] = {
        {0, 0, ""},
        {0, 8, ""},
        {5, 8, ""},
        {5, 24, "a:123"},
        {17, 24, "gpu2.example:7654"},
        {5, 16, "a:1\0"},
        {256, 8 + 256, "aa"},
        {UINT32_MAX, 16, "a"},
    };
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        memset(payload, 0, sizeof payload);
        memcpy(payload, &leaves[i].length, 4);
        memcpy(payload + 8, leaves[i].text, strlen(leaves[i].text));
        if (leaves[i].length == 256) {
            memset(payload + 8, 'a', 256);
        }
        open_session();
        expect_loss(HWS_CONTROL_LEAVE, payload, leaves[i].bytes);
    }
    /* STAY without LEFT, and records of other connections. */
    const uint32_t opcodes[] = {HWS_CONTROL_STAY,   HWS_CONTROL_FOLLOWS, HWS_CONTROL_LEFT,
                                HWS_CONTROL_PARKED, HWS_CONTROL_RESUMED, HWS_CONTROL_RESUME};
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        open_session();
        expect_loss(opcodes[i], payload, 0);
    }
}

static void shouldRefuseLeaveWithoutFollows(void) {
    const uint8_t payload[16] = {5, 0, 0, 0, 0, 0, 0, 0, 'a', ':', '1', '2', '3'};
    const struct {
        bool may_leave, has_hook;
    } cases[] = {{false, true}, {true, false}, {false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_channel(cases[i].may_leave, cases[i].has_hook);
        HWS_CHECK(!hws_channel.background_started); /* nor does it wake up each second */
        round_trip();                               /* the first record is the call */
        expect_loss(HWS_CONTROL_LEAVE, payload, sizeof payload);
    }
}

static void shouldRefuseASecondLeave(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    const char *name = there.name;
    uint8_t payload[64] = {(uint8_t) strlen(name)};
    memcpy(payload + 8, name, strlen(name));
    const uint32_t bytes = 8 + (uint32_t) strlen(name);
    open_session(); /* while the guest connects, or waits for quiet */
    call_t call;
    begin_call(&call);
    put_leave(name);
    fake_put(HWS_CONTROL_LEAVE, 0, 0, payload, bytes);
    fake_join(&call.thread);
    HWS_CHECK(call.status == HWS_LOST_STATUS);
    close_session();
    open_session(); /* after LEFT */
    leave_for(name);
    HWS_CHECK(take_left()[0] == '\0');
    start_call(&call);
    fake_put(HWS_CONTROL_LEAVE, 0, 0, payload, bytes);
    fake_join(&call.thread);
    HWS_CHECK(call.status == HWS_LOST_STATUS);
    close_session();
    fake_broker_stop(&there);
}

static void shouldEndWithTheProcess(void) {
    fake_broker_t silent, parks;
    fake_broker_start(&silent, FAKE_IS_SILENT, NULL);
    fake_broker_start(&parks, FAKE_PARKS, NULL);
    open_session(); /* in the handshake */
    leave_for(silent.name);
    fake_broker_await(&silent, &silent.arrived, 1);
    close_session();
    open_session(); /* while it waits for quiet */
    call_t call, held;
    begin_call(&call);
    put_leave(parks.name);
    await_hold(HWS_HOLD_NEW);
    start_call(&held);
    hws_channel_close(HWS_STATUS_DEINITIALIZED);
    fake_join(&call.thread);
    fake_join(&held.thread);
    HWS_CHECK(call.status == HWS_STATUS_DEINITIALIZED && held.status == HWS_STATUS_DEINITIALIZED);
    close_session();
    for (int ends = 0; ends < 2; ends++) {
        open_session(); /* while it waits for the decision, also when only the new connection is left */
        leave_for(parks.name);
        HWS_CHECK(take_left()[0] == '\0');
        if (ends) {
            shutdown(fake_fd, SHUT_RDWR);
            nap();
        }
        start_call(&held);
        hws_channel_close(HWS_STATUS_DEINITIALIZED);
        fake_join(&held.thread);
        HWS_CHECK(held.status == HWS_STATUS_DEINITIALIZED && atomic_load(&fake_failed_status) == 0);
        close_session();
    }
    fake_broker_stop(&silent);
    fake_broker_stop(&parks);
}

#ifndef __SANITIZE_THREAD__ /* the thread sanitizer does not follow forks */
static void shouldLeaveTheMoveToTheParentOfAFork(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    leave_for(there.name);
    const int old = fake_fd, fd = connection_of(&there, 0);
    HWS_CHECK(take_left()[0] == '\0');
    const int ends[2] = {hws_channel.carrier->ops->descriptor(hws_channel.carrier),
                         hws_channel.next_carrier->ops->descriptor(hws_channel.next_carrier)};
    HWS_CHECK(pthread_mutex_lock(&hws_channel.send_lock) == 0); /* as a thread of the parent may have it */
    const pid_t child = fork();
    HWS_CHECK(child >= 0);
    if (child == 0) {
        hws_channel_abandon_in_child();
        hws_stripe_abandon_in_child();
        call_t call = {.status = -1};
        make_call(&call);
        const bool is_closed = fcntl(ends[0], F_GETFD) == -1 && fcntl(ends[1], F_GETFD) == -1;
        uint64_t value;
        const hws_target_t target = {.base = &value, .width_bytes = sizeof value, .rows = 1, .slices = 1};
        const bool is_refused = call.status == HWS_STATUS_NOT_INITIALIZED
            && hws_channel_expect_callback(HWS_LANE_PROGRAM) == HWS_STATUS_NOT_INITIALIZED
            && hws_read(FAKE_OPCODE, &value, 8, &target, false) == HWS_STATUS_NOT_INITIALIZED;
        _exit(is_closed && is_refused ? 0 : 1);
    }
    int outcome = -1;
    HWS_CHECK(waitpid(child, &outcome, 0) == child && outcome == 0);
    HWS_CHECK(pthread_mutex_unlock(&hws_channel.send_lock) == 0);
    put_resumed(fd);
    fake_fd = fd;
    round_trip();
    expect_end(old);
    close(old);
    close_session();
    fake_broker_stop(&there);
}
#endif

int main(void) {
    HWS_RUN(shouldGoOnWhenTheOldConnectionEndsFirst);
    HWS_RUN(shouldStayWhenTheNewConnectionEndsOrSendsAnotherRecord);
    HWS_RUN(shouldLoseTheSessionWhenBothConnectionsEnd);
    HWS_RUN(shouldRefuseMalformedOrUnexpectedRecords);
    HWS_RUN(shouldRefuseLeaveWithoutFollows);
    HWS_RUN(shouldRefuseASecondLeave);
    HWS_RUN(shouldEndWithTheProcess);
#ifndef __SANITIZE_THREAD__
    HWS_RUN(shouldLeaveTheMoveToTheParentOfAFork);
#endif
    return 0;
}
