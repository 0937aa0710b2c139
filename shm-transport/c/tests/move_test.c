/* Sessions that follow their vGPU to another broker: calls around the move, and why a session stays. */
#include "moving_session.h"

#include <semaphore.h>

static sem_t is_in_callback, may_return;

static void shouldGoOnAtTheOtherBroker(void) {
    fake_broker_t here, there;
    fake_broker_start(&here, FAKE_PARKS, NULL);
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    const uint64_t payload = 1;
    uint64_t released = 0;
    HWS_CHECK(hws_send(FAKE_OPCODE, HWS_FLAG_CREDITED, &payload, sizeof payload, NULL, 0) == 0);
    fake_take(scratch, sizeof scratch);
    hws_statistics_t before, after;
    hws_channel_statistics(&before);
    const int old = fake_fd;
    leave_for(there.name);
    const int fd = connection_of(&there, 0);
    HWS_CHECK(take_left()[0] == '\0');
    call_t held;
    start_call(&held);
    /* The worker ends its work: the last call is not yet paid back. */
    const unsigned events = atomic_load(&reached);
    released += HWS_HEADER_BYTES + 8;
    fake_put(HWS_CONTROL_CREDIT, 0, 0, &released, sizeof released);
    fake_put(HWS_CONTROL_REACHED, 5, 0, &payload, sizeof payload);
    while (atomic_load(&reached) == events) {
        nap();
    }
    HWS_CHECK(held.status == -1);
    put_resumed(fd);
    fake_fd = fd;
    held.header = fake_take(scratch, sizeof scratch); /* the sequence goes on: fake_take checks it */
    end_call(&held);
    expect_end(old);
    close(old);
    HWS_CHECK(hws_send(FAKE_OPCODE, HWS_FLAG_CREDITED, &payload, sizeof payload, NULL, 0) == 0);
    fake_take(scratch, sizeof scratch);
    released += HWS_HEADER_BYTES + 8;
    fake_put(HWS_CONTROL_CREDIT, 0, 0, &released, sizeof released);
    round_trip();
    HWS_CHECK(atomic_load(&hws_channel.credit_released_bytes) == released);
    hws_channel_statistics(&after);
    HWS_CHECK(after.calls == before.calls + 4 && after.bytes_out > before.bytes_out
              && after.bytes_in > before.bytes_in);
    HWS_CHECK(strcmp(after.carrier, "tcp") == 0);
    move_to(&here, 0); /* and back */
    move_to(&there, 1);
    HWS_CHECK(hws_channel_status() == 0);
    close_session();
    fake_broker_stop(&here);
    fake_broker_stop(&there);
}

static void shouldLetOpenCallsEndAndHoldNewOnes(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    call_t open[3], held;
    for (int i = 0; i < 3; i++) {
        begin_call(&open[i]);
    }
    put_leave(there.name);
    const int old = fake_fd, fd = connection_of(&there, 0);
    await_hold(HWS_HOLD_NEW);
    start_call(&held);
    for (int i = 2; i >= 0; i--) {
        end_call(&open[i]);
    }
    HWS_CHECK(take_left()[0] == '\0'); /* not the held call */
    put_resumed(fd);
    fake_fd = fd;
    held.header = fake_take(scratch, sizeof scratch);
    end_call(&held);
    expect_end(old);
    close(old);
    close_session();
    fake_broker_stop(&there);
}

/* What the old worker has sent must not get lost, though RESUMED comes by another connection. */
static void shouldDeliverAllThatTheOldWorkerHasSent(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    const uint64_t event = 1;
    for (unsigned i = 0; i < 30; i++) {
        const int old = fake_fd;
        const unsigned before = atomic_load(&reached);
        leave_for(there.name);
        const int fd = connection_of(&there, i);
        HWS_CHECK(take_left()[0] == '\0');
        for (int k = 0; k < 5; k++) {
            fake_put(HWS_CONTROL_REACHED, 5, 0, &event, sizeof event);
        }
        put_resumed(fd);
        fake_fd = fd;
        round_trip();
        HWS_CHECK(atomic_load(&reached) == before + 5);
        close(old);
    }
    close_session();
    fake_broker_stop(&there);
}

/* A connection of the session that looks as the test wants. */
static const hws_carrier_ops_t *plain_ops;
static hws_carrier_ops_t watched_ops;
static fake_broker_t *last_broker;
static _Atomic bool sends_last, stops_look;
static _Atomic unsigned looks; /* before LEFT */

static void put_last_words(void) {
    const uint64_t event = 1;
    for (int i = 0; i < 5; i++) {
        fake_put(HWS_CONTROL_REACHED, 5, 0, &event, sizeof event);
    }
    put_resumed(connection_of(last_broker, 0));
}

static bool has_sleeper(void) {
    pthread_mutex_lock(&hws_channel.receive_lock);
    const hws_waiter_t *first = hws_channel.first;
    const bool sleeps = first != NULL && atomic_load(&first->signal) == HWS_SIGNAL_ASLEEP;
    pthread_mutex_unlock(&hws_channel.receive_lock);
    return sleeps;
}

static bool look(hws_carrier_t *carrier) {
    const bool is_ready = plain_ops->is_ready(carrier);
    atomic_fetch_add(&looks, hws_channel.has_left ? 0 : 1);
    if (!is_ready && hws_channel.has_left && atomic_exchange(&sends_last, false)) {
        put_last_words(); /* after this look, and before the one at the other connection */
    }
    if (!is_ready && !hws_channel.has_left && atomic_load(&stops_look)) {
        while (!has_sleeper()) {
            nap();
        }
        atomic_store(&stops_look, false);
    }
    return is_ready;
}

static void open_watched_session(void) {
    hws_carrier_t *carrier = fake_connect_tcp();
    plain_ops = carrier->ops;
    watched_ops = *plain_ops;
    watched_ops.is_ready = look;
    carrier->ops->destroy(carrier);
    close(fake_fd);
    session_ops = &watched_ops;
    open_session();
    session_ops = NULL;
}

static void shouldDeliverLastWordsThatComeWithRESUMED(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    last_broker = &there;
    open_watched_session();
    const int old = fake_fd;
    const unsigned before = atomic_load(&reached);
    atomic_store(&sends_last, true);
    leave_for(there.name);
    const int fd = connection_of(&there, 0);
    HWS_CHECK(take_left()[0] == '\0');
    expect_end(old);
    close(old);
    fake_fd = fd;
    round_trip();
    HWS_CHECK(atomic_load(&reached) == before + 5);
    close_session();
    fake_broker_stop(&there);
}

static void await_reader(void) {
    bool reads = false;
    while (!reads) {
        pthread_mutex_lock(&hws_channel.receive_lock);
        reads = hws_channel.leader;
        pthread_mutex_unlock(&hws_channel.receive_lock);
        if (!reads) {
            nap();
        }
    }
}

/* The background reader looks while a call begins to wait, and must leave the role to it. */
static void shouldReadForACallThatBeginsDuringALook(void) {
    atomic_store(&looks, 0);
    atomic_store(&stops_look, true);
    open_watched_session();
    while (atomic_load(&looks) == 0) {
        nap();
    }
    call_t call;
    begin_call(&call);
    while (atomic_load(&stops_look)) {
        nap();
    }
    await_reader();
    HWS_CHECK(atomic_load(&looks) == 1); /* the caller reads, not the next look */
    end_call(&call);
    close_session();
}

static _Atomic bool waits_for_hold;

static void begin_work(void) {
    if (atomic_exchange(&waits_for_hold, false)) {
        await_hold(HWS_HOLD_NEW);
    }
}

static void end_work(void) {
}

/* A copy counts as under way before its call is sent, so the call must not be held. */
static void shouldLetTheCallOfAnAsynchronousCopyPass(void) {
    static const hws_work_hooks_t hooks = {.begin = begin_work, .end = end_work};
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    hws_channel_watch_work(&hooks);
    uint64_t memory = 0;
    const uint64_t payload = 1, value = 12;
    const hws_target_t target = {.base = &memory, .width_bytes = sizeof memory, .rows = 1, .slices = 1};
    atomic_store(&waits_for_hold, true);
    put_leave(there.name);
    HWS_CHECK(hws_read(FAKE_OPCODE, &payload, sizeof payload, &target, false) == 0);
    const hws_record_header_t copy = fake_take(scratch, sizeof scratch);
    HWS_CHECK(copy.opcode == FAKE_OPCODE);
    fake_data(copy.sequence, 0, &value, sizeof value);
    fake_reply(&copy, 0, NULL, 0);
    HWS_CHECK(take_left()[0] == '\0');
    fake_put(HWS_CONTROL_STAY, 0, 0, NULL, 0);
    round_trip();
    HWS_CHECK(memory == value);
    close_session();
    fake_broker_stop(&there);
}

enum { CALLERS = 4, CALLS = 3000, FINISHED = FAKE_OPCODE + 1, COPY = FAKE_OPCODE + 2 };

static void make_many_calls(void *argument) {
    (void) argument;
    static const uint8_t bulk[100000];
    for (uint64_t i = 0; i < CALLS; i++) {
        uint64_t reply = 0;
        uint32_t bytes = 0;
        HWS_CHECK(hws_call(FAKE_OPCODE, 0, &i, sizeof i, NULL, 0, &reply, sizeof reply, &bytes) == 0 && reply == i);
        HWS_CHECK(hws_send(FAKE_OPCODE, HWS_FLAG_CREDITED, &i, sizeof i, bulk, i % 7 == 0 ? sizeof bulk : 0) == 0);
        if (i % 5 == 0) {
            uint64_t value = 0;
            const hws_target_t target = {.base = &value, .width_bytes = sizeof value, .rows = 1, .slices = 1};
            HWS_CHECK(hws_read(COPY, &i, sizeof i, &target, i % 10 == 0) == 0);
            hws_channel_wait_for_target(&value, sizeof value);
            HWS_CHECK(value == i);
        }
    }
    HWS_CHECK(hws_send(FINISHED, 0, NULL, 0, NULL, 0) == 0);
}

/* One worker serves all, at two brokers in turn, and every third time the session stays. */
static void shouldMoveAgainAndAgainWhileThreadsCall(void) {
    fake_broker_t brokers[2];
    unsigned parked[2] = {0, 0}, target = 0, moves = 0, stays = 0, attempts = 0, served = 0, finished = 0;
    uint64_t released = 0;
    for (int i = 0; i < 2; i++) {
        fake_broker_start(&brokers[i], FAKE_PARKS, NULL);
    }
    open_session();
    fake_thread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        fake_start(&threads[i], make_many_calls, NULL);
    }
    bool asked = false;
    while (finished < CALLERS || asked) {
        const hws_record_header_t header = fake_take(scratch, sizeof scratch);
        if (header.opcode == FINISHED) {
            finished++;
        } else if (header.opcode == HWS_CONTROL_LEFT) {
            asked = false;
            const int fd = connection_of(&brokers[target], parked[target]);
            parked[target]++;
            if (reason_of(&header)[0] != '\0') {
                close(fd); /* a machine that is busy */
            } else if (attempts % 3 == 0) {
                fake_put(HWS_CONTROL_STAY, 0, 0, NULL, 0);
                expect_end(fd);
                close(fd);
                stays++;
            } else {
                put_resumed(fd);
                close(fake_fd);
                fake_fd = fd;
                moves++;
            }
        } else if (header.flags & HWS_FLAG_REPLY) {
            uint64_t value;
            memcpy(&value, scratch, sizeof value);
            if (header.opcode == COPY) {
                fake_data(header.sequence, 0, &value, sizeof value);
            }
            fake_reply(&header, 0, &value, header.opcode == COPY ? 0 : sizeof value);
        } else if (header.flags & HWS_FLAG_CREDITED) {
            released += (uint64_t) header.length_bytes;
            fake_put(HWS_CONTROL_CREDIT, 0, 0, &released, sizeof released);
        }
        if (++served % 400 == 0 && !asked && finished == 0 && parked[0] + parked[1] < FAKE_CONNECTIONS) {
            target = ++attempts % 2;
            put_leave(brokers[target].name);
            asked = true;
        }
    }
    for (int i = 0; i < CALLERS; i++) {
        fake_join(&threads[i]);
    }
    fprintf(stderr, "%u moves, %u stays of %u\n", moves, stays, attempts);
    HWS_CHECK(moves > 3 && stays > 1 && hws_channel_status() == 0);
    close_session();
    fake_broker_stop(&brokers[0]);
    fake_broker_stop(&brokers[1]);
}

static void shouldStayWhenTheWorkerSaysSo(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    leave_for(there.name);
    const int fd = connection_of(&there, 0);
    HWS_CHECK(take_left()[0] == '\0');
    call_t held;
    start_call(&held);
    fake_put(HWS_CONTROL_STAY, 0, 0, NULL, 0);
    held.header = fake_take(scratch, sizeof scratch);
    /* The next attempt may come at once: before the call's record it could hold that call again. */
    put_leave(there.name);
    end_call(&held);
    expect_end(fd);
    const int old = fake_fd, next = connection_of(&there, 1);
    HWS_CHECK(take_left()[0] == '\0');
    put_resumed(next);
    fake_fd = next;
    round_trip();
    expect_end(old);
    close(old);
    close_session();
    fake_broker_stop(&there);
}

/* The session stays, for a reason with this text, and goes on. */
static void expect_refusal_to_leave(const char *address, const char *text) {
    leave_for(address);
    const char *reason = take_left();
    fprintf(stderr, "    %s\n", reason);
    HWS_CHECK(strstr(reason, text) != NULL && strlen(reason) <= 400);
    for (const char *each = reason; *each != '\0'; each++) {
        HWS_CHECK(*each >= ' ' && *each <= '~');
    }
    round_trip();
}

static void shouldStayWhenTheOtherBrokerCannotBeReached(void) {
    fake_broker_t absent;
    fake_broker_close_door(&absent);
    open_session();
    expect_refusal_to_leave(absent.name, "does not reach the broker 127.0.0.1");
    const char *malformed[] = {"a",         "a:",    ":1",      "a:0",   "a:65536", "a:01",
                               "tls://a:1", "a b:1", "a:1,b:1", "[::1]", "-a:1",    "a\033[2J:1"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        expect_refusal_to_leave(malformed[i], "does not read host:port");
    }
    close_session();
    close(absent.listener);
}

static void shouldStayWhenTheOtherBrokerDoesNotPark(void) {
    char flood[480];
    memset(flood, 'x', sizeof flood - 1);
    flood[sizeof flood - 1] = '\0';
    const struct {
        fake_manner_t manner;
        const char *text, *reason;
    } cases[] = {
        {FAKE_REFUSES, "no such session", "no such session"},
        {FAKE_REFUSES, "\033[2J\xff\r\n", "?[2J???"},
        {FAKE_REFUSES, flood, "xxxx"},
        {FAKE_SENDS_ON, "gpu3.example:7654", "must take its further connections"},
        {FAKE_KNOWS_NO_KEY, NULL, "must prove that it has the token"},
        {FAKE_ANSWERS_JOINED, NULL, "the broker's answer to RESUME is invalid"},
        {FAKE_ANSWERS_JOINED, "bare", "the broker's answer to RESUME is invalid"},
        {FAKE_CLOSES, NULL, "closed the connection"},
    };
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    open_session();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_broker_t there;
        fake_broker_start(&there, cases[i].manner, cases[i].text);
        expect_refusal_to_leave(there.name, cases[i].reason);
        HWS_CHECK(there.arrived == 1);
        fake_broker_stop(&there);
    }
    /* A worker cannot make its guest knock at doors without a pause. */
    clock_gettime(CLOCK_MONOTONIC, &end);
    HWS_CHECK(end.tv_sec - begin.tv_sec >= 2);
    close_session();
}

static void shouldStayWhileACallHasNoReply(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    call_t call, held;
    begin_call(&call);
    put_leave(there.name);
    const int fd = connection_of(&there, 0);
    await_hold(HWS_HOLD_NEW);
    start_call(&held);
    /* The held call goes out, and so does LEFT. Either may be first. */
    bool has_left = false, has_called = false;
    while (!has_left || !has_called) {
        const hws_record_header_t header = fake_take(scratch, sizeof scratch);
        if (header.opcode == HWS_CONTROL_LEFT) {
            HWS_CHECK(strstr(reason_of(&header), "not quiet after 1000 ms: a call waits for its reply") != NULL);
            has_left = true;
        } else {
            held.header = header;
            has_called = true;
        }
    }
    expect_end(fd);
    end_call(&held);
    end_call(&call);
    /* A copy that nobody waits for is under way as well. */
    uint64_t memory = 0;
    const hws_target_t target = {.base = &memory, .width_bytes = sizeof memory, .rows = 1, .slices = 1};
    const uint64_t payload = 1, value = 12;
    HWS_CHECK(hws_read(FAKE_OPCODE, &payload, sizeof payload, &target, false) == 0);
    const hws_record_header_t copy = fake_take(scratch, sizeof scratch);
    put_leave(there.name);
    HWS_CHECK(strstr(take_left(), "an asynchronous copy is under way") != NULL);
    fake_data(copy.sequence, 0, &value, sizeof value);
    fake_reply(&copy, 0, NULL, 0);
    hws_channel_wait_for_target(&memory, sizeof memory);
    HWS_CHECK(memory == value);
    move_to(&there, 2);
    close_session();
    fake_broker_stop(&there);
}

static void wait_in_callback(uint64_t id, int status) {
    (void) id, (void) status;
    HWS_CHECK(sem_post(&is_in_callback) == 0);
    while (sem_wait(&may_return) != 0) {
    }
}

static void expect_callback_in(hws_lane_t lane, uint64_t id) {
    const uint64_t payload[2] = {id, 0};
    HWS_CHECK(hws_channel_expect_callback(lane) == 0);
    HWS_CHECK(hws_send(FAKE_OPCODE, 0, payload, 8, NULL, 0) == 0);
    fake_take(scratch, sizeof scratch);
}

static void put_callback(uint64_t id) {
    const uint64_t payload[2] = {id, 0};
    fake_put(HWS_CONTROL_CALLBACK, 0, 0, payload, sizeof payload);
}

static void shouldStayWhileAHostFunctionRuns(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    fake_callback = wait_in_callback;
    expect_callback_in(HWS_LANE_PROGRAM, 4);
    put_leave(there.name); /* the stream has not reached it yet */
    HWS_CHECK(strstr(take_left(), "a host function is pending") != NULL);
    put_callback(4);
    while (sem_wait(&is_in_callback) != 0) {
    }
    leave_for(there.name);
    HWS_CHECK(strstr(take_left(), "a host function is pending") != NULL);
    /* One that ends in time delays the move. */
    leave_for(there.name);
    await_hold(HWS_HOLD_NEW);
    HWS_CHECK(sem_post(&may_return) == 0);
    HWS_CHECK(fake_take(scratch, sizeof scratch).opcode == HWS_CONTROL_CALLBACK_DONE);
    const int old = fake_fd, fd = connection_of(&there, 2);
    HWS_CHECK(take_left()[0] == '\0');
    put_resumed(fd);
    fake_fd = fd;
    round_trip();
    expect_end(old);
    close(old);
    close_session();
    fake_broker_stop(&there);
}

static void call_in_callback(uint64_t id, int status) {
    (void) status;
    uint64_t reply = 0;
    uint32_t bytes = 0;
    HWS_CHECK(hws_call(FAKE_OPCODE, 0, &id, sizeof id, NULL, 0, &reply, sizeof reply, &bytes) == 0 && reply == 5);
    HWS_CHECK(hws_send(FAKE_OPCODE, 0, &id, sizeof id, NULL, 0) == 0);
}

/* The worker waits for the bytes of a copy, and the move for the copy: its calls must pass. */
static void shouldLetTheCallsOfCallbacksPass(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    fake_callback = call_in_callback;
    expect_callback_in(HWS_LANE_COPIES, 4 | HWS_CALLBACK_COPY_BIT);
    leave_for(there.name);
    await_hold(HWS_HOLD_NEW);
    put_callback(4 | HWS_CALLBACK_COPY_BIT);
    const hws_record_header_t call = fake_take(scratch, sizeof scratch);
    const uint64_t reply = 5;
    fake_reply(&call, 0, &reply, sizeof reply);
    fake_take(scratch, sizeof scratch);
    HWS_CHECK(fake_take(scratch, sizeof scratch).opcode == HWS_CONTROL_CALLBACK_DONE);
    HWS_CHECK(take_left()[0] == '\0');
    fake_put(HWS_CONTROL_STAY, 0, 0, NULL, 0);
    round_trip();
    close_session();
    fake_broker_stop(&there);
}

/* A thread that has announced a callback is about to send its call. */
static void shouldLetAnAnnouncedCallPass(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    fake_callback = wait_in_callback;
    HWS_CHECK(sem_post(&may_return) == 0);
    HWS_CHECK(hws_channel_expect_callback(HWS_LANE_PROGRAM) == 0);
    put_leave(there.name);
    await_hold(HWS_HOLD_NEW);
    const uint64_t payload = 4;
    HWS_CHECK(hws_send(FAKE_OPCODE, 0, &payload, sizeof payload, NULL, 0) == 0);
    HWS_CHECK(fake_take(scratch, sizeof scratch).opcode == FAKE_OPCODE);
    put_callback(4);
    HWS_CHECK(fake_take(scratch, sizeof scratch).opcode == HWS_CONTROL_CALLBACK_DONE);
    while (sem_wait(&is_in_callback) != 0) {
    }
    HWS_CHECK(take_left()[0] == '\0');
    fake_put(HWS_CONTROL_STAY, 0, 0, NULL, 0);
    round_trip();
    close_session();
    fake_broker_stop(&there);
}

static void shouldTakeRESUMEDInPieces(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    leave_for(there.name);
    const int old = fake_fd, fd = connection_of(&there, 0);
    HWS_CHECK(take_left()[0] == '\0');
    const hws_record_header_t resumed = {.length_bytes = HWS_HEADER_BYTES, .opcode = HWS_CONTROL_RESUMED};
    HWS_CHECK(send(fd, &resumed, 7, MSG_NOSIGNAL) == 7);
    nap();
    HWS_CHECK(send(fd, (const char *) &resumed + 7, 25, MSG_NOSIGNAL) == 25);
    fake_fd = fd;
    round_trip();
    expect_end(old);
    close(old);
    close_session();
    fake_broker_stop(&there);
}

static void shouldFollowWhileTheProgramIsIdle(void) {
    fake_broker_t there;
    fake_broker_start(&there, FAKE_PARKS, NULL);
    open_session();
    const int old = fake_fd;
    put_leave(there.name); /* no thread of the program waits */
    const int fd = connection_of(&there, 0);
    HWS_CHECK(take_left()[0] == '\0');
    put_resumed(fd);
    expect_end(old);
    close(old);
    fake_fd = fd;
    put_leave(there.name); /* nor at the other broker */
    const int next = connection_of(&there, 1);
    HWS_CHECK(take_left()[0] == '\0');
    put_resumed(next);
    expect_end(fd);
    close(fd);
    fake_fd = next;
    round_trip();
    close_session();
    fake_broker_stop(&there);
}

int main(void) {
    HWS_CHECK(sem_init(&is_in_callback, 0, 0) == 0 && sem_init(&may_return, 0, 0) == 0);
    HWS_RUN(shouldGoOnAtTheOtherBroker);
    HWS_RUN(shouldLetOpenCallsEndAndHoldNewOnes);
    HWS_RUN(shouldDeliverAllThatTheOldWorkerHasSent);
    HWS_RUN(shouldDeliverLastWordsThatComeWithRESUMED);
    HWS_RUN(shouldReadForACallThatBeginsDuringALook);
    HWS_RUN(shouldLetTheCallOfAnAsynchronousCopyPass);
    HWS_RUN(shouldMoveAgainAndAgainWhileThreadsCall);
    HWS_RUN(shouldFollowWhileTheProgramIsIdle);
    HWS_RUN(shouldTakeRESUMEDInPieces);
    HWS_RUN(shouldStayWhenTheWorkerSaysSo);
    HWS_RUN(shouldStayWhenTheOtherBrokerCannotBeReached);
    HWS_RUN(shouldStayWhenTheOtherBrokerDoesNotPark);
    HWS_RUN(shouldStayWhileACallHasNoReply);
    HWS_RUN(shouldStayWhileAHostFunctionRuns);
    HWS_RUN(shouldLetTheCallsOfCallbacksPass);
    HWS_RUN(shouldLetAnAnnouncedCallPass);
    return 0;
}
