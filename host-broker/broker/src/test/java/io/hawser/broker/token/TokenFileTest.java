package io.hawser.broker.token;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.HandshakeProof;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TokenFileTest {
    private static final String DIGEST = "ab".repeat(32);

    @TempDir
    Path folder;

    private Path file(String text) throws IOException {
        Path file = folder.resolve("tokens");
        Files.writeString(file, text);
        return file;
    }

    @Test
    void shouldFindTokensByKeyId() throws IOException {
        TokenFile tokens = new TokenFile(file("# comment\n\nalice:" + DIGEST + ":default\nbob:" + DIGEST + ":big\n"));
        assertEquals("big", tokens.find("bob").orElseThrow().vgpu());
        assertArrayEquals(HexFormat.of().parseHex(DIGEST), tokens.find("alice").orElseThrow().key());
        assertTrue(tokens.find("carol").isEmpty());
    }

    @Test
    void shouldReadTheFileAgainWhenItHasChanged() throws IOException {
        Path file = file("alice:" + DIGEST + ":default\n");
        TokenFile tokens = new TokenFile(file);
        // Same size, same second: only inode and change time differ.
        PrivateFile.write(file, "carol:" + DIGEST + ":default\n");
        assertTrue(tokens.find("alice").isEmpty());
        assertTrue(tokens.find("carol").isPresent());
    }

    @Test
    void shouldKeepTheTokensWhenTheNewFileIsBad() throws IOException {
        Path file = file("alice:" + DIGEST + ":default\n");
        TokenFile tokens = new TokenFile(file);
        Files.writeString(file, "carol:" + DIGEST + ":default\nbob.clear-secret\n");
        assertTrue(tokens.find("alice").isPresent());
        assertTrue(tokens.find("carol").isEmpty());
        assertTrue(tokens.problem().endsWith("line=2"), tokens.problem());
        assertFalse(tokens.problem().contains("clear-secret"), "a clear token must not be quoted");
        Files.writeString(file, "carol:" + DIGEST + ":default\n");
        assertTrue(tokens.find("carol").isPresent());
        assertEquals("", tokens.problem());
    }

    @Test
    void shouldKnowNoTokenWhenTheFileIsGone() throws IOException {
        Path file = file("alice:" + DIGEST + ":default\n");
        TokenFile tokens = new TokenFile(file);
        Files.delete(file);
        assertTrue(tokens.find("alice").isEmpty());
        assertTrue(tokens.problem().contains("gone"), tokens.problem());
    }

    @Test
    void shouldRefuseBadLinesAtTheStart() throws IOException {
        for (String line : new String[] {"alice", "alice:" + DIGEST, "alice:abcd:default",
            "al ice:" + DIGEST + ":default", ":" + DIGEST + ":default", "alice:" + DIGEST.toUpperCase() + ":default",
            "alice:" + DIGEST + ":",
            "alice:" + DIGEST + ":default:more", "a:" + DIGEST + ":d\na:" + DIGEST + ":d"}) {
            Path file = file(line + "\n");
            assertThrows(IOException.class, () -> new TokenFile(file), line);
        }
    }

    @Test
    void shouldMakeTheFirstTokenForItsOwnerOnly() throws IOException {
        Path tokenFile = folder.resolve("tokens");
        Path clear = folder.resolve("default.token");
        assertTrue(Secrets.createTokens(tokenFile, clear));
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(tokenFile)));
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(clear)));
        String[] token = Files.readString(clear).strip().split("\\.");
        assertTrue(token[1].matches("[A-Za-z0-9_-]{43}"), "what a guest accepts as a secret");
        assertArrayEquals(HandshakeProof.key(token[1]), new TokenFile(tokenFile).find(token[0]).orElseThrow().key());
        assertFalse(Files.readString(tokenFile).contains(token[1]), "the secret itself must not be stored");
        String before = Files.readString(tokenFile);
        assertFalse(Secrets.createTokens(tokenFile, clear));
        assertEquals(before, Files.readString(tokenFile));
    }

    @Test
    void shouldCompareTheWholeAdminToken() throws IOException {
        Path file = folder.resolve("admin.token");
        AdminToken admin = new AdminToken(file);
        String token = Files.readString(file).strip();
        assertTrue(admin.matches("Bearer " + token));
        assertTrue(admin.matches("bearer " + token));
        assertFalse(admin.matches(null));
        assertFalse(admin.matches(token));
        assertFalse(admin.matches("Bearer "));
        assertFalse(admin.matches("Bearer " + token.substring(1)));
        assertFalse(admin.matches("Basic " + token));
    }
}
