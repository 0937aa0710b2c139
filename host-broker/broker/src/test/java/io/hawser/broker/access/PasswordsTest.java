package io.hawser.broker.access;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class PasswordsTest {
    @Test
    void shouldMatchWhatWasStoredAndNothingElse() {
        char[] password = "correct horse ü".toCharArray();
        String stored = Passwords.store(password);
        assertTrue(Passwords.isStored(stored), stored);
        assertTrue(Passwords.matches(stored, password));
        assertFalse(Passwords.matches(stored, "correct horse u".toCharArray()));
        assertFalse(Passwords.matches(stored, new char[0]));
        assertNotEquals(stored, Passwords.store(password), "each hash must have its own salt");
    }

    @Test
    void shouldTakeAHashOfAnotherImplementation() {
        // A published test vector of bcrypt (jBCrypt's tests).
        assertTrue(Passwords.matches("$2a$06$.rCVZVOThsIa97pEDOxvGuRRgzG64bvtJ0938xuqzv18d3ZpQhstC",
            "abcdefghijklmnopqrstuvwxyz".toCharArray()));
    }

    @Test
    void shouldRefusePasswordsThatBcryptWouldCut() {
        assertThrows(IllegalArgumentException.class, () -> Passwords.store("x".repeat(73).toCharArray()));
        assertThrows(IllegalArgumentException.class, () -> Passwords.store("short".toCharArray()));
        assertThrows(IllegalArgumentException.class, () -> Passwords.store("with a \0 in it".toCharArray()));
        String stored = Passwords.store("x".repeat(72).toCharArray());
        assertTrue(Passwords.matches(stored, "x".repeat(72).toCharArray()));
        assertFalse(Passwords.matches(stored, "x".repeat(73).toCharArray()),
            "a longer password must not match after a cut to 72 bytes");
    }
}
