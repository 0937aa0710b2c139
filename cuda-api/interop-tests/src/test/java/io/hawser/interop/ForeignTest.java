package io.hawser.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.generated.shapes.ShapesForeign;
import io.hawser.cuda.generated.shapes.ShapesNative;
import io.hawser.cuda.generated.shapes.shapesMemory_t;
import io.hawser.cuda.generated.shapes.shapesStatus_t;
import io.hawser.cuda.generator.c.CEmitters;
import io.hawser.cuda.generator.emit.OutputFiles;
import io.hawser.cuda.generator.model.Description;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Source;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The generated classes of foreign functions, over a C library that includes the generated prototypes. */
class ForeignTest {
    private static final String LIBRARY = """
        #include "hws_shapes_types.h"
        #include <string.h>

        shapesStatus_t shapesOpen(unsigned long long *sum, shapesMemory_t memory, shapesHandle_t handle,
                                  const char *name) {
            *sum = memory.total + 10 * memory.used + 100 * memory.version + 1000 * (uintptr_t) handle
                + 10000 * strlen(name);
            return SHAPES_STATUS_SUCCESS;
        }

        shapesStatus_t shapesBatched(int count, const CUdeviceptr *addresses, const shapesHandle_t *handles,
                                     const char *label, uint16_t extraBytes, const void *extra, int *results,
                                     float *first) {
            results[0] = count == 3 && addresses == NULL && handles == NULL && extra == NULL && first == NULL;
            results[1] = label == NULL ? -1 : (int) strlen(label);
            results[2] = extraBytes;
            return SHAPES_STATUS_INVALID_VALUE;
        }

        shapesStatus_t shapesMove(cuComplex step, shapesHandle_t handle, cuDoubleComplex center, double *distance) {
            *distance = step.x + 10 * step.y + 100 * center.x + 1000 * center.y + 10000 * (double) (uintptr_t) handle;
            return SHAPES_STATUS_SUCCESS;
        }
        """;

    @BeforeAll
    static void load(@TempDir Path folder) throws Exception {
        Description description = new DescriptionReader(Source.folder(InteropTest.SHAPES)).read();
        CEmitters.emit(description, null, new OutputFiles(folder, "Test of foreign functions."));
        Path source = Files.writeString(folder.resolve("shapes.c"), LIBRARY);
        Path library = folder.resolve("shapes.so");
        // The loader then finds this library by its soname.
        CProgram.run(List.of("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
            "-Wl,-soname,libshapes.so.1", "-I" + folder, "-o", library.toString(), source.toString()));
        SymbolLookup.libraryLookup(library, Arena.global());
    }

    @Test
    void shouldPassStructureByValue() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment sum = arena.allocate(ValueLayout.JAVA_LONG);
            MemorySegment memory = arena.allocate(shapesMemory_t.BYTES, Long.BYTES);
            memory.set(ValueLayout.JAVA_LONG, shapesMemory_t.TOTAL_OFFSET, 1);
            memory.set(ValueLayout.JAVA_LONG, shapesMemory_t.USED_OFFSET, 2);
            memory.set(ValueLayout.JAVA_INT, shapesMemory_t.VERSION_OFFSET, 3);
            assertEquals(shapesStatus_t.SHAPES_STATUS_SUCCESS,
                ShapesNative.shapesOpen(sum, memory, 4, arena.allocateFrom("cubes")));
            assertEquals(54321, sum.get(ValueLayout.JAVA_LONG, 0));
        }
    }

    @Test
    void shouldPassComplexNumbersByValueFromBackendInterface() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment distance = arena.allocate(ValueLayout.JAVA_DOUBLE);
            assertEquals(shapesStatus_t.SHAPES_STATUS_SUCCESS, new ShapesForeign().shapesMove(
                arena.allocateFrom(ValueLayout.JAVA_FLOAT, 1, 2), 5, arena.allocateFrom(ValueLayout.JAVA_DOUBLE, 3, 4),
                distance));
            assertEquals(54321, distance.get(ValueLayout.JAVA_DOUBLE, 0));
        }
    }

    @Test
    void shouldAnswerNotSupportedForFunctionThatLibraryLacks() {
        assertEquals(shapesStatus_t.SHAPES_STATUS_NOT_SUPPORTED, ShapesNative.shapesClose(1, 2));
        assertEquals(shapesStatus_t.SHAPES_STATUS_NOT_SUPPORTED, new ShapesForeign().shapesDestroy(1));
    }

    @Test
    void shouldPassTextsAndNullFromBackendInterface() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment results = arena.allocate(3 * Integer.BYTES, Integer.BYTES);
            assertEquals(List.of(1, 5, 6), batched("cubes", results));
            assertEquals(List.of(1, -1, 6), batched(null, results));
        }
    }

    private static List<Integer> batched(String label, MemorySegment results) {
        assertEquals(shapesStatus_t.SHAPES_STATUS_INVALID_VALUE,
            new ShapesForeign().shapesBatched(3, null, null, label, (short) 6, null, results, null));
        return List.of(results.getAtIndex(ValueLayout.JAVA_INT, 0), results.getAtIndex(ValueLayout.JAVA_INT, 1),
            results.getAtIndex(ValueLayout.JAVA_INT, 2));
    }
}
