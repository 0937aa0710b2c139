package io.hawser.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SettingsTest {
    @TempDir
    Path home;

    private Endpoint endpoint(Map<String, String> options, Map<String, String> environment) {
        return new Settings(options, environment, home, user -> "asked").endpoint();
    }

    private Path file(String name, String text) throws IOException {
        Path file = home.resolve(name);
        Files.createDirectories(file.getParent());
        return Files.writeString(file, text);
    }

    private Path broker(String folder, String url) throws IOException {
        file(folder + "/endpoints.json", "{\"guest\":\"127.0.0.1:1\",\"http\":\"" + url + "\"}");
        file(folder + "/admin.token", "the-secret-of-" + url + "\n");
        return home.resolve(folder);
    }

    private Failure failure(Map<String, String> options, Map<String, String> environment) {
        return assertThrows(ClientException.class, () -> endpoint(options, environment)).failure();
    }

    @Test
    void shouldFindTheBrokerOfThisMachineWithItsToken() throws IOException {
        broker(".local/state/hawser", "http://127.0.0.1:7655");
        Endpoint found = endpoint(Map.of(), Map.of());
        assertEquals("http://127.0.0.1:7655", found.url().toString());
        assertEquals(Map.of("Authorization", "Bearer the-secret-of-http://127.0.0.1:7655"), found.headers());
        broker("other", "http://127.0.0.1:9");
        assertEquals("http://127.0.0.1:9", endpoint(Map.of("state-dir", home.resolve("other").toString()), Map.of())
            .url().toString());
        assertEquals("http://127.0.0.1:9", endpoint(Map.of(), Map.of("HAWSERCTL_STATE_DIR",
            home.resolve("other").toString())).url().toString());
        assertEquals(Failure.NOT_REACHABLE, failure(Map.of("state-dir", home.resolve("none").toString()), Map.of()));
    }

    @Test
    void shouldFailWithoutABroker() {
        assertEquals(Failure.NOT_REACHABLE, failure(Map.of(), Map.of()));
    }

    @Test
    void shouldTakeOptionsBeforeTheEnvironmentBeforeTheFile() throws IOException {
        file(".config/hawser/ctl.toml", "# mine\nurl = \"https://file:7655\" # here\nca-file = '/etc/ca.pem'\n");
        assertEquals("https://file:7655", endpoint(Map.of(), Map.of()).url().toString());
        assertEquals(Path.of("/etc/ca.pem"), endpoint(Map.of(), Map.of()).caFile());
        Map<String, String> environment = Map.of("HAWSERCTL_URL", "environment:1");
        assertEquals("http://environment:1", endpoint(Map.of(), environment).url().toString());
        assertEquals("http://option:2", endpoint(Map.of("url", "http://option:2/"), environment).url().toString());
        Path other = file("other.toml", "url = \"http://named:3\"\n");
        assertEquals("http://named:3", endpoint(Map.of("config", other.toString()), Map.of()).url().toString());
        assertEquals(Failure.INVALID, failure(Map.of("config", home.resolve("none").toString()), Map.of()));
    }

    @Test
    void shouldNotTakeASecretToAnotherBroker() throws IOException {
        broker(".local/state/hawser", "http://127.0.0.1:7655");
        file("token", "of-the-file\n");
        file(".config/hawser/ctl.toml", "url = \"https://file:7655\"\ntoken-file = \""
            + home.resolve("token") + "\"\n");
        assertEquals(Map.of("Authorization", "Bearer of-the-file"), endpoint(Map.of(), Map.of()).headers());
        assertEquals(Map.of(), endpoint(Map.of("url", "http://elsewhere:1"), Map.of()).headers());
        assertEquals(Map.of(), endpoint(Map.of(), Map.of("HAWSERCTL_URL", "http://elsewhere:1")).headers());
        assertEquals(Map.of("Authorization", "Bearer of-the-file"),
            endpoint(Map.of("url", "https://file:7655/"), Map.of()).headers());
        assertEquals(Map.of("Authorization", "Bearer the-secret-of-http://127.0.0.1:7655"),
            endpoint(Map.of("state-dir", home.resolve(".local/state/hawser").toString()), Map.of()).headers());
        LoginFile.write(home.resolve(".config/hawser/login.json"), "https://login:1", "hawser_session=c");
        assertEquals(Map.of(), endpoint(Map.of("url", "https://login:2"), Map.of()).headers());
        assertEquals(Map.of("Cookie", "hawser_session=c"),
            endpoint(Map.of("url", "https://login:1"), Map.of()).headers());
    }

    @Test
    void shouldUseALoginWhenNothingElseIsNamed() throws IOException {
        Path file = home.resolve(".config/hawser/login.json");
        LoginFile.write(file, "https://login:1", "hawser_session=c");
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
        Endpoint found = endpoint(Map.of(), Map.of());
        assertEquals("https://login:1", found.url().toString());
        assertEquals(Map.of("Cookie", "hawser_session=c"), found.headers());
        Endpoint anonymous = new Settings(Map.of(), Map.of(), home, null).anonymous();
        assertEquals(Map.of(), anonymous.headers());
        LoginFile.delete(file);
        assertEquals(Failure.NOT_REACHABLE, failure(Map.of(), Map.of()));
    }

    @Test
    void shouldSendNameAndPassword() throws IOException {
        Map<String, String> options = new HashMap<>(Map.of("url", "http://a:1", "user", "Jürgen"));
        assertEquals("Basic SsO8cmdlbjphc2tlZA==", endpoint(options, Map.of()).headers().get("Authorization"));
        options.put("password-file", file("password", "from a file\n").toString());
        assertEquals("Basic SsO8cmdlbjpmcm9tIGEgZmlsZQ==", endpoint(options, Map.of()).headers().get("Authorization"));
        options.put("password-file", file("empty", "\n").toString());
        assertEquals(Failure.INVALID, failure(options, Map.of()));
        ClientException nobody = assertThrows(ClientException.class, () -> new Settings(Map.of("url", "http://a:1",
            "user", "u"), Map.of(), home, null).endpoint());
        assertTrue(nobody.getMessage().contains("--password-file"), nobody.getMessage());
    }

    @Test
    void shouldNameTheLineThatIsWrong() throws IOException {
        for (String text : new String[] {"url = \"a\"\nurl https", "\nuri = \"x\"", "url = \"open", "[broker]"}) {
            file(".config/hawser/ctl.toml", text);
            ClientException failure = assertThrows(ClientException.class, () -> endpoint(Map.of(), Map.of()));
            assertEquals(Failure.INVALID, failure.failure());
            assertTrue(failure.getMessage().contains("line " + (text.startsWith("url = \"a\"") || text.startsWith("\n")
                ? 2 : 1)), failure.getMessage());
        }
    }

    @Test
    void shouldRejectInvalidUrls() {
        for (String url : new String[] {"ftp://a:1", "http://", "http://a:1/path", "http://u:p@a:1", "http://a:1?q",
            "a b"}) {
            ClientException failure = assertThrows(ClientException.class,
                () -> endpoint(Map.of("url", url), Map.of()), url);
            assertEquals(Failure.INVALID, failure.failure());
            assertFalse(failure.getMessage().isBlank());
        }
    }
}
