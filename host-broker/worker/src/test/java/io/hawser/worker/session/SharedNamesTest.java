package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.worker.control.WorkerMessage;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import org.junit.jupiter.api.Test;

class SharedNamesTest {
    private final List<WorkerMessage> told = new ArrayList<>();
    private final Queue<Runnable> later = new ArrayDeque<>();
    private final List<SharedNames.Memory> answers = new ArrayList<>();
    private final SharedNames names = new SharedNames(told::add, Runnable::run, (task, delayMs) -> later.add(task));

    @Test
    void shouldAskBrokerOncePerName() throws IOException {
        names.find("a", answers::add);
        names.find("a", answers::add);
        assertEquals(List.of(new WorkerMessage.Find("a")), told);
        names.found("a", "ab".repeat(64), 5);
        assertEquals(2, answers.size());
        assertEquals(5, answers.get(1).bytes());
        names.find("a", answers::add);
        names.notFound("a");
        assertEquals(Arrays.asList(answers.get(0), answers.get(0), null), answers);
        assertThrows(IOException.class, () -> names.found("a", "ab".repeat(63), 5));
        assertThrows(IOException.class, () -> names.found("a", "xy".repeat(64), 5));
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
        names.share("more", new SharedNames.Memory(new byte[64], 5), null, shared::add);
        assertEquals(List.of(false), shared);
    }

    @Test
    void shouldReleaseAsOftenAsTheBrokerFound() throws IOException {
        names.find("a", answers::add);
        names.find("a", answers::add); // waits for the same answer
        names.found("a", "ab".repeat(64), 5);
        names.find("a", answers::add);
        names.found("a", "ab".repeat(64), 5);
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
}
