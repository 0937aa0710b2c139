package io.hawser.broker.access;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Optional;
import org.junit.jupiter.api.Test;

class RoleTest {
    @Test
    void shouldIncludeItselfAndTheRolesBelowItAndNoOther() {
        for (Role has : Role.values()) {
            for (Role needs : Role.values()) {
                assertEquals(has.ordinal() >= needs.ordinal(), has.includes(needs), has + " for " + needs);
            }
        }
        assertEquals(0, Role.VIEWER.ordinal());
        assertEquals(2, Role.ADMIN.ordinal());
    }

    @Test
    void shouldKnowItsLabelAndNoOther() {
        assertEquals(Optional.of(Role.OPERATOR), Role.of("operator"));
        for (String label : new String[] {"", "OPERATOR", "root", "operator "}) {
            assertEquals(Optional.empty(), Role.of(label), label);
        }
    }
}
