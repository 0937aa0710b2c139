package io.hawser.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.NativeLibrary;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class NativeLibraryTest {
    private static final String LIBC = "libc.so.6";

    @Test
    void shouldCallFunctionThatLibraryHas() throws Throwable {
        assertEquals(3, (int) NativeLibrary.open(LIBC).find("abs", 801, ValueLayout.JAVA_INT).invokeExact(-3));
    }

    @Test
    void shouldAnswerForFunctionThatLibraryLacks() throws Throwable {
        NativeLibrary libc = NativeLibrary.open(LIBC);
        assertFalse(libc.has("cuFromTheFuture"));
        assertEquals(801, (int) libc.find("cuFromTheFuture", 801, ValueLayout.JAVA_LONG).invokeExact(1L));
    }

    @Test
    void shouldNameLibraryThatIsMissing() {
        assertFalse(NativeLibrary.isPresent("libhawser-missing.so.1"));
        assertTrue(NativeLibrary.isPresent(LIBC));
        assertTrue(assertThrows(IllegalStateException.class, () -> NativeLibrary.open("libhawser-missing.so.1"))
            .getMessage().contains("libhawser-missing.so.1"));
    }
}
