package io.hawser.broker.store;

import static io.hawser.broker.TestBroker.done;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.token.Token;
import io.hawser.shm.wire.HandshakeProof.Purpose;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.TokenKeys;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tokens of a broker that kept no verifiers yet, with old and new guest packages. */
class OldTokensIT {
    private static final String SECRET = "c2VjcmV0IG9mIGFuIG9sZCB0b2tlbiwgMzIgYnl0ZXM";
    private static final byte[] DIGEST = TokenKeys.ofSecret(SECRET).digest();

    @TempDir
    Path stateDir;

    @BeforeEach
    void leaveAnOldDatabase() throws Exception {
        OldDatabase.fill(source(), "old", SECRET);
        Files.setPosixFilePermissions(stateDir.resolve("broker.mv.db"), PosixFilePermissions.fromString("rw-------"));
    }

    private JdbcDataSource source() {
        JdbcDataSource source = new JdbcDataSource();
        source.setUrl("jdbc:h2:file:" + stateDir.resolve("broker"));
        source.setUser("sa");
        source.setPassword("");
        return source;
    }

    private TestBroker broker(String... settings) {
        return TestBroker.start(stateDir, "normal", settings.length == 0 ? Map.of() : Map.of(settings[0], settings[1]));
    }

    private static Token token(TestBroker broker) throws Exception {
        return broker.broker().tokenService().list("old").getFirst();
    }

    private static int newGuest(TestBroker broker) throws IOException {
        try (TestGuest guest = new TestGuest(broker.broker())) {
            guest.send(guest.proof(Purpose.STATUS, guest.challenge("old"), SECRET));
            return guest.receive().opcode();
        }
    }

    private static int oldGuest(TestBroker broker, byte[] digest) throws IOException {
        try (TestGuest guest = new TestGuest(broker.broker())) {
            guest.oldHandshake(Purpose.STATUS, "old", digest);
            return guest.receive().opcode();
        }
    }

    /** Searches the whole file, deleted rows included. H2 compresses the file when it rewrites it. */
    private boolean isDigestInTheFile() throws IOException {
        return Files.readString(stateDir.resolve("broker.mv.db"), StandardCharsets.ISO_8859_1)
            .contains(HexFormat.of().formatHex(DIGEST));
    }

    /** All tables as SQL. */
    private String dump() throws SQLException {
        StringBuilder dump = new StringBuilder();
        try (Connection connection = source().getConnection(); Statement statement = connection.createStatement();
            ResultSet lines = statement.executeQuery("script")) {
            while (lines.next()) {
                dump.append(lines.getString(1)).append('\n');
            }
        }
        return dump.toString();
    }

    @Test
    void shouldLetGuestsOfBothVersionsInWithATokenOfAnOlderBroker() throws Exception {
        try (TestBroker broker = broker()) {
            try (TestGuest guest = new TestGuest(broker.broker())) {
                guest.oldHandshake("old", SECRET);
                assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
            }
            TestBroker.await("the session's end", () -> broker.broker().sessions().list().isEmpty());
            try (TestGuest guest = new TestGuest(broker.broker())) {
                guest.handshake("old", SECRET);
                assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
            }
            assertEquals(RecordLayout.CONTROL_STATUS, oldGuest(broker, DIGEST));
        }
    }

    @Test
    void shouldKeepAndListTheDigestWhileAnOldGuestUsesTheToken() throws Exception {
        try (TestBroker broker = broker()) {
            assertTrue(token(broker).acceptsOldProof());
            assertEquals(OldDatabase.LAST_USED, token(broker).keys().oldProofUsed(),
                "the last use must count as an old proof");
            Instant before = Instant.now();
            assertEquals(RecordLayout.CONTROL_STATUS, oldGuest(broker, DIGEST));
            assertFalse(token(broker).keys().oldProofUsed().isBefore(before.minusSeconds(1)));
            assertEquals(RecordLayout.CONTROL_STATUS, newGuest(broker));
            assertTrue(token(broker).acceptsOldProof(), "the token must accept old proofs while an old guest uses it");
            assertEquals(RecordLayout.CONTROL_STATUS, oldGuest(broker, DIGEST));
            done(broker.broker().tokenService().noteUses());
        }
        try (TestBroker broker = broker()) {
            assertTrue(token(broker).acceptsOldProof(), "the token must accept old proofs after a restart");
            assertEquals(List.of("old"), broker.broker().tokenService().all().stream()
                .filter(Token::acceptsOldProof).map(Token::keyId).toList(),
                "the token of the first start must have no digest");
        }
    }

    @Test
    void shouldDropTheDigestOnceOnlyNewGuestsUseTheToken() throws Exception {
        try (TestBroker broker = broker()) {
            assertEquals(RecordLayout.CONTROL_STATUS, newGuest(broker)); // the last old proof is long ago
            assertFalse(token(broker).acceptsOldProof());
            assertEquals(RecordLayout.CONTROL_REFUSED, oldGuest(broker, DIGEST));
            assertEquals(1, broker.refusals(Refusal.TOKEN));
            assertEquals(RecordLayout.CONTROL_STATUS, newGuest(broker));
        }
        try (TestBroker broker = broker()) {
            assertNull(token(broker).keys().digest());
            assertFalse(isDigestInTheFile(), "deleted rows must not stay readable");
            assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(
                stateDir.resolve("broker.mv.db"))));
            assertEquals(RecordLayout.CONTROL_STATUS, newGuest(broker));
        }
    }

    @Test
    void shouldDropAllDigestsWhenOldProofsAreTurnedOff() throws Exception {
        try (TestBroker broker = broker("hawser.tokens.old-proofs", "false")) {
            try (TestGuest guest = new TestGuest(broker.broker())) {
                guest.send(TestGuest.hello(RecordLayout.OLD_HANDSHAKE_VERSION, TestBroker.DESCRIPTION_HASH, "old"));
                TestGuest.Answer answer = guest.receive();
                assertEquals(Refusal.VERSION.code(), answer.refusedCode());
                assertEquals("this broker takes no proof of old guest packages, which must be updated: guest=1 "
                    + "broker=2", answer.refusedMessage());
            }
            assertFalse(token(broker).acceptsOldProof());
            assertFalse(isDigestInTheFile());
            assertEquals(RecordLayout.CONTROL_STATUS, newGuest(broker));
        }
        try (TestBroker broker = broker()) {
            assertEquals(RecordLayout.CONTROL_REFUSED, oldGuest(broker, DIGEST), "the digest must stay deleted");
        }
    }

    /** A stolen database must not contain the keys that a guest needs. */
    @Test
    void shouldLetNobodyInByWhatTheDatabaseHas() throws Exception {
        try (TestBroker broker = broker("hawser.tokens.old-proofs", "false")) {
            assertEquals(RecordLayout.CONTROL_STATUS, newGuest(broker));
        }
        String dump = dump();
        TokenKeys keys = TokenKeys.ofSecret(SECRET);
        assertTrue(dump.contains(HexFormat.of().formatHex(keys.verifier().storedKey())), dump);
        assertFalse(dump.contains(HexFormat.of().formatHex(DIGEST)), dump);
        assertFalse(dump.contains(HexFormat.of().formatHex(keys.clientKey())), dump);
        assertFalse(dump.contains(SECRET), dump);
        try (TestBroker broker = broker()) {
            TokenKeys.Verifier found = token(broker).keys().verifier();
            for (byte[] stolen : List.of(found.storedKey(), found.serverKey())) {
                assertEquals(RecordLayout.CONTROL_REFUSED, oldGuest(broker, stolen));
                try (TestGuest guest = new TestGuest(broker.broker())) {
                    byte[] challenge = guest.challenge("old");
                    guest.send(TestGuest.proof(RecordLayout.CONTROL_ASK_STATUS,
                        guest.proofs(challenge).ofGuest(Purpose.STATUS, TokenKeys.ofDigest(stolen))));
                    assertEquals(RecordLayout.CONTROL_REFUSED, guest.receive().opcode());
                }
            }
        }
    }
}
