package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.Endpoint;
import io.hawser.client.Item;
import io.hawser.ctl.terminal.Table;
import io.hawser.ctl.terminal.Waiting;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;

/** A command whose answer comes after vGPUs with their memory have moved to another GPU. */
abstract class MovingCommand extends ApiCommand {
    /** The broker bounds each move by the vGPU's memory; a drain makes many moves. */
    private static final Duration ANSWER_LIMIT = Duration.ofHours(1);

    @Override
    ApiClient connect(Endpoint endpoint) {
        return new ApiClient(endpoint, ANSWER_LIMIT);
    }

    /** Sends the request, and shows the time on a terminal. */
    final Object wait(ApiClient client, String path, Object body, String text) {
        try (Waiting waiting = Waiting.start(spec().commandLine().getErr(), text)) {
            return client.change("POST", path, body);
        }
    }

    /** Moves one vGPU. */
    final void move(ApiClient client, String path, String gpu, String text) {
        print(wait(client, path + "/move", Map.of("gpu", gpu), text), answer -> row(new Table("VGPU", "FROM", "TO",
            ">SESSIONS", ">TIME"), Item.of(answer)));
    }

    private static Table row(Table table, Item move) {
        return table.row(move.text("vgpu"), move.text("from"), move.text("to"), move.number("sessions"), time(move));
    }

    /** The time of a move. */
    static String time(Item move) {
        return String.format(Locale.ROOT, "%.1f s", move.number("ms") / 1000.0);
    }
}
