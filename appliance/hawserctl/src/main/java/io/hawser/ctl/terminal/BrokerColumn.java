package io.hawser.ctl.terminal;

import io.hawser.client.Item;
import java.util.Collection;

/** The column of lists that names the broker of each object in a pool. */
public final class BrokerColumn {
    private BrokerColumn() {
    }

    /**
     * Adds the column BROKER behind the first one if any object names a broker. A broker that is alone names none.
     *
     * @param objects one for each row of the table, in its order.
     */
    public static Table add(Table table, Collection<Item> objects) {
        return objects.stream().allMatch(object -> object.text("broker").isEmpty()) ? table
            : table.withSecond("BROKER", objects.stream().map(object -> object.text("broker"))
                .map(name -> name.isEmpty() ? "-" : name).toList());
    }
}
