package io.hawser.hypervisor.door;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.netty.channel.Channel;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The order in which waiting connections are served. */
class PlacesTest {
    private final List<Channel> served = new ArrayList<>();
    private final Places places = new Places(2, 3, Duration.ofSeconds(22), served::add);

    private EmbeddedChannel[] enter(int count) {
        EmbeddedChannel[] guests = new EmbeddedChannel[count];
        for (int i = 0; i < count; i++) {
            guests[i] = new EmbeddedChannel();
            guests[i].freezeTime();
            places.enter(guests[i]);
        }
        return guests;
    }

    @Test
    void shouldServeWaitingConnectionsInOrderAsPlacesBecomeFree() {
        EmbeddedChannel[] guests = enter(5);
        assertEquals(List.of(guests[0], guests[1]), served);
        guests[2].close(); // it has not waited
        guests[1].close();
        assertEquals(List.of(guests[0], guests[1], guests[3]), served);
        guests[3].close();
        guests[0].close();
        assertEquals(List.of(guests[0], guests[1], guests[3], guests[4]), served);
        assertTrue(guests[4].isOpen());
        EmbeddedChannel next = enter(1)[0];
        assertEquals(next, served.getLast(), "a place is free");
    }

    @Test
    void shouldCloseConnectionsBeyondTheWaitingLimit() {
        EmbeddedChannel[] guests = enter(7);
        assertTrue(guests[4].isOpen());
        assertFalse(guests[5].isOpen());
        assertFalse(guests[6].isOpen());
        assertEquals(2, served.size());
    }

    @Test
    void shouldServeAConnectionThatHasWaitedForTheWholePatience() {
        EmbeddedChannel[] guests = enter(3);
        guests[2].advanceTimeBy(21, TimeUnit.SECONDS);
        guests[2].runScheduledPendingTasks();
        assertEquals(2, served.size());
        guests[2].advanceTimeBy(1, TimeUnit.SECONDS);
        guests[2].runScheduledPendingTasks();
        assertEquals(guests[2], served.getLast());
        guests[0].close();
        assertEquals(3, served.size(), "once");
    }

    @Test
    void shouldAnswerAHookThatHasWaitedForTooLong() {
        Api api = new Api(null, null, null, Duration.ofSeconds(1), 0);
        Api.Answer answer = api.answer(new Api.Request("POST", "/v1/hooks/qemu/prepare/begin", "<domain/>", 0,
            System.nanoTime() - TimeUnit.SECONDS.toNanos(2)), text -> {});
        assertEquals(503, answer.status());
        assertEquals(Map.of("error", "hawserd had too many requests to answer this one within 1 s: start "
            + "the domain again"),
            answer.body());
    }
}
