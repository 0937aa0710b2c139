package io.hawser.floors;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** The samples are test classes, so this test asks for the check of tests as well. */
class FloorsTest {
    private static final String ROOT = "io.hawser.floors.sample";

    private static String violations(Floors floors) {
        return assertThrows(AssertionError.class, floors::checkWithTests).getMessage();
    }

    @Test
    void shouldAllowUsesOfLowerFloors() {
        Floors.of(ROOT).floor("high").floor("low").floor("stray").checkWithTests();
    }

    @Test
    void shouldRejectUseOfAHigherFloor() {
        String violations = violations(Floors.of(ROOT).floor("low").floor("high").floor("stray"));
        assertTrue(violations.contains("low (floor 1) must not use high (floor 2)"), violations);
        assertTrue(violations.contains("Low.java"), violations);
        assertFalse(violations.contains("stray (floor 3) must not use"), violations);
    }

    @Test
    void shouldRejectUseOfTheSameFloor() {
        String violations = violations(Floors.of(ROOT).floor("high").floor("low", "stray"));
        assertTrue(violations.contains("stray (floor 2) must not use low (floor 2)"), violations);
    }

    @Test
    void shouldRejectPackageWithoutAFloor() {
        String violations = violations(Floors.of(ROOT).floor("high").floor("low"));
        assertTrue(violations.contains("a package must have a floor: package=io.hawser.floors.sample.stray"),
            violations);
    }

    @Test
    void shouldRejectFloorWithoutAClass() {
        String violations = violations(Floors.of(ROOT).floor("high").floor("low").floor("stray").floor("gone"));
        assertTrue(violations.contains("a floor's package must have a class: package=gone"), violations);
    }

    @Test
    void shouldRejectPackageOnTwoFloors() {
        Floors floors = Floors.of(ROOT).floor("low");
        assertThrows(IllegalArgumentException.class, () -> floors.floor("low"));
    }
}
