package io.hawser.broker.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.model.StartException;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WebDoorTest {
    private static final InetSocketAddress HERE = new InetSocketAddress(InetAddress.ofLiteral("192.0.2.200"), 7655);

    @TempDir
    Path folder;
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    private WebDoor door(Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(Map.of("hawser.http.max-connections", "6",
            "hawser.http.reserved-connections", "4", "hawser.http.max-per-peer", "2"));
        all.putAll(settings);
        return new WebDoor(TestBroker.config(folder, "normal", all), registry);
    }

    private static Places.Place enter(WebDoor door, String peer) {
        return door.enter(new InetSocketAddress(InetAddress.ofLiteral(peer), 4711), HERE);
    }

    private double refused(WebRefusal refusal) {
        return registry.get("hawser.http.refused.connections").tag("reason", refusal.label()).counter().count();
    }

    @Test
    void shouldKeepPlacesForPeersThatLoggedIn() {
        WebDoor door = door(Map.of());
        door.noteLogin("192.0.2.9");
        assertNotNull(enter(door, "192.0.2.1"));
        assertNotNull(enter(door, "192.0.2.1"));
        assertNull(enter(door, "192.0.2.1"));
        assertEquals(1, refused(WebRefusal.PEER));
        assertNull(enter(door, "192.0.2.2"), "the other places must stay reserved");
        assertEquals(1, refused(WebRefusal.PLACES));
        assertNotNull(enter(door, "192.0.2.9"));
    }

    @Test
    void shouldKeepPlacesForTheLoopbackInterface() {
        WebDoor door = door(Map.of());
        door.noteLogin("192.0.2.9");
        while (enter(door, "192.0.2.1") != null || enter(door, "192.0.2.9") != null) {
            assertEquals(0, refused(WebRefusal.PLACES));
        }
        assertNotNull(enter(door, "127.0.0.1"));
        assertNotNull(enter(door, "::1"));
    }

    @Test
    void shouldForgetALoginAfterItsTime() {
        WebDoor door = door(Map.of("hawser.http.known-peer-time", "0s", "hawser.http.max-connections", "2",
            "hawser.http.reserved-connections", "1"));
        assertNotNull(enter(door, "192.0.2.1"));
        door.noteLogin("192.0.2.9");
        assertNull(enter(door, "192.0.2.9"));
        WebDoor patient = door(Map.of("hawser.http.max-connections", "4", "hawser.http.reserved-connections", "3"));
        patient.noteLogin("192.0.2.9");
        assertNotNull(enter(patient, "192.0.2.1"));
        assertNull(enter(patient, "192.0.2.1"));
        assertNotNull(enter(patient, "192.0.2.9"));
    }

    @Test
    void shouldCountAnIpv6NetworkAsOnePeer() {
        WebDoor door = door(Map.of("hawser.http.max-connections", "20"));
        Places.Place first = enter(door, "2001:db8:0:1::1");
        assertNotNull(first);
        assertNotNull(enter(door, "2001:db8:0:1:ffff::2"));
        assertNull(enter(door, "2001:db8:0:1::3"));
        assertNotNull(enter(door, "2001:db8:0:2::1"));
        first.release();
        assertNotNull(enter(door, "2001:db8:0:1::3"));
    }

    @Test
    void shouldRefuseLimitsThatMakeNoSense() {
        for (String[] bad : new String[][] {{"max-per-peer", "0"}, {"max-head-fields", "0"}, {"max-head-size", "0"},
            {"max-pipelined", "0"}, {"max-head-size", "2G"}, {"max-failed-logins", "0"}, {"max-connections", "0"},
            {"max-failed-logins", "1000001"}, {"request-timeout", "0s"}, {"request-timeout", "25d"},
            {"known-peer-time", "200000d"}, {"login-idle", "0s"}, {"login-life", "0s"}, {"reserved-connections", "6"},
            {"reserved-connections", "-1"}}) {
            StartException refused = assertThrows(StartException.class,
                () -> door(Map.of("hawser.http." + bad[0], bad[1])), bad[0]);
            assertTrue(refused.getMessage().contains("hawser.http." + bad[0]), refused.getMessage());
        }
    }
}
