package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.ClientException;
import io.hawser.client.EventReader;
import io.hawser.client.Failure;
import io.hawser.client.Item;
import io.hawser.client.Json;
import io.hawser.client.Text;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.Table;
import java.util.List;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code hawserctl events}. */
@Command(name = "events", description = "Shows past events, and with --follow also new ones.")
public final class EventsCommand extends ApiCommand {
    @Option(names = {"-n", "--limit"}, paramLabel = "N", defaultValue = "100",
        description = "The number of past events, up to 1000 (${DEFAULT-VALUE}).")
    private int limit;
    @Option(names = {"-f", "--follow"}, description = "Continues with new events; with --json one line for each.")
    private boolean follow;

    @Override
    void run(ApiClient client) {
        if (!follow) {
            print(client.get("/api/v1/events?limit=" + limit), answer -> {
                Table table = new Table("TIME", "SEVERITY", "KIND", "VGPU", ">SESSION", "TEXT");
                Item.list(answer).reversed().forEach(event -> table.row(cells(event)));
                return table;
            });
            return;
        }
        // Opens the stream first, so that no event is missed; an event in both answers is shown once.
        try (Stream<String> lines = client.stream("/api/v1/stream")) {
            List<Item> before = Item.list(client.get("/api/v1/events?limit=" + limit)).reversed();
            before.forEach(this::show);
            long last = before.isEmpty() ? 0 : before.getLast().number("seq");
            EventReader events = new EventReader(lines.iterator());
            while (events.hasNext()) {
                EventReader.Event event = events.next();
                if (event.name().equals("event") && event.json().number("seq") > last) {
                    show(event.json());
                }
            }
        }
        throw new ClientException(Failure.NOT_REACHABLE, "the broker closed the stream");
    }

    private void show(Item event) {
        if (json()) {
            out().println(Json.line(event.fields()));
        } else {
            Object[] cells = cells(event);
            out().println(Text.printable(String.format("%s  %-8s%-9s%s%s", cells[0], cells[1], cells[2],
                cells[3].equals("-") ? "" : cells[3] + ": ", cells[5])));
        }
        out().flush();
    }

    private static Object[] cells(Item event) {
        return new Object[] {Units.local(event.text("time")), event.text("severity"), event.text("kind"),
            event.text("vgpu").isEmpty() ? "-" : event.text("vgpu"),
            event.number("sessionId") == 0 ? "-" : event.text("sessionId"), event.text("text")};
    }
}
