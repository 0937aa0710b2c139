package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A JVM that rejects its cache still starts, only slower. Its memory map shows whether it uses the cache. */
class StartCacheIT {
    @TempDir
    private Path stateDir;

    private static String maps(long pid) throws IOException {
        return Files.readString(Path.of("/proc/" + pid + "/maps"));
    }

    /** Workers without a jail, so that a test without root can read their maps. */
    static Map<String, String> settings() {
        return Map.of("hawser.worker.pool-size", "1", "hawser.worker.jail", "off");
    }

    static void assertCachesInUse(BrokerProcess broker) throws IOException {
        assertTrue(maps(broker.pid()).contains("/broker.aot"), broker::logEnd);
        List<Long> workers = ProcessHandle.of(broker.pid()).orElseThrow().children().map(ProcessHandle::pid).toList();
        assertFalse(workers.isEmpty(), broker::logEnd);
        for (long worker : workers) {
            assertTrue(maps(worker).contains("/worker.aot"), () -> "pid=" + worker + broker.logEnd());
        }
    }

    @Test
    void shouldStartBrokerAndWorkersFromTheCachesOfTheBuild() throws Exception {
        try (BrokerProcess broker = BrokerProcess.start("start-cache", stateDir.resolve("broker"), settings())) {
            assertCachesInUse(broker);
        }
    }
}
