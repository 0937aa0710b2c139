package io.hawser.broker.access;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Field;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

class LoginsTest {
    private final Logins logins = new Logins(Duration.ofHours(1), Duration.ofHours(2), System::nanoTime);

    /** The table of logins, as a copy of the broker's memory would show it. */
    private Map<?, ?> kept() throws ReflectiveOperationException {
        Field field = Logins.class.getDeclaredField("logins");
        field.setAccessible(true);
        return (Map<?, ?>) field.get(logins);
    }

    @Test
    void shouldKeepNoCookieThatCouldBeUsed() throws ReflectiveOperationException {
        String cookie = logins.make("ann", Role.VIEWER, "hash");
        assertTrue(logins.use(cookie).isPresent());
        assertEquals(1, kept().size());
        kept().forEach((key, login) -> {
            assertNotEquals(cookie, key);
            assertFalse(login.toString().contains(cookie));
            assertTrue(logins.use(key.toString()).isEmpty(), "the kept key must not work as a cookie");
        });
    }

    @Test
    void shouldMakeAnotherCookieEachTime() {
        assertNotEquals(logins.make("ann", Role.VIEWER, "hash"), logins.make("ann", Role.VIEWER, "hash"));
    }
}
