package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * NCCL between processes: guests of a vGPU with communication and two GPUs, which the software GPU simulates. Only root
 * can give the workers a network.
 */
class CommunicationIT {
    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;
    @RegisterExtension
    static final OwnBroker OWN = new OwnBroker();

    @BeforeAll
    static void startBroker() throws Exception {
        assumeTrue(Files.getOwner(Path.of("/proc/self")).getName().equals("root"), "only root makes namespaces");
        broker = OWN.keep(BrokerProcess.start("communication", stateDir.resolve("broker"),
            BrokerProcess.withQuickWorkers(
                Map.of("hawser.gpu.software.devices", "2", "hawser.vgpus.default.gpus", "all",
                    "hawser.vgpus.default.communication", "host"))));
    }

    @ParameterizedTest
    @EnumSource
    void shouldExchangeDataAmongProcesses(Carrier carrier) throws Exception {
        for (String ranks : new String[] {"2", "3"}) {
            try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_nccl", "--processes", ranks)) {
                program.await().assertPassed().assertOver(carrier);
            }
        }
    }

    @Test
    void shouldExchangeDataAmongDevices() throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, Carrier.SHM, "drv_nccl")) {
            program.await().assertPassed();
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldEndTheCallsOfOtherRanksWhenOneDies(Carrier carrier) throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_nccl", "--processes", "3", "--kill",
            "1")) {
            program.await().assertPassed();
        }
    }

    @Test
    void shouldRefuseIdsToVgpusWithoutCommunication() throws Exception {
        try (BrokerProcess other = BrokerProcess.start("no-communication", stateDir.resolve("other"),
            BrokerProcess.withQuickWorkers(Map.of()))) {
            try (GuestProgram program = GuestProgram.start(other, Carrier.TCP, "drv_nccl", "--processes", "2")) {
                GuestProgram.Result result = program.await();
                assertEquals(1, result.exit(), result::toString);
                assertTrue(result.out().contains("the vGPU has no communication"), result::toString);
            }
            other.awaitIdle();
        }
    }

    @Test
    void shouldGiveEachVgpuANetworkAndAUserOfItsOwn() throws Exception {
        try (BrokerProcess two = BrokerProcess.start("two-networks", stateDir.resolve("two"),
            BrokerProcess.withQuickWorkers(Map.of("hawser.vgpus.default.communication", "host",
                "hawser.vgpus.other.communication", "host")))) {
            Await.until("each vGPU has a ready worker", () -> places(two).size() == 2 ? "" : places(two).toString());
            Path own = Files.readSymbolicLink(Path.of("/proc/self/ns/net"));
            assertFalse(places(two).stream().anyMatch(place -> place.startsWith(own + " ")), own::toString);
        }
    }

    /** A later connection of NVIDIA's NCCL would hold the session's thread until another rank comes. */
    @Test
    void shouldLetNcclConnectRanksWhenACommunicatorIsMade() throws Exception {
        Await.until("the vGPU has a ready worker", () -> places(broker).isEmpty() ? "none" : "");
        assertTrue(places(broker).stream().allMatch(place -> place.endsWith(" NCCL_RUNTIME_CONNECT=0")),
            () -> places(broker).toString());
    }

    /** Networks and users of the jailed workers that may communicate, and their setting of NCCL. */
    private static Set<String> places(BrokerProcess of) {
        return ProcessHandle.of(of.pid()).orElseThrow().descendants().map(worker -> Path.of("/proc/" + worker.pid()))
            .map(CommunicationIT::place).filter(place -> !place.isEmpty()).collect(Collectors.toSet());
    }

    private static String place(Path worker) {
        try {
            List<String> environment = List.of(Files.readString(worker.resolve("environ")).split("\0"));
            boolean communicates = environment.contains("HAWSER_COMMUNICATION=host");
            Object user = Files.getAttribute(worker, "unix:uid");
            String connect = environment.stream().filter(line -> line.startsWith("NCCL_RUNTIME_CONNECT=")).findFirst()
                .orElse("");
            return communicates && !user.equals(0)
                ? Files.readSymbolicLink(worker.resolve("ns/net")) + " " + user + " " + connect : "";
        } catch (IOException e) {
            return ""; // it has ended
        }
    }
}
