package io.hawser.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** {@code ~/.config/hawser/login.json}: the cookie of {@code hawserctl login}. The broker limits its validity. */
public final class LoginFile {
    private LoginFile() {
    }

    /** A login. */
    record Login(String url, String cookie) {}

    /** The stored login; null if there is none. */
    static Login read(Path file) {
        if (!Files.exists(file)) {
            return null;
        }
        try {
            Item item = Item.of(Json.read(Files.readString(file)));
            return new Login(item.text("url"), item.text("cookie"));
        } catch (IOException e) {
            throw new ClientException(Failure.INVALID, "the file cannot be read: " + file + ": " + Problems.of(e));
        }
    }

    /** Stores a login, in place of an earlier one. */
    public static void write(Path file, String url, String cookie) {
        Map<String, Object> login = new LinkedHashMap<>();
        login.put("url", url);
        login.put("cookie", cookie);
        PrivateFiles.write(file, Json.pretty(login) + "\n");
    }

    /** Removes the login. */
    public static void delete(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (IOException e) {
            throw new ClientException(Failure.INVALID, "the file cannot be removed: " + file + ": " + Problems.of(e));
        }
    }
}
