package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.FunctionInfo;
import io.hawser.cuda.backend.ManagedVariables.Variable;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Managed variables of modules and libraries. */
class ManagedVariablesTest {
    private static final long MEMORY_BYTES = 64 << 20;
    private static final long PAGE_BYTES = 4096;
    private static final String PTX = """
        .version 8.0
        .target sm_75
        .address_size 64
        .global .attribute(.managed) .align 4 .u32 counter = 5;
        .global .align 4 .u32 plain = 3;
        .global .attribute(.managed) .align 8 .b8 table[%d];
        .global .attribute(.managed) .align 8 .u64 pointer = plain;
        .visible .entry count() {
            .reg .u32 %%r<2>;
            ld.global.u32 %%r0, [counter];
            add.u32 %%r0, %%r0, 1;
            st.global.u32 [counter], %%r0;
            ld.global.u32 %%r0, [plain];
            add.u32 %%r0, %%r0, 1;
            st.global.u32 [plain], %%r0;
            ret;
        }
        """;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64, 8);
    private SoftwareBackend backend;
    private long first;
    private long second;

    @BeforeEach
    void open() {
        backend = new SoftwareBackend(MEMORY_BYTES, 2, 0);
        first = context(true);
        second = context(false);
        ok(backend.setCurrent(first));
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    private long context(boolean primary) {
        ok(backend.createContext(0, 0, primary, out));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private static void ok(int result) {
        assertEquals(CUDA_SUCCESS, result);
    }

    private int load(boolean library, long tableBytes) {
        MemorySegment text = arena.allocateFrom(PTX.formatted(tableBytes), StandardCharsets.US_ASCII);
        return library ? backend.loadLibrary(text, out, new StringBuilder())
            : backend.loadImage(text, out, new StringBuilder());
    }

    private long loaded(boolean library) {
        ok(load(library, 100));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private List<Variable> of(long module) {
        return backend.managedVariables().of(module);
    }

    private int value(long module, String name) {
        ok(backend.global(module, name, out));
        MemorySegment value = arena.allocate(4, 4);
        ok(backend.copyDtoH(value, out.get(ValueLayout.JAVA_LONG, 0), 0));
        return value.get(ValueLayout.JAVA_INT, 0);
    }

    private void count(long module) {
        FunctionInfo function = new FunctionInfo();
        ok(backend.function(module, "count", function));
        ok(backend.launch(function.handle(), 1, 1, 1, 1, 1, 1, 0, 0, 0, MemorySegment.NULL, MemorySegment.NULL));
    }

    private long freeBytes() {
        ok(backend.driver().cuMemGetInfo_v2(out, out.asSlice(8)));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    @Test
    void shouldListTheManagedVariablesOfAModule() {
        long module = loaded(false);
        assertEquals(List.of(4L, 100L, 8L), of(module).stream().map(Variable::bytes).toList());
        ok(backend.global(module, "counter", out));
        assertEquals(of(module).getFirst().address(), out.get(ValueLayout.JAVA_LONG, 0));
        assertEquals(5, value(module, "counter"));
        assertEquals(0, value(module, "table"));
        ok(backend.global(module, "plain", out));
        long plain = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals((int) plain, value(module, "pointer"));
        assertTrue(of(module).stream().noneMatch(variable -> variable.address() == plain));
    }

    @Test
    void shouldGiveEachModuleItsOwnInSharedPages() {
        long one = loaded(false);
        long other = loaded(false);
        count(one);
        assertEquals(6, value(one, "counter"));
        assertEquals(5, value(other, "counter"));
        assertEquals(of(one).getFirst().address() / PAGE_BYTES, of(other).getFirst().address() / PAGE_BYTES);
        assertNotEquals(of(one).getFirst().address(), of(other).getFirst().address());
    }

    @Test
    void shouldShareThoseOfALibraryBetweenContexts() {
        long library = loaded(true);
        List<Variable> variables = of(library);
        count(library);
        ok(backend.setCurrent(second));
        assertEquals(variables, of(library));
        count(library);
        assertEquals(7, value(library, "counter"));
        assertEquals(4, value(library, "plain"));
        ok(backend.destroyContext(second));
        ok(backend.setCurrent(first));
        ok(backend.destroyContext(first));
        ok(backend.setCurrent(context(true)));
        assertEquals(variables, of(library));
        assertEquals(7, value(library, "counter"));
    }

    @Test
    void shouldFreeThemWithTheirModuleOrLibrary() {
        long before = freeBytes();
        for (int i = 0; i < 3; i++) {
            long module = loaded(false);
            long library = loaded(true);
            ok(backend.setCurrent(second));
            of(library);
            ok(backend.setCurrent(first));
            assertTrue(freeBytes() < before);
            ok(backend.unloadImage(module));
            ok(backend.unloadImage(library));
            assertEquals(before, freeBytes());
        }
        loaded(false);
        ok(backend.destroyContext(first));
        first = context(true);
        ok(backend.setCurrent(first));
        assertEquals(before, freeBytes());
    }

    @Test
    void shouldCountThemAsMemory() {
        assertEquals(CUDA_ERROR_OUT_OF_MEMORY, load(false, MEMORY_BYTES));
        assertEquals(CUDA_ERROR_OUT_OF_MEMORY, load(true, MEMORY_BYTES));
        long before = freeBytes();
        ok(load(false, 1 << 20));
        assertTrue(before - freeBytes() >= 1 << 20);
    }

    @Test
    void shouldMoveLaterOnesFartherEachTime() {
        long last = of(loaded(false)).getFirst().address();
        for (int times = 1; times <= 8; times++) {
            backend.managedVariables().move(times);
            long next = of(loaded(false)).getFirst().address();
            assertTrue(next - last > PAGE_BYTES, "times=" + times + " distance=" + (next - last));
            last = next;
        }
        backend.managedVariables().move(Integer.MAX_VALUE);
        loaded(false);
    }
}
