package io.hawser.broker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.Refusal;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The broker's limit on sessions, which applies to all vGPUs together. */
@Timeout(300)
class SessionLimitIT {
    @TempDir
    private Path stateDir;

    private static TestGuest guest(TestBroker broker, TokenService.Made token) throws IOException {
        TestGuest guest = new TestGuest(broker.broker());
        guest.handshake(token.token().keyId(), token.secret());
        return guest;
    }

    @Test
    void shouldRefuseASessionMoreThanTheBrokerMayHave() throws IOException {
        try (TestBroker broker = TestBroker.start(stateDir, "normal", Map.of("hawser.sessions.max", "1"))) {
            TestBroker.await("the report of the GPUs", () -> !broker.broker().vgpus().gpus().isEmpty());
            broker.vgpu("other", 0, "any");
            TokenService.Made first = broker.token("default");
            TokenService.Made second = broker.token("other");
            try (TestGuest served = guest(broker, first)) {
                assertEquals(RecordLayout.CONTROL_WELCOME, served.receive().opcode());
                try (TestGuest refused = guest(broker, second)) {
                    TestGuest.Answer answer = refused.receive();
                    assertEquals(RecordLayout.CONTROL_REFUSED, answer.opcode());
                    assertTrue(answer.refusedMessage().contains("sessions are all in use: max=1"),
                        answer.refusedMessage());
                }
                assertEquals(1, broker.refusals(Refusal.CAPACITY));
            }
            TestBroker.await("the session's end", () -> broker.broker().sessions().list().isEmpty());
            try (TestGuest next = guest(broker, second)) {
                assertEquals(RecordLayout.CONTROL_WELCOME, next.receive().opcode(),
                    "the ended session must free its place");
            }
        }
    }
}
