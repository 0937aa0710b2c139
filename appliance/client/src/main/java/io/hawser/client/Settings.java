package io.hawser.client;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * Chooses broker and credentials: options, then environment, then {@code ctl.toml}, then a login, then a broker on this
 * machine by its state folder. A secret is only sent to the broker it was named with.
 */
public final class Settings {
    private static final String PREFIX = "HAWSERCTL_";
    private static final Set<String> NAMES = Set.of("url", "token-file", "user", "password-file", "ca-file",
        "state-dir");

    private final Map<String, String> options;
    private final Map<String, String> environment;
    private final Path home;
    private final Function<String, String> passwords;

    /**
     * Makes settings.
     *
     * @param options by their long names without dashes; absent options are missing.
     * @param passwords reads a user's password from the terminal; null if there is no terminal.
     */
    public Settings(Map<String, String> options, Map<String, String> environment, Path home,
        Function<String, String> passwords) {
        this.options = Map.copyOf(options);
        this.environment = environment;
        this.home = home;
        this.passwords = passwords;
    }

    private Path configFolder() {
        String named = environment.getOrDefault("XDG_CONFIG_HOME", "");
        return (named.isEmpty() ? home.resolve(".config") : Path.of(named)).resolve("hawser");
    }

    /** The file of the login. */
    public Path loginFile() {
        return configFolder().resolve("login.json");
    }

    private Map<String, String> config() {
        String named = options.getOrDefault("config", environment.getOrDefault(PREFIX + "CONFIG", ""));
        return named.isEmpty() ? ConfigFile.read(configFolder().resolve("ctl.toml"), false, NAMES)
            : ConfigFile.read(Path.of(named), true, NAMES);
    }

    /**
     * The broker's address and the credentials.
     *
     * @throws ClientException if there is no broker, or a named file cannot be read.
     */
    public Endpoint endpoint() {
        return endpoint(true);
    }

    /** The broker's address without credentials. */
    public Endpoint anonymous() {
        return endpoint(false);
    }

    private Endpoint endpoint(boolean known) {
        Map<String, String> named = named(ofThisBroker(config()));
        Path caFile = named.containsKey("ca-file") ? Path.of(named.get("ca-file")) : null;
        String url = named.get("url");
        Map<String, String> headers = new HashMap<>();
        String identity = known ? credentials(named, headers) : "";
        LoginFile.Login login = identity.isEmpty() ? LoginFile.read(loginFile()) : null;
        if (url == null && !named.containsKey("state-dir") && login != null) {
            url = login.url();
        }
        if (url != null) {
            URI parsed = parse(url);
            if (known && login != null && parse(login.url()).equals(parsed)) {
                headers.put("Cookie", login.cookie());
                identity = "the login";
            }
            return new Endpoint(parsed, headers, identity, caFile);
        }
        Path stateDir = stateDir(named.get("state-dir"));
        URI found = parse(publishedUrl(stateDir));
        if (known && identity.isEmpty()) {
            Path token = stateDir.resolve("admin.token");
            if (Files.isReadable(token)) {
                headers.put("Authorization", "Bearer " + PrivateFiles.readSecret(token));
                identity = token.toString();
            }
        }
        return new Endpoint(found, headers, identity, caFile);
    }

    /** The file's settings. If the command is for another broker than the file's, its secrets are omitted. */
    private Map<String, String> ofThisBroker(Map<String, String> config) {
        String url = options.getOrDefault("url", environment.getOrDefault(PREFIX + "URL", ""));
        boolean otherFolder = options.containsKey("state-dir") && config.containsKey("url");
        boolean otherUrl = !url.isEmpty() && config.containsKey("url") && !parse(url).equals(parse(config.get("url")));
        if (!otherUrl && !otherFolder) {
            return config;
        }
        Map<String, String> rest = new HashMap<>(config);
        rest.keySet().removeAll(List.of("token-file", "user", "password-file"));
        return rest;
    }

    /** The settings of options, environment and file, in this order of precedence. */
    private Map<String, String> named(Map<String, String> config) {
        Map<String, String> named = new HashMap<>();
        for (String name : List.of("url", "token-file", "user", "password-file", "ca-file", "state-dir", "token")) {
            String variable = environment.get(PREFIX + name.toUpperCase(java.util.Locale.ROOT).replace('-', '_'));
            Stream.of(options.get(name), variable, config.get(name)).filter(v -> v != null && !v.isEmpty()).findFirst()
                .ifPresent(value -> named.put(name, value));
        }
        // An option that names another broker or identity overrides all of the file's broker and identity settings.
        if (options.containsKey("state-dir") && !options.containsKey("url")) {
            named.remove("url");
        }
        if (options.containsKey("user")) {
            Stream.of("token", "token-file").filter(name -> !options.containsKey(name)).forEach(named::remove);
        }
        if (options.containsKey("token-file")) {
            named.remove("token");
            if (!options.containsKey("user")) {
                named.remove("user");
            }
        }
        return named;
    }

    private String credentials(Map<String, String> named, Map<String, String> headers) {
        if (named.containsKey("token")) {
            headers.put("Authorization", "Bearer " + named.get("token").strip());
            return PREFIX + "TOKEN";
        } else if (named.containsKey("token-file")) {
            headers.put("Authorization", "Bearer " + PrivateFiles.readSecret(Path.of(named.get("token-file"))));
            return named.get("token-file");
        } else if (named.containsKey("user")) {
            String user = named.get("user");
            headers.put("Authorization", "Basic " + Base64.getEncoder().encodeToString(
                (user + ":" + password(user, named.get("password-file"))).getBytes(StandardCharsets.UTF_8)));
            return "the user " + user;
        }
        return "";
    }

    /** A user's password, from a file or from the terminal. */
    public String password(String user, String file) {
        if (file != null) {
            return PrivateFiles.readSecret(Path.of(file));
        }
        String password = passwords == null ? null : passwords.apply(user);
        if (password == null) {
            throw new ClientException(Failure.INVALID, "the password of " + user
                + " is missing: use --password-file or a terminal");
        }
        return password;
    }

    private Path stateDir(String named) {
        if (named != null) {
            return Path.of(named);
        }
        String ofBroker = environment.getOrDefault("HAWSER_STATE_DIR", "");
        List<Path> places = Stream.of(ofBroker.isEmpty() ? home.resolve(".local/state/hawser") : Path.of(ofBroker),
            Path.of("/var/lib/hawser")).toList();
        return places.stream().filter(place -> Files.exists(place.resolve("endpoints.json"))).findFirst()
            .orElseThrow(() -> new ClientException(Failure.NOT_REACHABLE, "no broker runs on this machine (no "
                + "endpoints.json in " + places.get(0) + " or " + places.get(1) + "); --url or --state-dir names one"));
    }

    private static String publishedUrl(Path stateDir) {
        Path file = stateDir.resolve("endpoints.json");
        try {
            return Item.of(Json.read(Files.readString(file))).text("http");
        } catch (IOException e) {
            throw new ClientException(Failure.NOT_REACHABLE, "no broker uses this state folder: " + stateDir + ": "
                + Problems.of(e));
        }
    }

    private static URI parse(String url) {
        try {
            URI parsed = new URI(url.contains("://") ? url : "http://" + url);
            boolean known = "http".equals(parsed.getScheme()) || "https".equals(parsed.getScheme());
            if (!known || parsed.getHost() == null || parsed.getUserInfo() != null || parsed.getQuery() != null
                || !(parsed.getPath().isEmpty() || parsed.getPath().equals("/"))) {
                throw new URISyntaxException(url, "not of this form");
            }
            return new URI(parsed.getScheme(), null, parsed.getHost(), parsed.getPort(), null, null, null);
        } catch (URISyntaxException e) {
            throw new ClientException(Failure.INVALID, "a URL is like https://host:7655: " + url);
        }
    }
}
