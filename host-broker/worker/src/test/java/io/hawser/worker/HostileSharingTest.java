package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.os.Descriptors;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapVirtualMemory;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Another session's captured worker chooses all that the broker passes on about its memory. */
@Timeout(300)
class HostileSharingTest {
    private static final long UNIT = HeapVirtualMemory.UNIT;
    private static final int CALLS = 60; // a worker sends the broker 50 messages a second
    private static final String NO_NAME = "f".repeat(32);
    private static final String DRIVER_HANDLE = "bc01000000000000" + "00".repeat(56);
    private static final String EVENT_HANDLE = "bce1000000000000" + "00".repeat(56);

    /** A broker that passes on what a captured worker has sent, and counts imports. */
    private static final class Broker {
        private final Rig rig;
        private final Random random;
        private final Map<String, Integer> imports = new HashMap<>();

        Broker(Rig rig, long seed) {
            this.rig = rig;
            this.random = new Random(seed);
        }

        synchronized Map<String, Integer> imports() {
            return Map.copyOf(imports);
        }

        /** Answers until the worker has ended. */
        void run() {
            try {
                while (true) {
                    JsonNode message = rig.expectAny(Set.of("find", "release", "ended"));
                    String name = message.path("name").asText();
                    switch (message.path("type").asText()) {
                        case "find" -> answer(name);
                        case "release" -> count(name, -1);
                        default -> {
                            return;
                        }
                    }
                }
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        private synchronized void count(String name, int more) {
            imports.merge(name, more, (before, added) -> before + added == 0 ? null : before + added);
        }

        private void answer(String name) throws IOException {
            if (name.equals(NO_NAME) || random.nextInt(8) == 0) {
                write("{'type':'notfound','name':'" + name + "'}", -1);
                return;
            }
            long bytes = new long[] {0, 1, UNIT, UNIT, UNIT, Long.MAX_VALUE}[random.nextInt(6)];
            int descriptor = random.nextInt(3) == 0 ? -1
                : Descriptors.memory("hostile", random.nextInt(4) == 0 ? UNIT / 2 : UNIT);
            count(name, 1);
            write("{'type':'found','name':'" + name + "','handle':'" + handle() + "','column':"
                + (random.nextInt(8) == 0 ? 63 : 0) + ",'bytes':" + bytes + "}", descriptor);
            if (descriptor >= 0) {
                Descriptors.close(descriptor);
            }
        }

        private String handle() {
            return switch (random.nextInt(4)) {
                case 0 -> DRIVER_HANDLE;
                case 1 -> EVENT_HANDLE;
                case 2 -> HexFormat.of().formatHex(bytes(1 + random.nextInt(2048)));
                default -> { // a range in a few pieces
                    byte[] place = bytes(8 + 16 * (1 + random.nextInt(3)));
                    Arrays.fill(place, random.nextInt(2), 8, (byte) 0);
                    yield HexFormat.of().formatHex(place);
                }
            };
        }

        private byte[] bytes(int count) {
            byte[] bytes = new byte[count];
            random.nextBytes(bytes);
            return bytes;
        }

        private void write(String json, int descriptor) throws IOException {
            rig.broker().write(json.replace('\'', '"').getBytes(StandardCharsets.UTF_8), descriptor);
        }
    }

    private static boolean isOpened(Guest guest, Random random) throws IOException {
        long[] name = {random.nextInt(3), random.nextInt(3)};
        int kind = random.nextInt(3);
        long id = guest.newId(kind == 0 ? HandleKind.IPC_MEMORY
            : kind == 1 ? HandleKind.MEM_ALLOCATION : HandleKind.EVENT);
        Guest.Received reply = guest.call(kind == 0 ? CudaOpcodes.hwsIpcOpen
            : kind == 1 ? CudaOpcodes.hwsMemImport : CudaOpcodes.hwsIpcOpenEvent, id, name[0], name[1]);
        if (reply.status() == 0 && kind == 2) {
            guest.send(CudaOpcodes.cuEventRecordWithFlags, Guest.CREDITED, id, 0, 0);
            guest.call(CudaOpcodes.cuEventQuery, id);
            guest.send(CudaOpcodes.cuEventDestroy_v2, 0, id);
        } else if (reply.status() == 0) {
            assertEquals(0, guest.call(kind == 0 ? CudaOpcodes.hwsIpcClose : CudaOpcodes.hwsMemRelease, id).status());
        }
        return reply.status() == 0;
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void shouldOpenOrRefuseWhateverAnotherWorkerShares(long seed) throws Exception {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Broker broker = new Broker(rig, seed);
            CompletableFuture<Void> answers = CompletableFuture.runAsync(broker::run);
            Random random = new Random(seed);
            int opened = 0;
            for (int i = 0; i < CALLS; i++) {
                opened += isOpened(rig.guest(), random) ? 1 : 0;
            }
            assertEquals(0, rig.guest().call(Guest.CTX_SYNCHRONIZE).status());
            assertTrue(opened > 0 && opened < CALLS, "opened=" + opened);
            assertEquals(Set.of(), rig.gpu().virtualMemory().live());
            // The broker answers it after all earlier messages.
            assertEquals(CudaResult.INVALID_VALUE, rig.guest().call(CudaOpcodes.hwsMemImport,
                rig.guest().newId(HandleKind.MEM_ALLOCATION), -1, -1).status());
            assertEquals(Map.of(), broker.imports(), "the broker must count no import that is not open");
            rig.guest().close();
            answers.get();
            assertTrue(rig.join());
        }
    }
}
