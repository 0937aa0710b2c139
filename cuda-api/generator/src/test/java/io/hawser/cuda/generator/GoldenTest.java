package io.hawser.cuda.generator;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compares generated files of the test library "shapes" with committed ones. */
class GoldenTest {
    private static final Path RESOURCES = Path.of("src/test/resources");

    @TempDir
    private Path folder;

    @Test
    void shouldWriteForeignFunctionsWithTypesOfC() throws IOException {
        shouldEqualGolden("ShapesNative", "java", "io/hawser/cuda/generated/shapes/ShapesNative.java");
    }

    @Test
    void shouldWritePrototypeOfEachExportedFunction() throws IOException {
        shouldEqualGolden("hws_shapes_functions.h", "c", "hws_shapes_functions.h");
    }

    private void shouldEqualGolden(String golden, String language, String file) throws IOException {
        Main.main(new String[] {"--language", language, "--library", "shapes", "--out", folder.toString(),
            "--description", RESOURCES.resolve("shapes").toString()});
        String generated = Files.readString(folder.resolve(file));
        // The first line is the banner, which changes with the description.
        assertEquals(Files.readString(RESOURCES.resolve("golden").resolve(golden)),
            generated.substring(generated.indexOf('\n') + 1));
    }
}
