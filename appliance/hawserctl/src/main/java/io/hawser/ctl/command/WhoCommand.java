package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.Item;
import io.hawser.ctl.terminal.Table;
import picocli.CommandLine.Command;

/** {@code hawserctl who}. */
@Command(name = "who", description = "Shows the caller's name and role at the broker.")
public final class WhoCommand extends ApiCommand {
    @Override
    void run(ApiClient client) {
        print(client.get("/api/v1/me"), answer -> new Table("NAME", "ROLE", "VIA", "BROKER").row(
            Item.of(answer).text("name"), Item.of(answer).text("role"), Item.of(answer).text("via"),
            client.endpoint().url()));
    }
}
