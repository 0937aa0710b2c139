package io.hawser.shm.rdma;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class RdmaOptionsTest {
    @Test
    void shouldReadWhatItHasWritten() {
        for (RdmaOptions options : List.of(RdmaOptions.DEFAULT, new RdmaOptions("mlx5_0", 2, 3, 65_535, 15, 255, 8000),
            new RdmaOptions("rxe-eth0.7", 255, 255, 0, 0, 0, 600_000))) {
            assertEquals(options, RdmaOptions.parse(options.text()));
        }
    }

    @Test
    void shouldRefuseOtherForms() {
        for (String text : List.of("", ",,,,,,", "a,0,-1,0,0,0", "a,0,-1,0,0,0,0,0", "a,x,-1,0,0,0,0",
            "a b,0,-1,0,0,0,0",
            "../a,0,-1,0,0,0,0", "a,-1,-1,0,0,0,0", "a,256,-1,0,0,0,0", "a,0,-2,0,0,0,0", "a,0,256,0,0,0,0",
            "a,0,-1,65536,0,0,0", "a,0,-1,0,16,0,0", "a,0,-1,0,0,256,0", "a,0,-1,0,0,0,600001", "a,0,-1,0,0,0,-1",
            "a".repeat(64) + ",0,-1,0,0,0,0")) {
            refusal(text);
        }
    }

    @Test
    void shouldNameTheOptionOutsideItsRange() {
        assertNames("a,0,-1,0,16,0,0", "service-level=16");
        assertNames("a,0,256,0,0,0,0", "gid-index=256 lowest=-1 highest=255");
    }

    private static void assertNames(String text, String named) {
        String refusal = refusal(text);
        assertTrue(refusal.contains(named), refusal);
    }

    private static String refusal(String text) {
        return assertThrows(IllegalArgumentException.class, () -> RdmaOptions.parse(text), text).getMessage();
    }
}
