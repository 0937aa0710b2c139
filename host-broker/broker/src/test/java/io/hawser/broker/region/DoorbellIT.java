package io.hawser.broker.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.model.StartException;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The broker as the ivshmem server of a scripted QEMU. */
class DoorbellIT {
    private static final long SIZE = 16 << 20;
    private static final int SLOTS = 3;
    @TempDir
    Path stateDir;

    private Path socket() {
        return stateDir.resolve("doorbell");
    }

    private TestBroker start(String mode, Map<String, String> region) {
        Map<String, String> settings = new HashMap<>(Map.of("hawser.regions.vm.doorbell-socket", socket().toString(),
            "hawser.regions.vm.size", "16M", "hawser.regions.vm.slots", "3"));
        region.forEach((key, value) -> settings.put("hawser.regions.vm." + key, value));
        TestBroker broker = TestBroker.start(stateDir, mode, settings);
        if (!mode.equals("silent")) {
            TestBroker.await("a worker", () -> broker.broker().pools().state().ready() > 0);
        }
        return broker;
    }

    /** The memory and the doorbells that a machine has received from the server. */
    private record Device(int memory, List<EventFd> doorbells) {
        TestRegionGuest guest(int slot) throws IOException {
            return new TestRegionGuest(memory, slot);
        }
    }

    private static Device setUp(TestMachine machine, int vectors) throws IOException {
        assertEquals(new TestMachine.Message(0, -1), machine.receive(), "the protocol's version");
        assertEquals(new TestMachine.Message(1, -1), machine.receive(), "the machine's id");
        TestMachine.Message memory = machine.receive();
        assertEquals(-1, memory.value());
        assertEquals(SIZE, Descriptors.fileBytes(memory.descriptor()));
        List<EventFd> doorbells = new ArrayList<>();
        for (int i = 0; i < vectors; i++) {
            TestMachine.Message vector = machine.receive();
            assertEquals(0, vector.value(), "the broker's id");
            doorbells.add(TestMachine.doorbell(vector));
        }
        return new Device(memory.descriptor(), doorbells);
    }

    private static RegionView view(TestBroker broker) {
        return broker.broker().regions().find("vm").orElseThrow();
    }

    private static String output(MemorySegment record) {
        int bytes = record.get(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.HEADER_BYTES);
        return new String(record.asSlice(RecordLayout.HEADER_BYTES + RecordLayout.OUTPUT_FIXED_BYTES, bytes)
            .toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8);
    }

    @Test
    void shouldGiveAMachineMemoryAndDoorbells() throws Exception {
        try (TestBroker broker = start("normal", Map.of()); TestMachine machine = new TestMachine(socket())) {
            assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(socket())));
            Device device = setUp(machine, 1 + SLOTS);
            TestBroker.await("the machine's connection", () -> view(broker).connected());
            assertThrows(IOException.class, () -> Descriptors.resize(device.memory(), 4096),
                "a machine must not be able to truncate the memory");
            try (TestRegionGuest guest = device.guest(1)) {
                assertEquals(1 + SLOTS, guest.header().doorbellVectors());
                guest.claim(RegionLayout.KIND_MACHINE);
                device.doorbells().getFirst().signal();
                guest.awaitHostState(RegionLayout.HOST_SERVING);
                assertEquals(RegionLayout.LIVENESS_BEAT, guest.liveness());
                assertEquals(RecordLayout.CONTROL_WELCOME,
                    guest.receive().get(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.OPCODE_OFFSET));
                assertTrue(output(guest.receive()).contains("\"kind\":2"));
                device.doorbells().get(1 + 1).signal();
                assertEquals("rung", output(guest.receive()), "the slot's doorbell must reach the worker");
                guest.say(RegionLayout.GUEST_LEFT);
                device.doorbells().getFirst().signal();
                guest.awaitHostState(RegionLayout.HOST_FREE);
            }
        }
        assertFalse(Files.exists(socket()));
    }

    @Test
    void shouldEndAllSlotsWhenTheMachineHangsUpAndGiveTheNextOneCleanMemory() throws Exception {
        try (TestBroker broker = start("normal", Map.of("slots", "3"))) {
            long epoch;
            long worker;
            TestMachine machine = new TestMachine(socket());
            Device device = setUp(machine, 1 + SLOTS);
            TestRegionGuest first = device.guest(0);
            first.claim(RegionLayout.KIND_MACHINE);
            device.doorbells().getFirst().signal();
            first.awaitHostState(RegionLayout.HOST_SERVING);
            epoch = first.header().epoch();
            worker = broker.broker().sessions().list().getFirst().workerPid();
            long heap = first.header().geometry().heapOffset();
            first.region().set(ValueLayout.JAVA_LONG, heap, 4711);
            machine.close();
            try (TestMachine next = new TestMachine(socket())) {
                Device fresh = setUp(next, 1 + SLOTS);
                assertFalse(ProcessHandle.of(worker).map(ProcessHandle::isAlive).orElse(false),
                    "the last machine's worker must end before the next machine gets memory");
                assertTrue(broker.broker().sessions().list().isEmpty());
                try (TestRegionGuest second = fresh.guest(0)) {
                    assertNotEquals(epoch, second.header().epoch());
                    assertEquals(0, second.region().get(ValueLayout.JAVA_LONG, heap),
                        "the memory must hold no data of the last machine");
                    TestBroker.await("another worker", () -> broker.broker().pools().state().ready() > 0);
                    second.claim(RegionLayout.KIND_MACHINE);
                    fresh.doorbells().getFirst().signal();
                    second.awaitHostState(RegionLayout.HOST_SERVING);
                }
            }
            first.close();
        }
    }

    @Test
    void shouldRefuseASecondMachineAndOneThatTalks() throws Exception {
        try (TestBroker broker = start("silent", Map.of("vectors", "2"));
            TestMachine first = new TestMachine(socket())) {
            setUp(first, 2);
            try (TestMachine second = new TestMachine(socket())) {
                assertNull(second.receive(), "the server must reject a second machine");
            }
            assertTrue(view(broker).connected());
            first.send(new byte[] {1});
            assertNull(first.receive());
            TestBroker.await("the machine's disconnection", () -> !view(broker).connected());
            try (TestMachine third = new TestMachine(socket())) {
                setUp(third, 2);
            }
        }
    }

    @Test
    void shouldLiveWithAMachineThatRingsWithoutEnd() throws Exception {
        try (TestBroker broker = start("normal", Map.of()); TestMachine machine = new TestMachine(socket())) {
            Device device = setUp(machine, 1 + SLOTS);
            Thread ringer = Thread.ofPlatform().start(() -> {
                try {
                    while (!Thread.currentThread().isInterrupted()) {
                        device.doorbells().getFirst().signal();
                    }
                } catch (IOException e) {
                    throw new AssertionError(e);
                }
            });
            try (TestRegionGuest guest = device.guest(2)) {
                guest.claim(RegionLayout.KIND_MACHINE);
                guest.awaitHostState(RegionLayout.HOST_SERVING);
                assertTrue(broker.answers());
            } finally {
                ringer.interrupt();
                ringer.join();
            }
        }
    }

    @Test
    void shouldRefuseSizesAndVectorsThatNoDeviceHas() {
        StartException failure = assertThrows(StartException.class, () -> start("silent", Map.of("size", "24M")));
        assertTrue(failure.getMessage().contains("a power of two: sizeBytes=25165824"), failure.getMessage());
        failure = assertThrows(StartException.class, () -> start("silent", Map.of("vectors", "5")));
        assertTrue(failure.getMessage().contains("1..4 vectors"), failure.getMessage());
    }

    @Test
    void shouldReplaceTheSocketOfABrokerThatWasKilled() throws Exception {
        Path kept = stateDir.resolve("kept");
        Path record = stateDir.resolve("sockets");
        String recorded;
        try (TestBroker broker = start("silent", Map.of())) {
            Files.createLink(kept, socket());
            recorded = Files.readString(record);
            StartException failure = assertThrows(StartException.class, () -> TestBroker.start(
                stateDir.resolve("other"), "silent", Map.of("hawser.regions.vm.doorbell-socket", socket().toString(),
                    "hawser.regions.vm.size", "16M")));
            assertTrue(failure.getMessage().contains("path must be free"), failure.getMessage());
            assertFalse(view(broker).connected());
        }
        assertTrue(Files.notExists(socket()), "the broker must remove its socket when it ends");
        Files.writeString(record, recorded);
        FileMaker.all().get("socket of another program, which has ended").make(socket());
        StartException refused = assertThrows(StartException.class, () -> start("silent", Map.of()));
        assertTrue(refused.getMessage().contains("path must be free"), refused.getMessage());
        Files.delete(socket());
        // A killed broker leaves its socket and the record of the socket.
        Files.move(kept, socket());
        try (TestBroker broker = start("silent", Map.of()); TestMachine machine = new TestMachine(socket())) {
            setUp(machine, 1 + SLOTS);
            TestBroker.await("the machine's connection", () -> view(broker).connected());
        }
        assertTrue(Files.notExists(socket()));
        try (var left = Files.list(stateDir)) {
            assertEquals(List.of(), left.map(file -> file.getFileName().toString())
                .filter(name -> name.startsWith(".")).toList(), "no temporary file may remain");
        }
    }

    @Test
    void shouldRemoveNothingButSocketsThatItMade() throws Exception {
        Map<String, FileMaker> makers = FileMaker.all();
        for (Map.Entry<String, FileMaker> maker : makers.entrySet()) {
            maker.getValue().make(socket());
            Object before = FileMaker.identity(socket());
            StartException failure = assertThrows(StartException.class, () -> start("silent", Map.of()),
                maker.getKey());
            assertTrue(failure.getMessage().contains("path must be free"), failure.getMessage());
            assertEquals(before, FileMaker.identity(socket()), maker.getKey());
            Files.delete(socket());
        }
        // Earlier brokers bound their sockets in a folder of this name and removed its files.
        Path folder = Files.createDirectory(stateDir.resolve("doorbell.d"));
        Path precious = Files.writeString(folder.resolve("s"), "precious");
        try (TestBroker broker = start("silent", Map.of())) {
            assertFalse(view(broker).connected());
            Files.delete(socket());
            Files.writeString(socket(), "of somebody else");
        }
        assertEquals("precious", Files.readString(precious));
        assertEquals("of somebody else", Files.readString(socket()), "the broker must remove only its own socket");
    }
}
