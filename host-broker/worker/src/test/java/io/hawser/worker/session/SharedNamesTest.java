package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.Descriptors;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.WorkerMessage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class SharedNamesTest {
    private final List<WorkerMessage> told = new ArrayList<>();
    private final List<Integer> passed = new ArrayList<>();
    private final Queue<Runnable> later = new ArrayDeque<>();
    private final List<SharedNames.Memory> answers = new ArrayList<>();
    private final SharedNames names = new SharedNames(told::add, passed::add, Runnable::run,
        (task, delayMs) -> later.add(task));

    private void found(String handle) throws IOException {
        names.found(new BrokerMessage.Found("a", handle, 5, 0), SharedNames.NO_DESCRIPTOR);
    }

    @Test
    void shouldAskBrokerOncePerName() throws IOException {
        names.find("a", answers::add);
        names.find("a", answers::add);
        assertEquals(List.of(new WorkerMessage.Find("a")), told);
        found("ab".repeat(64));
        assertEquals(2, answers.size());
        assertEquals(5, answers.get(1).bytes());
        names.find("a", answers::add);
        names.notFound("a");
        assertEquals(Arrays.asList(answers.get(0), answers.get(0), null), answers);
        assertThrows(IOException.class, () -> found("xy".repeat(64)));
        assertThrows(IOException.class, () -> found("a"));
    }

    @Test
    void shouldNotFloodTheBroker() {
        for (int i = 0; i < 1000; i++) {
            names.find("n" + i, answers::add);
        }
        assertTrue(told.size() >= 20 && told.size() < 100, () -> "told=" + told.size());
        assertEquals(1, later.size());
        later.remove().run();
        assertEquals(1, later.size());
        assertTrue(told.size() < 1000);
    }

    @Test
    void shouldLimitUnansweredRequests() {
        for (int i = 0; i < 1024; i++) {
            names.find("n" + i, answers::add);
        }
        assertEquals(List.of(), answers);
        names.find("more", answers::add);
        assertEquals(1, answers.size());
        SharedNames.NONE.find("a", answers::add);
        assertEquals(2, answers.size());
        List<Boolean> shared = new ArrayList<>();
        names.share("more", new SharedNames.Memory(new byte[64], 5, 0, SharedNames.NO_DESCRIPTOR), null, shared::add);
        assertEquals(List.of(false), shared);
    }

    @Test
    void shouldReleaseAsOftenAsTheBrokerFound() throws IOException {
        names.find("a", answers::add);
        names.find("a", answers::add); // waits for the same answer
        found("ab".repeat(64));
        names.find("a", answers::add);
        found("ab".repeat(64));
        told.clear();
        names.release("a");
        names.release("a");
        assertEquals(List.of(), told, "one use is left");
        names.release("a");
        assertEquals(List.of(new WorkerMessage.Release("a"), new WorkerMessage.Release("a")), told);
    }

    @Test
    void shouldWaitUntilTheBrokerCounts() {
        List<String> counted = new ArrayList<>();
        names.unshare("a", () -> counted.add("first"));
        names.unshare("a", () -> counted.add("second"));
        assertEquals(List.of(new WorkerMessage.Unshare("a"), new WorkerMessage.Unshare("a")), told);
        assertEquals(List.of(), counted);
        names.unshared("a");
        names.unshared("a");
        assertEquals(List.of("first", "second"), counted);
        SharedNames.NONE.unshare("b", () -> counted.add("without a broker"));
        assertEquals(3, counted.size());
    }

    /** Whether this process has the descriptor of anonymous memory with a name. */
    private static boolean isOpen(String memory) throws IOException {
        try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
            for (Path one : all.toList()) {
                try {
                    if (Files.readSymbolicLink(one).toString().contains(memory + " ")) {
                        return true;
                    }
                } catch (NoSuchFileException e) {
                    // closed since the listing
                }
            }
            return false;
        }
    }

    private SharedNames.Memory memory(String name) throws IOException {
        return new SharedNames.Memory(new byte[1], 5, 2, Descriptors.memory(name, 5));
    }

    @Test
    void shouldPassADescriptorBeforeItsMessageAndCloseIt() throws IOException {
        names.share("a", memory("hawser-first"), null, kept -> {});
        names.share("a", memory("hawser-second"), null, kept -> {}); // waits for the same answer
        assertEquals(1, passed.size());
        assertEquals(List.of(new WorkerMessage.Share("a", "00", 5, 2, 0, true)), told);
        assertFalse(isOpen("hawser-first"));
        assertFalse(isOpen("hawser-second"));
    }

    @Test
    void shouldRefuseADescriptorThatItCannotPass() throws IOException {
        List<Boolean> shared = new ArrayList<>();
        SharedNames without = new SharedNames(told::add, null, Runnable::run, (task, delayMs) -> {});
        without.share("a", memory("hawser-third"), null, shared::add);
        assertEquals(List.of(false), shared);
        assertEquals(List.of(), told);
        assertFalse(isOpen("hawser-third"));
    }

    @Test
    void shouldCloseAFoundDescriptorAfterAllHaveSeenIt() throws IOException {
        List<Boolean> open = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            names.find("a", memory -> {
                try {
                    open.add(memory.isPassed() && isOpen("hawser-fourth"));
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
        names.found(new BrokerMessage.Found("a", "00", 5, 0), Descriptors.memory("hawser-fourth", 5));
        assertEquals(List.of(true, true), open);
        assertFalse(isOpen("hawser-fourth"));
    }
}
