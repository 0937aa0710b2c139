package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.Item;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.Table;
import java.util.Map;
import picocli.CommandLine.Command;

/** {@code hawserctl broker}. */
@Command(name = "broker", description = "Shows the broker's properties.")
public final class BrokerCommand extends ApiCommand {
    @Override
    void run(ApiClient client) {
        print(client.get("/api/v1/broker"), answer -> table(Item.of(answer)));
    }

    /** One line for each field, including fields that this version of hawserctl does not know. */
    private static Table table(Item broker) {
        Table table = new Table("FIELD", "VALUE");
        for (Map.Entry<?, ?> field : broker.fields().entrySet()) {
            String name = field.getKey().toString();
            if (field.getValue() instanceof Map<?, ?>) {
                broker.item(name).fields().forEach((key, value) -> table.row(name + "." + key, value));
            } else {
                table.row(name, name.equals("started") ? Units.local(broker.text(name)) : broker.text(name));
            }
        }
        return table;
    }
}
