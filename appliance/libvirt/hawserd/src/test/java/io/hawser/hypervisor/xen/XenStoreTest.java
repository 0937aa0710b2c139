package io.hawser.hypervisor.xen;

import static io.hawser.hypervisor.xen.ScriptedXenStored.answer;
import static io.hawser.hypervisor.xen.ScriptedXenStored.error;
import static io.hawser.hypervisor.xen.ScriptedXenStored.ok;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(600)
class XenStoreTest {
    private static final Duration LONG = Duration.ofSeconds(300);

    @TempDir
    Path folder;

    private interface Talk<T> {
        T with(XenStore store) throws IOException;
    }

    private List<XenStoreMessage> requests;

    private <T> T talk(Duration timeout, Talk<T> talk, List<Function<XenStoreMessage, byte[]>> answers)
        throws Exception {
        try (ScriptedXenStored peer = new ScriptedXenStored(folder, answers)) {
            try (XenStore store = XenStore.connect(peer.socket(), timeout)) {
                return talk.with(store);
            } finally {
                requests = peer.requests();
            }
        }
    }

    @SafeVarargs
    @SuppressWarnings("varargs")
    private <T> T talk(Talk<T> talk, Function<XenStoreMessage, byte[]>... answers) throws Exception {
        return talk(LONG, talk, List.of(answers));
    }

    private static Talk<Void> run(XenStore.Work work, XenStore[] store) {
        return s -> {
            store[0] = s;
            work.run();
            return null;
        };
    }

    private static String payload(XenStoreMessage message) {
        return new String(message.payload(), StandardCharsets.UTF_8);
    }

    @Test
    void shouldReadAValue() throws Exception {
        assertEquals(Optional.of("10.0.0.1:7654"), talk(s -> s.read("/a/b"), answer("10.0.0.1:7654")));
        assertEquals(1, requests.size());
        assertEquals(XenStoreMessage.READ, requests.get(0).type());
        assertEquals(0, requests.get(0).transaction());
        assertEquals("/a/b\0", payload(requests.get(0)));
    }

    @Test
    void shouldFindNoValueWhereThereIsNone() throws Exception {
        assertEquals(Optional.empty(), talk(s -> s.read("/a"), error("ENOENT")));
        talk(s -> {
            s.remove("/a");
            return null;
        }, error("ENOENT"));
        assertEquals(XenStoreMessage.RM, requests.get(0).type());
    }

    @Test
    void shouldWriteAValueWithoutANulBehindIt() throws Exception {
        talk(s -> {
            s.write("/a", "value");
            s.permit("/a", 7);
            return null;
        }, ok(), ok());
        assertEquals(XenStoreMessage.WRITE, requests.get(0).type());
        assertEquals("/a\0value", payload(requests.get(0)));
        assertEquals(XenStoreMessage.SET_PERMS, requests.get(1).type());
        assertEquals("/a\0n0\0r7\0", payload(requests.get(1)));
    }

    @Test
    void shouldNameTheRefusedRequestWithoutItsValue() throws Exception {
        XenStoreException refused = assertThrows(XenStoreException.class, () -> talk(s -> {
            s.write("/a/token", "id.secret");
            return null;
        }, error("ENOSPC")));
        assertEquals("ENOSPC", refused.error());
        assertEquals("XenStore refuses: write /a/token: ENOSPC", refused.getMessage());
        XenStoreException tooLong = assertThrows(XenStoreException.class, () -> talk(s -> {
            s.write("/a", "x".repeat(XenStoreMessage.MAX_PAYLOAD_BYTES - 2));
            return null;
        }));
        assertEquals("E2BIG", tooLong.error());
        talk(s -> {
            s.write("/a", "x".repeat(XenStoreMessage.MAX_PAYLOAD_BYTES - 3));
            return null;
        }, ok());
    }

    @Test
    void shouldRepeatATransactionAfterAConflict() throws Exception {
        XenStore[] store = new XenStore[1];
        talk(run(() -> store[0].inTransaction(() -> store[0].write("/a", "1")), store), answer("11\0"), ok(),
            error("EAGAIN"), answer("12\0"), ok(), ok());
        assertEquals(List.of(0, 11, 11, 0, 12, 12), requests.stream().map(XenStoreMessage::transaction).toList());
        assertEquals("T\0", payload(requests.get(5)));
    }

    @Test
    void shouldGiveUpATransactionThatNeverSucceeds() throws Exception {
        XenStore[] store = new XenStore[1];
        List<Function<XenStoreMessage, byte[]>> answers = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            answers.add(answer("11\0"));
            answers.add(error("EAGAIN"));
        }
        XenStoreException refused = assertThrows(XenStoreException.class,
            () -> talk(LONG, run(() -> store[0].inTransaction(() -> {}), store), answers));
        assertEquals("EAGAIN", refused.error());
    }

    @Test
    void shouldEndATransactionWhoseWorkFails() throws Exception {
        XenStore[] store = new XenStore[1];
        assertThrows(IllegalStateException.class, () -> talk(run(() -> store[0].inTransaction(() -> {
            throw new IllegalStateException("the work's");
        }), store), answer("11\0"), ok()));
        assertEquals(XenStoreMessage.TRANSACTION_END, requests.get(1).type());
        assertEquals(11, requests.get(1).transaction());
        assertEquals("F\0", payload(requests.get(1)));
    }

    @Test
    void shouldRejectInvalidTransactionNumbers() {
        XenStore[] store = new XenStore[1];
        for (String number : List.of("0\0", "\0", "", "x\0", "-1\0", "4294967296\0")) {
            assertThrows(IOException.class,
                () -> talk(run(() -> store[0].inTransaction(() -> {}), store), answer(number)), number);
        }
    }

    @Test
    void shouldPassOverAFewEvents() throws Exception {
        byte[] event = new XenStoreMessage(XenStoreMessage.WATCH_EVENT, 0, 0, "a\0b\0".getBytes(StandardCharsets.UTF_8))
            .encode().array();
        assertEquals(Optional.of("v"), talk(s -> s.read("/a"),
            request -> join(event, event, answer("v").apply(request))));
        byte[][] many = new byte[1000][];
        Arrays.fill(many, event);
        assertThrows(IOException.class, () -> talk(s -> s.read("/a"), request -> join(many)));
    }

    @Test
    void shouldRefuseEachTruncation() throws Exception {
        int whole = XenStoreMessage.HEADER_BYTES + "value".length();
        for (int cut = 0; cut < whole; cut++) {
            int length = cut;
            assertThrows(IOException.class, () -> talk(s -> s.read("/a"),
                request -> Arrays.copyOf(answer("value").apply(request), length)), "cut at " + cut);
        }
    }

    @Test
    void shouldRefuseLengthsBeyondTheProtocols() {
        for (int length : new int[] {XenStoreMessage.MAX_PAYLOAD_BYTES + 1, Integer.MAX_VALUE, Integer.MIN_VALUE, -1}) {
            IOException refused = assertThrows(IOException.class, () -> talk(s -> s.read("/a"), request -> {
                byte[] bytes = answer("value").apply(request);
                ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder()).putInt(12, length);
                return bytes;
            }));
            assertTrue(refused.getMessage().contains("length=" + Integer.toUnsignedString(length)),
                refused.getMessage());
        }
    }

    @Test
    void shouldRefuseAnswersToSomethingElse() {
        for (int type = 0; type < 30; type++) {
            int answered = type;
            if (type != XenStoreMessage.READ && type != XenStoreMessage.WATCH_EVENT) {
                assertThrows(IOException.class, () -> talk(s -> s.read("/a"),
                    request -> new XenStoreMessage(answered, request.request(), 0, new byte[1]).encode().array()));
            }
        }
        assertThrows(IOException.class, () -> talk(s -> s.read("/a"),
            request -> new XenStoreMessage(XenStoreMessage.READ, request.request() + 1, 0, new byte[1])
                .encode().array()));
    }

    @Test
    void shouldTakeNoHarmFromAnyBytes() throws Exception {
        Random random = new Random(7);
        for (int round = 0; round < 500; round++) {
            try {
                Optional<String> value = talk(s -> s.read("/a"), request -> {
                    byte[] bytes = answer("value").apply(request);
                    for (int change = random.nextInt(4); change >= 0; change--) {
                        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
                    }
                    return bytes;
                });
                assertTrue(value.isEmpty() || value.get().length() <= 5);
            } catch (IOException e) {
                assertFalse(e.getMessage().isEmpty());
            }
        }
    }

    @Test
    void shouldDecodeItsOwnEncoding() throws Exception {
        Random random = new Random(3);
        for (int round = 0; round < 500; round++) {
            byte[] payload = new byte[random.nextInt(XenStoreMessage.MAX_PAYLOAD_BYTES + 1)];
            random.nextBytes(payload);
            XenStoreMessage message =
                new XenStoreMessage(random.nextInt(), random.nextInt(), random.nextInt(), payload);
            ByteBuffer bytes = message.encode();
            assertEquals(payload.length, XenStoreMessage.payloadBytes(bytes));
            ByteBuffer header = bytes.slice(0, XenStoreMessage.HEADER_BYTES);
            XenStoreMessage back = XenStoreMessage.decode(header, payload);
            assertFalse(header.hasRemaining());
            assertEquals(List.of(message.type(), message.request(), message.transaction()),
                List.of(back.type(), back.request(), back.transaction()));
            assertArrayEquals(payload, Arrays.copyOfRange(bytes.array(), XenStoreMessage.HEADER_BYTES, bytes.limit()));
        }
    }

    @Test
    void shouldLimitTheWaitForAnAnswer() {
        IOException late = assertThrows(IOException.class,
            () -> talk(Duration.ofMillis(200), s -> s.read("/a"), List.of(request -> null)));
        assertEquals("XenStore does not answer within 200 ms", late.getMessage());
    }

    @Test
    void shouldFailWhenNobodyListens() {
        assertThrows(IOException.class, () -> XenStore.connect(folder.resolve("none"), LONG));
    }

    private static byte[] join(byte[]... parts) {
        ByteBuffer all = ByteBuffer.allocate(Arrays.stream(parts).mapToInt(p -> p.length).sum());
        for (byte[] part : parts) {
            all.put(part);
        }
        return all.array();
    }
}
