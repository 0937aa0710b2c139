package io.hawser.reference;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/** Makes the page of {@code hawser-fabric} from its help text. */
class FabricReferenceTest {
    private static String usage() throws IOException, InterruptedException {
        Process process = new ProcessBuilder(
            Repository.file("appliance/fabric/src/main/sh/hawser-fabric").toString(), "--help")
            .redirectErrorStream(true).start();
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), text);
        return text;
    }

    @Test
    void shouldEqualTheCommittedPage() throws Exception {
        new Page("appliance/docs/reference/hawser-fabric.md")
            .check(new Markdown("`hawser-fabric --help`", "hawser-fabric").code(usage()).text());
    }

    @Test
    void shouldHaveTheOptionsOfTheUsageTextInTheManualPage() throws Exception {
        UsageText.checkManual(usage(), "appliance/distribution/share/man/man1/hawser-fabric.1");
    }
}
