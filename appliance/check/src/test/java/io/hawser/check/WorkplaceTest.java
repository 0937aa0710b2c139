package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class WorkplaceTest {
    @Test
    void shouldRemoveTheRegionsOfVgpus() throws IOException {
        Path file;
        try (Workplace workplace = Workplace.make(false, false)) {
            workplace.addRegions(List.of("t1", "n1"));
            assertEquals(Set.of("t1", "n1"), workplace.vgpuRegions().keySet());
            file = workplace.vgpuRegions().get("t1");
            assertTrue(file.getFileName().toString().startsWith(Workplace.REGION_PREFIX), file.toString());
            Files.createFile(file); // the broker does it
        }
        assertFalse(Files.exists(file));
    }
}
