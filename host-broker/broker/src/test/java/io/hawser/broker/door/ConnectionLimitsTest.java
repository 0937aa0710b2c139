package io.hawser.broker.door;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.model.PeerName;
import java.net.InetAddress;
import org.junit.jupiter.api.Test;

class ConnectionLimitsTest {
    private static String name(String address) {
        return PeerName.of(InetAddress.ofLiteral(address));
    }

    @Test
    void shouldCallAnIpv6NetworkOnePeer() {
        assertEquals(name("2001:db8:0:1::1"), name("2001:db8:0:1:ffff:ffff:ffff:ffff"));
        assertNotEquals(name("2001:db8:0:1::1"), name("2001:db8:0:2::1"));
        assertNotEquals(name("192.0.2.1"), name("192.0.2.2"));
        assertEquals(name("192.0.2.1"), name("::ffff:192.0.2.1"));
    }

    @Test
    void shouldCountAnIpv6NetworkAtTheGuestsDoor() {
        ConnectionLimits limits = new ConnectionLimits(100, 2);
        for (int i = 1; i <= 3; i++) {
            limits.enter(name("2001:db8::" + i));
        }
        assertEquals("connections of one peer must be at most 2", limits.excess(name("2001:db8::4")));
    }

    @Test
    void shouldTakeNoHalfOpenPlaceForRefusedConnectionsOfOnePeer() {
        ConnectionLimits limits = new ConnectionLimits(4, 2);
        ConnectionLimits.Place[] places = new ConnectionLimits.Place[20];
        for (int i = 0; i < places.length; i++) {
            places[i] = limits.enter("attacker");
            if (i >= 2) {
                assertNotNull(limits.excess("attacker"));
                places[i].linger();
            }
        }
        assertTrue(limits.isFlooded("attacker"));
        ConnectionLimits.Place other = limits.enter("other");
        assertNull(limits.excess("other"));
        assertFalse(limits.isFlooded("other"));
        other.release();
        for (ConnectionLimits.Place place : places) {
            place.release();
            place.release();
        }
        assertEquals(0, limits.halfOpen());
        assertEquals(0, limits.peers());
        limits.enter("attacker");
        assertFalse(limits.isFlooded("attacker"));
    }
}
