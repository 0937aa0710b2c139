package io.hawser.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.HandshakeProof.Purpose;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.TokenKeys;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the proofs between a guest in C, under sanitizers, and a broker in Java, in both directions. */
class ProofInteropTest {
    private static final Path ROOT = Path.of(System.getProperty("hawser.root"));
    private static final HexFormat HEX = HexFormat.of();
    private static final int ROUNDS = 1000;
    private static final int MAX_NAME_BYTES = 300;

    @TempDir
    private Path folder;
    private final Random random = new Random(20261);
    private Process guest;
    private BufferedReader in;
    private Writer out;

    @BeforeEach
    void build() throws Exception {
        io.hawser.shm.layout.Main.main(new String[] {"--language", "c", "--out", folder.toString()});
        Path program = folder.resolve("hws_proof_peer");
        Path c = ROOT.resolve("shm-transport/c");
        Process gcc = new ProcessBuilder("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra",
            "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I" + folder, "-I" + c, "-o",
            program.toString(), Path.of("src/test/c/hws_proof_peer.c").toString(),
            c.resolve("hws_handshake_proof.c").toString(), c.resolve("hws_sha256.c").toString())
            .redirectErrorStream(true).start();
        String output = new String(gcc.getInputStream().readAllBytes());
        assertTrue(gcc.waitFor(120, TimeUnit.SECONDS) && gcc.exitValue() == 0, output);
        guest = new ProcessBuilder(program.toString()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        in = guest.inputReader();
        out = guest.outputWriter();
    }

    @AfterEach
    void end() {
        guest.destroyForcibly();
    }

    private byte[] bytes(int count) {
        byte[] bytes = new byte[count];
        random.nextBytes(bytes);
        return bytes;
    }

    private String[] ask(Purpose purpose, String secret, byte[] nonce, byte[] hello, byte[] serverProof)
        throws IOException {
        out.write(String.join(" ", purpose.name().toLowerCase(Locale.ROOT), secret, HEX.formatHex(nonce),
            HEX.formatHex(hello), HEX.formatHex(serverProof)) + "\n");
        out.flush();
        return in.readLine().split(" ");
    }

    @Test
    void shouldAcceptInEachLanguageTheProofsOfTheOtherAndNoOthers() throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            String secret = Base64.getUrlEncoder().withoutPadding().encodeToString(bytes(1 + random.nextInt(64)));
            TokenKeys keys = TokenKeys.ofSecret(secret);
            byte[] nonce = bytes(RecordLayout.NONCE_SERVER_BYTES);
            byte[] hello = bytes(RecordLayout.HELLO_FIXED_BYTES + random.nextInt(MAX_NAME_BYTES));
            HandshakeProof handshake = new HandshakeProof(nonce, hello);
            Purpose purpose = Purpose.values()[round % Purpose.values().length];
            Purpose other = Purpose.values()[(round + 1) % Purpose.values().length];
            byte[] serverProof = handshake.ofBroker(keys.verifier());

            String[] answer = ask(purpose, secret, nonce, hello, serverProof);
            byte[] proof = HEX.parseHex(answer[0]);
            assertEquals("true", answer[1], "C must know the broker of the token");
            assertTrue(handshake.isOfGuest(purpose, keys.verifier(), proof));
            assertFalse(handshake.isOfGuest(other, keys.verifier(), proof));
            assertEquals(HEX.formatHex(handshake.ofGuest(purpose, keys)), answer[0]);

            serverProof[random.nextInt(serverProof.length)] ^= (byte) (1 << random.nextInt(8));
            assertEquals("false", ask(purpose, secret, nonce, hello, serverProof)[1]);
            proof[random.nextInt(proof.length)] ^= (byte) (1 << random.nextInt(8));
            assertFalse(handshake.isOfGuest(purpose, keys.verifier(), proof));
        }
        out.close();
        assertTrue(guest.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, guest.exitValue());
    }
}
