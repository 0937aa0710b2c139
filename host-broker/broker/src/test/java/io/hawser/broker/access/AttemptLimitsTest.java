package io.hawser.broker.access;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class AttemptLimitsTest {
    private static final String PEER = "192.0.2.7";
    private final AtomicLong nowNs = new AtomicLong();
    private final AttemptLimits limits = new AttemptLimits(2, Duration.ofMinutes(1), nowNs::get);

    /** Makes an attempt and ends it; returns false when the limits make it wait instead. */
    private boolean attempt(String peer, String name, boolean right) {
        AttemptLimits.Attempt attempt = limits.begin(peer, name);
        if (attempt.waitSeconds() == 0) {
            attempt.end(right);
            return true;
        }
        return false;
    }

    private int wrong(String peer, String name, int times) {
        int compared = 0;
        for (int i = 0; i < times; i++) {
            compared += attempt(peer, name, false) ? 1 : 0;
        }
        return compared;
    }

    private void pass(long seconds) {
        nowNs.addAndGet(TimeUnit.SECONDS.toNanos(seconds));
    }

    @Test
    void shouldCountByPeerOverAllNames() {
        assertTrue(attempt(PEER, "ann", false) && attempt(PEER, "bob", false));
        assertEquals(0, wrong(PEER, "eve", 1));
        assertEquals(0, wrong(PEER, "", 1));
        assertEquals(61, limits.lockedSeconds(PEER, "ann"));
        assertEquals(1, wrong("192.0.2.8", "eve", 1));
        pass(60);
        assertEquals(2, wrong(PEER, "eve", 5));
    }

    @Test
    void shouldCountByNameOverAllPeers() {
        for (int peer = 1; peer <= 4; peer++) {
            assertEquals(2, wrong("192.0.2." + peer, "ann", 5));
        }
        assertEquals(0, wrong("192.0.2.5", "ann", 1));
        assertEquals(1, wrong("192.0.2.5", "bob", 1));
        pass(60);
        assertEquals(1, wrong("192.0.2.5", "ann", 1));
    }

    @Test
    void shouldNotLetAPeerMakeANameWaitForOthers() {
        assertEquals(2, wrong(PEER, "ann", 1000));
        assertTrue(attempt("192.0.2.8", "ann", true));
    }

    @Test
    void shouldNotLetOthersLockAUserOutWhereHeHasLoggedIn() {
        assertTrue(attempt(PEER, "ann", true));
        for (int peer = 10; peer < 30; peer++) {
            wrong("192.0.2." + peer, "ann", 5);
        }
        assertTrue(limits.lockedSeconds("192.0.2.8", "ann") > 0, "the user must wait at an unfamiliar peer");
        assertTrue(attempt(PEER, "ann", true));
        assertEquals(2, wrong(PEER, "ann", 5), "a familiar peer must have its own count");
        pass(60);
        for (int peer = 10; peer < 30; peer++) {
            wrong("192.0.2." + peer, "ann", 5);
        }
        assertTrue(attempt(PEER, "ann", true));
        pass(TimeUnit.DAYS.toSeconds(1));
        for (int peer = 10; peer < 30; peer++) {
            wrong("192.0.2." + peer, "ann", 5);
        }
        assertTrue(limits.lockedSeconds(PEER, "ann") > 0, "after a day the peer must be unfamiliar again");
    }

    @Test
    void shouldForgetByASuccessItsOwnNameAtItsOwnPeerOnly() {
        wrong(PEER, "ann", 1);
        wrong(PEER, "bob", 1);
        wrong("192.0.2.8", "ann", 1);
        pass(TimeUnit.DAYS.toSeconds(2)); // the limits forget these failures
        wrong(PEER, "ann", 1);
        assertTrue(attempt(PEER, "bob", true));
        assertEquals(1, wrong(PEER, "ann", 5), "bob's success must not clear ann's failure");
        pass(60);
        for (int peer = 11; peer <= 13; peer++) {
            wrong("192.0.2." + peer, "ann", 2);
        }
        wrong("192.0.2.14", "ann", 1);
        assertTrue(attempt("192.0.2.14", "ann", true));
        assertEquals(2, wrong("192.0.2.15", "ann", 2), "the success must clear ann's failure at this peer");
        assertEquals(0, wrong("192.0.2.16", "ann", 1), "the success must not clear failures of other peers");
    }

    @Test
    void shouldReserveAnAttemptUntilItEnds() {
        List<AttemptLimits.Attempt> running = List.of(limits.begin(PEER, "ann"), limits.begin(PEER, "ann"));
        assertEquals(1, limits.begin(PEER, "ann").waitSeconds(), "the running attempts must take all places");
        assertEquals(0, limits.lockedSeconds(PEER, "ann"), "no attempt has failed");
        running.getFirst().withdraw();
        AttemptLimits.Attempt third = limits.begin(PEER, "ann");
        assertEquals(0, third.waitSeconds());
        running.getLast().end(false);
        third.end(false);
        assertEquals(61, limits.begin(PEER, "ann").waitSeconds());
    }

    @Test
    void shouldCountAnIpv6NetworkAsOnePeer() {
        assertTrue(attempt("2001:db8::1", "ann", false) && attempt("2001:db8::2", "bob", false));
        assertEquals(0, wrong("2001:db8::3", "eve", 1));
        assertEquals(1, wrong("2001:db8:0:1::3", "eve", 1));
    }

    @Test
    void shouldKeepItsTablesBoundedAndTheKeysThatWaitInThem() {
        wrong(PEER, "ann", 2);
        for (int i = 0; i < 20_000; i++) {
            wrong("10." + (i >> 16 & 255) + "." + (i >> 8 & 255) + "." + (i & 255), "user" + i, 1);
        }
        assertEquals(2 * 4096, limits.size());
        assertTrue(limits.lockedSeconds(PEER, "") > 0, "a flood of other keys must not free the waiting key");
        AttemptLimits another = new AttemptLimits(2, Duration.ofMinutes(1), nowNs::get);
        for (int i = 0; i < 100; i++) {
            another.begin("10.0.0." + i, "ann").end(true);
        }
        assertEquals(1, another.size(), "successful attempts must leave only the user's familiar peers");
        List<AttemptLimits.Attempt> first = new ArrayList<>();
        for (int i = 0; i < 9; i++) {
            first.add(another.begin("10.0.1." + i, "ann"));
        }
        assertEquals(8, first.stream().filter(attempt -> attempt.waitSeconds() == 0).count());
    }
}
