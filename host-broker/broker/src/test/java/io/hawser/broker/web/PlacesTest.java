package io.hawser.broker.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PlacesTest {
    private final Places places = new Places(16, 8, 4);
    private int peers;

    /** Enters as a new peer each time until no place is free, and returns the places. */
    private List<Places.Place> fill(Standing standing) {
        List<Places.Place> taken = new ArrayList<>();
        while (places.enter("peer " + peers++, standing) instanceof Places.Place place) {
            taken.add(place);
        }
        return taken;
    }

    @Test
    void shouldGiveOnePeerOnlySoManyPlaces() {
        List<Places.Place> taken = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            taken.add(assertInstanceOf(Places.Place.class, places.enter("a", Standing.TRUSTED)));
        }
        assertEquals(WebRefusal.PEER, assertInstanceOf(Places.Full.class, places.enter("a", Standing.TRUSTED))
            .refusal());
        assertInstanceOf(Places.Place.class, places.enter("b", Standing.STRANGER));
        taken.getFirst().release();
        taken.getFirst().release();
        assertInstanceOf(Places.Place.class, places.enter("a", Standing.TRUSTED));
        assertInstanceOf(Places.Full.class, places.enter("a", Standing.TRUSTED), "a second release must free no place");
    }

    @Test
    void shouldKeepReservedPlacesFromStrangers() {
        List<Places.Place> strangers = fill(Standing.STRANGER);
        assertEquals(8, strangers.size());
        assertEquals(WebRefusal.PLACES, assertInstanceOf(Places.Full.class, places.enter("x", Standing.STRANGER))
            .refusal());
        assertEquals(4, fill(Standing.LOCAL).size());
        assertEquals(4, fill(Standing.TRUSTED).size());
        assertEquals(16, places.count());
        strangers.getFirst().release();
        assertInstanceOf(Places.Place.class, places.enter("x", Standing.STRANGER));
    }

    @Test
    void shouldKeepHalfOfTheReservedPlacesFromUsersOfThisMachine() {
        assertEquals(12, fill(Standing.LOCAL).size());
        assertEquals(4, fill(Standing.TRUSTED).size());
    }

    @Test
    void shouldKeepHalfOfTheReservedPlacesFromTrustedPeers() {
        assertEquals(12, fill(Standing.TRUSTED).size());
        assertEquals(4, fill(Standing.LOCAL).size());
        assertEquals(0, fill(Standing.STRANGER).size());
    }
}
