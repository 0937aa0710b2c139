package io.hawser.hypervisor.reconcile;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.model.VgpuStatus;
import java.lang.reflect.Proxy;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The order of statuses. Tasks run on the test's thread, when the test runs them. */
class StatusWriterTest {
    private static final UUID DOMAIN = UUID.randomUUID();

    private final Deque<Runnable> tasks = new ArrayDeque<>();
    private final List<String> written = new ArrayList<>();
    private Runnable duringWrite = () -> {};
    private final StatusWriter writer = new StatusWriter((Hypervisor) Proxy.newProxyInstance(
        Hypervisor.class.getClassLoader(), new Class<?>[] {Hypervisor.class}, (proxy, method, arguments) -> {
            assertEquals("setMetadata", method.getName());
            assertEquals(VgpuStatus.NAMESPACE, arguments[1]);
            written.add(arguments[3] == null ? "none" : ((String) arguments[3]).replaceFirst(
                ".* vgpu=\"(\\w*)\".*", "$1"));
            duringWrite.run();
            return null;
        }), new Queue());

    /** Keeps tasks for the test. */
    private final class Queue extends AbstractExecutorService {
        @Override
        public void execute(Runnable task) {
            tasks.add(task);
        }

        @Override
        public void shutdown() {
            tasks.clear();
        }

        @Override
        public List<Runnable> shutdownNow() {
            return List.of();
        }

        @Override
        public boolean isShutdown() {
            return false;
        }

        @Override
        public boolean isTerminated() {
            return false;
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) {
            return false;
        }
    }

    private void write(String vgpu) {
        writer.write(DOMAIN, "web", vgpu == null ? null : new VgpuStatus(VgpuStatus.State.READY, vgpu, "shm",
            Instant.EPOCH, "", "metadata"));
    }

    @Test
    void shouldWriteTheLatestOfWaitingStatuses() {
        write("a");
        write(null);
        write("b");
        tasks.remove().run();
        assertEquals(List.of("b"), written);
        assertTrue(tasks.isEmpty());
    }

    @Test
    void shouldWriteAStatusThatArrivesDuringAWrite() {
        write("a");
        duringWrite = () -> {
            duringWrite = () -> {};
            write(null);
        };
        tasks.remove().run();
        assertEquals(List.of("a", "none"), written);
        assertTrue(tasks.isEmpty(), "one thread at a time for a domain");
    }

    @Test
    void shouldWriteAgainAfterAWriteThatFailed() {
        write("a");
        duringWrite = () -> {
            throw new HypervisorException(HypervisorException.Reason.NOT_RUNNING, "the domain does not run");
        };
        tasks.remove().run();
        duringWrite = () -> {};
        write("b");
        tasks.remove().run();
        assertEquals(List.of("a", "b"), written);
    }

    @Test
    void shouldWriteForEachDomainInAThreadOfItsOwn() {
        write("a");
        writer.write(UUID.randomUUID(), "db", null);
        assertEquals(2, tasks.size());
    }
}
