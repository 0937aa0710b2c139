package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.Item;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.Table;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code hawserctl audit}. */
@Command(name = "audit", description = "Shows the administrative actions with their users, newest first.")
public final class AuditCommand extends ApiCommand {
    @Option(names = {"-n", "--limit"}, paramLabel = "N", defaultValue = "100",
        description = "The number of entries, up to 1000 (${DEFAULT-VALUE}).")
    private int limit;
    @Option(names = "--before", paramLabel = "SEQ",
        description = "Only entries with a lower number, to read older ones.")
    private Long before;

    @Override
    void run(ApiClient client) {
        print(client.get("/api/v1/audit?limit=" + limit + (before == null ? "" : "&before=" + before)), answer -> {
            Table table = new Table(">SEQ", "TIME", "NAME", "ROLE", "PEER", "ACTION", "TARGET", "OUTCOME", "DETAIL");
            Item.list(answer).forEach(entry -> table.row(entry.number("seq"), Units.local(entry.text("time")),
                entry.text("name"), entry.text("role"), entry.text("peer"), entry.text("action"), entry.text("target"),
                entry.text("outcome"), entry.text("detail")));
            return table;
        });
    }
}
