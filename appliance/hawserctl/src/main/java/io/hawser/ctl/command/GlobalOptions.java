package io.hawser.ctl.command;

import io.hawser.client.Settings;
import io.hawser.ctl.terminal.Terminal;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;

/** The options of all commands; they may stand before or behind the name of the command. */
public abstract class GlobalOptions {
    @Option(names = "--url", paramLabel = "URL", scope = ScopeType.INHERIT,
        description = "The broker: https://host:7655.")
    private String url;
    @Option(names = "--token-file", paramLabel = "FILE", scope = ScopeType.INHERIT,
        description = "A file with the admin token, or a token of OIDC.")
    private String tokenFile;
    @Option(names = "--user", paramLabel = "NAME", scope = ScopeType.INHERIT,
        description = "A user of the broker; asks for the password.")
    private String user;
    @Option(names = "--password-file", paramLabel = "FILE", scope = ScopeType.INHERIT,
        description = "A file with that user's password.")
    private String passwordFile;
    @Option(names = "--ca-file", paramLabel = "FILE", scope = ScopeType.INHERIT,
        description = "Certificates (PEM) to trust under TLS.")
    private String caFile;
    @Option(names = "--state-dir", paramLabel = "DIR", scope = ScopeType.INHERIT,
        description = "State folder of a broker on this machine.")
    private String stateDir;
    @Option(names = "--config-file", paramLabel = "FILE", scope = ScopeType.INHERIT,
        description = "Reads this file instead of ~/.config/hawser/ctl.toml.")
    private String config;
    @Option(names = "--json", scope = ScopeType.INHERIT,
        description = "Prints JSON in the format of the broker's REST interface.")
    private boolean json;
    @Option(names = "--fields", paramLabel = "NAME", split = ",", scope = ScopeType.INHERIT,
        description = "Prints only these fields of the REST interface, for scripts: a line for each object, with tabs "
            + "between the values; owner.id is a field of a field.")
    private List<String> fields;
    @Option(names = {"-h", "--help"}, usageHelp = true, scope = ScopeType.INHERIT, description = "Shows this help.")
    @SuppressWarnings("unused") // picocli sets and reads it
    private boolean help;

    /** The options of the command line that a command belongs to. */
    static GlobalOptions of(CommandSpec spec) {
        return (GlobalOptions) spec.root().userObject();
    }

    /** Whether the output is JSON. */
    final boolean json() {
        return json;
    }

    /** The fields to print; null for the usual output. */
    final List<String> fields() {
        return fields;
    }

    /** The settings that choose broker and credentials. */
    final Settings settings() {
        Map<String, String> options = new HashMap<>();
        put(options, "url", url);
        put(options, "token-file", tokenFile);
        put(options, "user", user);
        put(options, "password-file", passwordFile);
        put(options, "ca-file", caFile);
        put(options, "state-dir", stateDir);
        put(options, "config", config);
        return new Settings(options, System.getenv(),
            Path.of(System.getenv().getOrDefault("HOME", System.getProperty("user.home"))), Terminal::password);
    }

    /** The user of the command line; null if it names none. */
    final String user() {
        return user;
    }

    /** The password file of the command line; null if it names none. */
    final String passwordFile() {
        return passwordFile;
    }

    private static void put(Map<String, String> options, String name, String value) {
        if (value != null) {
            options.put(name, value);
        }
    }
}
