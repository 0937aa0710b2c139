package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.ClientException;
import io.hawser.client.Failure;
import io.hawser.client.Item;
import io.hawser.client.PrivateFiles;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.Table;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code hawserctl tokens}. */
@Command(name = "tokens", description = "Lists, makes and revokes tokens, which give guests access to a vGPU.",
    synopsisSubcommandLabel = "COMMAND", subcommands = {TokensCommand.ListCommand.class,
        TokensCommand.CreateCommand.class, TokensCommand.RevokeCommand.class})
public final class TokensCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "a command is missing: list, create or revoke");
    }

    private static String path(String vgpu) {
        return "/api/v1/vgpus/" + ApiClient.segment(vgpu) + "/tokens";
    }

    private static String time(Item token, String name) {
        return token.has(name) ? Units.local(token.text(name)) : "never";
    }

    /** {@code hawserctl tokens list}. */
    @Command(name = "list", description = "Lists the tokens of a vGPU, or of all, without their secrets.")
    static final class ListCommand extends ApiCommand {
        @Parameters(paramLabel = "VGPU", arity = "0..1", description = "All vGPUs if omitted.")
        private String vgpu;
        @Option(names = "--old-proofs", description = "For all vGPUs: only tokens that old guest packages can use. "
            + "A copy of the database gives access to their vGPUs.")
        private boolean oldProofs;

        @Override
        void prepare() {
            if (vgpu != null && oldProofs) {
                throw new ParameterException(spec().commandLine(), "--old-proofs lists tokens of all vGPUs");
            }
        }

        @Override
        void run(ApiClient client) {
            print(client.get(vgpu != null ? path(vgpu) : "/api/v1/tokens" + (oldProofs ? "?acceptsOldProof=true" : "")),
                answer -> {
                    Table table = new Table("KEY", "VGPU", "CREATED", "EXPIRES", "LAST USED", "OLD PROOF", "NOTE");
                    Item.list(answer).forEach(token -> table.row(token.text("keyId"), token.text("vgpu"),
                        time(token, "created"), time(token, "expires"), time(token, "lastUsed"), oldProof(token),
                        token.text("note")));
                    return table;
                });
        }

        /** Whether an old guest package can use the token, and when it was last used that way. */
        private static String oldProof(Item token) {
            String used = time(token, "oldProofUsed");
            return Boolean.parseBoolean(token.text("acceptsOldProof")) ? "accepted, used " + used : "no";
        }
    }

    /** {@code hawserctl tokens create}. */
    @Command(name = "create", description = "Makes a token. The broker shows its secret once and does not store it.")
    static final class CreateCommand extends ApiCommand {
        @Parameters(paramLabel = "VGPU")
        private String vgpu;
        @Option(names = "--note", paramLabel = "TEXT", description = "The purpose of the token.")
        private String note;
        @Option(names = "--expires", paramLabel = "TIME", description = "30d, 12h, or 2027-01-31T12:00:00Z.")
        private String expires;
        @Option(names = "--out", paramLabel = "FILE",
            description = "Writes the token to a new file (0600) for HAWSER_TOKEN_FILE instead of showing it.")
        private Path out;
        @Option(names = "--replace", description = "Revokes the vGPU's tokens of the same note at once, and replaces "
            + "FILE. The command can be repeated without harm.")
        private boolean replace;
        private final Map<String, Object> body = new LinkedHashMap<>();

        @Override
        void prepare() {
            if (note != null) {
                body.put("note", note);
            }
            if (expires != null) {
                try {
                    body.put("expires", Units.instant(expires, Instant.now()).toString());
                } catch (IllegalArgumentException e) {
                    throw new ParameterException(spec().commandLine(), "--expires: " + e.getMessage(), e);
                }
            }
            if (replace && note == null) {
                throw new ParameterException(spec().commandLine(), "--replace requires --note");
            }
            if (out != null && !replace && Files.exists(out)) {
                // Checked before the broker makes a token whose secret would be lost.
                throw new ClientException(Failure.INVALID, "the file is there already: " + out);
            }
        }

        @Override
        void run(ApiClient client) {
            Object answer = client.change("POST", path(vgpu) + (replace ? "?replace=true" : ""), body);
            Item token = Item.of(answer);
            if (out != null) {
                PrivateFiles.write(out, token.text("token") + "\n");
                Map<String, Object> rest = new LinkedHashMap<>();
                token.fields().forEach((name, value) -> rest.put(name.toString(), value));
                rest.remove("token");
                answer = rest;
            }
            print(answer, ignored -> {
                Table table = new Table("FIELD", "VALUE").row("key", token.text("keyId"))
                    .row("expires", time(token, "expires"));
                return out == null ? table.row("token", token.text("token")) : table.row("token", "in " + out);
            });
        }
    }

    /** {@code hawserctl tokens revoke}. */
    @Command(name = "revoke", description = "Revokes a token and ends its sessions.")
    static final class RevokeCommand extends ApiCommand {
        @Parameters(index = "0", paramLabel = "VGPU")
        private String vgpu;
        @Parameters(index = "1", paramLabel = "KEY")
        private String key;
        @Option(names = {"-y", "--yes"}, description = "Does not ask for confirmation.")
        private boolean yes;

        @Override
        void run(ApiClient client) {
            confirm(yes, "Revoke the token " + key + " of the vGPU " + vgpu + " and end its sessions?");
            client.change("DELETE", path(vgpu) + "/" + ApiClient.segment(key), null);
            printDone("revoked: " + key);
        }
    }
}
