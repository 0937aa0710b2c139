package io.hawser.shm.wire;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Map;
import java.util.stream.Collectors;

/** The values of handshake_vectors.txt, which C's handshake_proof_test checks as well. */
final class HandshakeVectors {
    private final Map<String, String> values;

    HandshakeVectors() throws IOException {
        values = Files.readAllLines(Path.of(System.getProperty("hawser.root"),
            "shm-transport/layout/src/test/resources/handshake_vectors.txt")).stream()
            .filter(line -> !line.isBlank() && !line.startsWith("#")).map(line -> line.split(" "))
            .collect(Collectors.toMap(parts -> parts[0], parts -> parts[1]));
    }

    String text(String name) {
        return values.get(name);
    }

    byte[] bytes(String name) {
        return HexFormat.of().parseHex(values.get(name));
    }
}
