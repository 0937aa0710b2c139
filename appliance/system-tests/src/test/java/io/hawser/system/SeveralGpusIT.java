package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Guests of a vGPU that has all GPUs of a machine with three, which the software GPU simulates. */
class SeveralGpusIT {
    private static final String DEVICES = "3";
    private static final int UNSUPPORTED = 77;
    private static final int NO_GPU = 1; // exit code of a program without a GPU

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;
    @RegisterExtension
    static final OwnBroker OWN = new OwnBroker();

    @BeforeAll
    static void startBroker() throws Exception {
        broker =
            OWN.keep(BrokerProcess.start("several-gpus", stateDir.resolve("broker"), BrokerProcess.withQuickWorkers(
                Map.of("hawser.gpu.software.devices", DEVICES, "hawser.vgpus.default.gpus", "all"))));
    }

    @ParameterizedTest
    @EnumSource
    void shouldComputeOnEachAndBetweenThem(Carrier carrier) throws Exception {
        List<String> programs = new ArrayList<>(List.of("drv_devices", "drv_managed_devices"));
        if (Chain.cudaPrograms().contains("several_devices")) {
            programs.add("several_devices");
        }
        for (String name : programs) {
            try (GuestProgram program = GuestProgram.start(broker, carrier, name)) {
                program.await().assertPassed().assertOver(carrier);
            }
        }
    }

    /** Needs the build's OpenBLAS. */
    @ParameterizedTest
    @EnumSource
    void shouldDealTheTilesOfCublasXtToAll(Carrier carrier) throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_cublas_xt")) {
            GuestProgram.Result result = program.await();
            assumeTrue(result.exit() != UNSUPPORTED, result.out());
            result.assertPassed().assertOver(carrier);
            assertTrue(result.out().contains(DEVICES + " boards"), result.out());
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = ';', value = {"0;1", "2,0;2", "1,7,2;1", "1,-1,2;1", "2,1,0;3", "0 , 2;2"})
    void shouldShowWhatCudaVisibleDevicesLeaves(String visible, String expected) throws Exception {
        assertEquals(0, run(visible, expected).exit());
    }

    @ParameterizedTest
    @CsvSource(delimiter = ';', value = {"''", "-1", "0,1,0", "GPU-zz", "3"})
    void shouldShowNoneWhereCudaVisibleDevicesLeavesNone(String visible) throws Exception {
        GuestProgram.Result result = run(visible, DEVICES);
        assertEquals(NO_GPU, result.exit(), result::toString);
        assertTrue(result.out().contains("CUDA_ERROR_NO_DEVICE"), result::toString);
    }

    @Test
    void shouldFindGpusByTheirUuids() throws Exception {
        List<String> uuids = new ArrayList<>();
        for (JsonNode gpu : broker.gpus()) {
            uuids.add(gpu.path("uuid").asText());
        }
        assertEquals(3, uuids.size());
        String whole = "GPU-" + uuids.get(2);
        assertEquals(0, run(whole + ",GPU-" + uuids.get(0).substring(0, 8), "2").exit());
    }

    private static GuestProgram.Result run(String visible, String expected) throws Exception {
        Map<String, String> environment = new HashMap<>(Carrier.SHM.environment(broker));
        environment.put("CUDA_VISIBLE_DEVICES", visible);
        try (GuestProgram program = GuestProgram.start(environment, "drv_devices", "--devices", expected)) {
            return program.await();
        }
    }
}
