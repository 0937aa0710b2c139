package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.Item;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.Table;
import java.util.Map;
import java.util.Set;
import picocli.CommandLine.Command;

/** {@code hawserctl broker}. */
@Command(name = "broker", description = "Shows the broker's properties.")
public final class BrokerCommand extends ApiCommand {
    private static final Set<String> POOL_FIELDS = Set.of("name", "poolProblem");

    @Override
    void run(ApiClient client) {
        print(client.get("/api/v1/broker"), answer -> table(Item.of(answer)));
    }

    /**
     * One line for each field, including fields that this version of hawserctl does not know. The name and the problem
     * of a member of a pool are empty for most brokers, and then left out.
     */
    private static Table table(Item broker) {
        Table table = new Table("FIELD", "VALUE");
        for (Map.Entry<?, ?> field : broker.fields().entrySet()) {
            String name = field.getKey().toString();
            if (field.getValue() instanceof Map<?, ?>) {
                broker.item(name).fields().forEach((key, value) -> table.row(name + "." + key, value));
            } else if (!POOL_FIELDS.contains(name) || !broker.text(name).isEmpty()) {
                table.row(name, name.equals("started") ? Units.local(broker.text(name)) : broker.text(name));
            }
        }
        return table;
    }
}
