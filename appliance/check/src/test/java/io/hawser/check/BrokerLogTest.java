package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The lines of a broker's log that make the soak fail. */
class BrokerLogTest {
    @TempDir
    Path folder;

    private List<String> defects(String... lines) throws IOException {
        Path log = folder.resolve("broker.log");
        Files.write(log, List.of(lines));
        return BrokerLog.defects(log);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "WARN  [SessionRegistry] session 3 ended with an error: internal error: java.lang.IllegalStateException: x",
        "INFO  [WorkerLog] [worker 7] Internal error: the link",
        "WARN  [AbstractEventExecutor] A task raised an exception. Task: io.hawser.broker.door.X",
        "WARN  [DefaultPromise] An exception was thrown by io.hawser.broker.door.X.operationComplete()",
        "ERROR [QuarkusErrorHandler] HTTP Request to /api/v1/vgpus failed, error id: 1"})
    void shouldFindADefectOfBrokerOrWorker(String line) throws IOException {
        assertEquals(List.of("broker.log: " + line), defects("INFO started", line, "INFO ended"));
    }

    @Test
    void shouldNotReportErrorsThatAGuestCauses() throws IOException {
        assertEquals(List.of(), defects("WARN  session 3 ended with its worker: worker=5: signal 9",
            "WARN  claim refused: peer=region r slot 2 reason=capacity: the test is over",
            "ERROR a worker failed before it had a session, next start in 250 ms", "region r is over: InternalError"));
    }

    @Test
    void shouldNameTheReasonsOfLostSessions() throws IOException {
        Path log = folder.resolve("warnings.log");
        String lost = "2026-01-01 00:00:00,000 WARN  [SessionRegistry] session 3 ended with its worker: signal 9";
        Files.write(log, List.of("2026-01-01 00:00:00,000 INFO  [Door] a WARN of a guest's", lost));
        assertEquals(List.of("warnings.log: " + lost), BrokerLog.warnings(log));
    }

    @Test
    void shouldFailWithoutALog() {
        assertThrows(CheckException.class, () -> BrokerLog.defects(folder.resolve("none.log")));
    }
}
