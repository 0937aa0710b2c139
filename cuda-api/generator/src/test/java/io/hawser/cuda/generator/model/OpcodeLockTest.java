package io.hawser.cuda.generator.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class OpcodeLockTest {
    private Library library;
    private String locked;

    @BeforeEach
    void read() throws IOException {
        library = new DescriptionReader(Source.classPath()).read().library("cuda");
        locked = Source.classPath().text("cuda/" + OpcodeLock.FILE);
    }

    @Test
    void shouldHoldEveryOpcodeOfTheShippedDescription() {
        OpcodeLock.parse(locked).check(library);
        assertEquals(locked, OpcodeLock.parse(locked).updated(library), "run " + OpcodeLock.COMMAND);
    }

    @Test
    void shouldRefuseOpcodeThatIsNotLockedAndSayTheCommand() {
        String without = locked.replaceFirst("(?m)^opcode .* cuStreamQuery\n", "");
        DescriptionException e = assertThrows(DescriptionException.class, () -> OpcodeLock.parse(without)
            .check(library));
        assertTrue(e.getMessage().startsWith("cuStreamQuery: "), e.getMessage());
        assertTrue(e.getMessage().endsWith("run " + OpcodeLock.COMMAND), e.getMessage());
        assertEquals(locked, OpcodeLock.parse(without).updated(library));
    }

    @Test
    void shouldRefuseOpcodeThatChanged() {
        String other = locked.replaceFirst("(?m)^opcode \\S+ cuStreamQuery$", "opcode 0x7777 cuStreamQuery");
        assertThrows(DescriptionException.class, () -> OpcodeLock.parse(other).check(library));
        assertThrows(DescriptionException.class, () -> OpcodeLock.parse(other).updated(library));
    }

    @Test
    void shouldRefuseOpcodeThatVanished() {
        String more = locked + "opcode 0x7777 cuGone\n";
        assertThrows(DescriptionException.class, () -> OpcodeLock.parse(more).updated(library));
    }

    @Test
    void shouldRefuseKindThatChanged() {
        String other = locked.replace("kind 0004 STREAM", "kind 0004 EVENT");
        assertThrows(DescriptionException.class, () -> OpcodeLock.parse(other).check(library));
    }

    @Test
    void shouldLockLibrariesApart() throws IOException {
        Path shapes = Path.of("src/test/resources/shapes");
        Description both = new DescriptionReader(Source.folder(shapes)).read();
        OpcodeLock.parse(Source.folder(shapes).text("shapes/" + OpcodeLock.FILE)).check(both.library("shapes"));
        OpcodeLock.parse(locked).check(both.library("cuda"));
    }
}
