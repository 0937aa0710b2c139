package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicContainer;
import org.junit.jupiter.api.DynamicNode;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Every test program, alone over each carrier and several at once, with one broker. */
class ProgramsIT {
    private static final int UNSUPPORTED = 77;
    /** Programs of math libraries: the build has OpenBLAS for those that need it. */
    private static final Set<String> MATH = Set.of("drv_cublas", "drv_blas", "drv_cublaslt", "drv_cublas_capture",
        "drv_cublas_xt", "drv_cudnn", "drv_cudnn_elements", "drv_cudnn_graphs", "drv_cudnn_layers", "drv_cufft",
        "drv_curand", "drv_cusolver", "drv_cusolver_sparse", "drv_cusparse", "drv_training_step");
    /** Programs that use an unsupported function; the guest library names it once on stderr. */
    private static final Set<String> REFUSED_IN_PART = Set.of("drv_errors", "refused_kernels", "pinned_sums");
    /** The same for one carrier: a region may be full. */
    private static final Map<Carrier, Set<String>> REFUSED_OVER =
        Map.of(Carrier.TCP, Set.of(), Carrier.SHM, Set.of("drv_heap_full"));

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;
    @RegisterExtension
    static final OwnBroker OWN = new OwnBroker();

    @BeforeAll
    static void startBroker() throws Exception {
        broker = OWN.keep(BrokerProcess.start("programs", stateDir.resolve("broker"), BrokerProcess.AWAITED_WORKERS));
    }

    @TestFactory
    Stream<DynamicContainer> shouldRunDriverPrograms() {
        List<String> names = Chain.driverPrograms();
        assertFalse(names.isEmpty(), "no driver program in " + Chain.PROGRAMS);
        return overEachCarrier(names);
    }

    @TestFactory
    Stream<? extends DynamicNode> shouldRunCudaPrograms() {
        List<String> names = Chain.cudaPrograms();
        return names.isEmpty() ? withoutNvcc() : overEachCarrier(names);
    }

    /** The same programs with the static CUDA runtime, which {@code hawser run} redirects. */
    @TestFactory
    Stream<? extends DynamicNode> shouldRunStaticPrograms() {
        List<String> names = Chain.cudaPrograms();
        return names.isEmpty() ? withoutNvcc() : overEachCarrier(names, (carrier, name) -> run(carrier, name,
            GuestProgram.startByCommand(broker, carrier, Chain.STATIC_PROGRAMS.resolve(name))));
    }

    private static Stream<DynamicTest> withoutNvcc() {
        return Stream.of(DynamicTest.dynamicTest("programs built by nvcc",
            () -> assumeFalse(true, "nvcc not found: the .cu programs were not built, so none was run")));
    }

    private interface Run {
        void over(Carrier carrier, String name) throws Exception;
    }

    private static Stream<DynamicContainer> overEachCarrier(List<String> names) {
        return overEachCarrier(names, (carrier, name) -> run(carrier, name, GuestProgram.start(broker, carrier, name)));
    }

    private static Stream<DynamicContainer> overEachCarrier(List<String> names, Run run) {
        return Stream.of(Carrier.values()).map(carrier -> DynamicContainer.dynamicContainer(carrier.inStatistics(),
            names.stream().map(name -> DynamicTest.dynamicTest(name, () -> run.over(carrier, name)))));
    }

    /** Whether the broker may use the build's OpenBLAS: nobody but root and the owner can write the checkout. */
    private static boolean hasMath() throws Exception {
        boolean isFound = broker.info().path("libraries").findValuesAsText("soname").contains("libopenblas.so.0");
        for (Path part = Chain.ROOT.toRealPath(); !isFound && part != null; part = part.getParent()) {
            int mode = (int) Files.getAttribute(part, "unix:mode");
            if ((mode & 022) != 0 && (mode & 01000) == 0) { // for all but the owner, and not sticky
                return false;
            }
        }
        return true;
    }

    private static void run(Carrier carrier, String name, GuestProgram started) throws Exception {
        try (GuestProgram program = started) {
            GuestProgram.Result result = program.await();
            assumeTrue(result.exit() != UNSUPPORTED || (MATH.contains(name) && hasMath()), result.out());
            result.assertPassed();
            boolean isRefused = REFUSED_IN_PART.contains(name) || REFUSED_OVER.get(carrier).contains(name);
            assertEquals(!isRefused, result.hawserLines().isEmpty(), result::toString);
            List<JsonNode> counters = result.assertOver(carrier).counters();
            assertTrue(counters.stream().anyMatch(c -> c.path("calls").asLong() > 0), counters::toString);
            broker.awaitIdle();
        }
    }

    @Test
    void shouldServeSeveralGuestsAtOnce() throws Exception {
        List<String> names = List.of("drv_matrix_mul", "drv_many_calls", "drv_threads", "drv_large_copies",
            "drv_vector_add", "drv_callbacks");
        List<GuestProgram> programs = new ArrayList<>();
        try {
            // Alternates the carriers: the sessions share only the broker.
            for (int i = 0; i < names.size(); i++) {
                programs.add(GuestProgram.start(broker, carrier(i), names.get(i)));
            }
            for (int i = 0; i < names.size(); i++) {
                programs.get(i).await().assertPassed().assertOver(carrier(i));
            }
        } finally {
            programs.forEach(GuestProgram::close);
        }
    }

    private static Carrier carrier(int index) {
        return Carrier.values()[index % Carrier.values().length];
    }

    @Test
    void shouldServeSeveralProcessesOfOneRegion() throws Exception {
        List<GuestProgram> programs = new ArrayList<>();
        try {
            for (int i = 0; i < 4; i++) {
                programs.add(GuestProgram.start(broker, Carrier.SHM, i % 2 == 0 ? "drv_threads" : "drv_large_copies"));
            }
            for (GuestProgram program : programs) {
                program.await().assertPassed().assertOver(Carrier.SHM);
            }
        } finally {
            programs.forEach(GuestProgram::close);
        }
    }

    @Test
    void shouldNameARefusedKernelAndItsInstructionOnce() throws Exception {
        assumeTrue(Files.exists(Chain.PROGRAMS.resolve("refused_kernels")),
            "nvcc not found: refused_kernels was not built");
        try (GuestProgram program = GuestProgram.start(broker, Carrier.TCP, "refused_kernels")) {
            GuestProgram.Result result = program.await().assertPassed();
            assertEquals(1, result.hawserLines().size(), result::toString);
            assertTrue(result.hawserLines().getFirst().matches("hawser: a kernel is refused: line \\d+: not supported"
                + " by the software GPU: wmma\\.load\\.\\S+, in kernel \\S*tensor_product\\S*"), result::toString);
        }
    }

    @Test
    void shouldPreferTheRegion() throws Exception {
        Map<String, String> both = new HashMap<>(Carrier.TCP.environment(broker));
        both.putAll(Carrier.SHM.environment(broker));
        both.remove("HAWSER_CARRIER");
        try (GuestProgram program = GuestProgram.start(both, "drv_vector_add")) {
            program.await().assertPassed().assertOver(Carrier.SHM);
        }
    }

    @Test
    void shouldSayHowToStartAProgramWithAStaticRuntime() throws Exception {
        assertLine("static/vector_add", "vector_add contains a statically linked CUDA runtime, and its calls to the GPU"
            + " fail here: start it with `hawser run`");
    }

    @Test
    void shouldSayHowToRelinkAStrippedProgram() throws Exception {
        assertLine("static_stripped", "static_stripped contains a statically linked CUDA runtime");
        assertLine("static_stripped", "link it with nvcc -cudart shared, or ask the vendor");
    }

    private static void assertLine(String name, String text) throws Exception {
        assumeTrue(Files.exists(Chain.PROGRAMS.resolve(name)), () -> "nvcc not found: " + name + " was not built");
        try (GuestProgram program = GuestProgram.start(broker, Carrier.TCP, name)) {
            GuestProgram.Result result = program.await();
            assertEquals(1, result.exit(), result::toString);
            assertEquals(1, result.hawserLines().size(), result::toString);
            assertTrue(result.hawserLines().getFirst().contains(text), result::toString);
        }
    }
}
