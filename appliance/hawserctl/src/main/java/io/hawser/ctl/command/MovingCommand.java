package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.ClientException;
import io.hawser.client.Endpoint;
import io.hawser.client.Failure;
import io.hawser.client.Item;
import io.hawser.ctl.terminal.Table;
import io.hawser.ctl.terminal.Waiting;
import java.time.Duration;
import java.util.List;
import java.util.Locale;

/** A command whose answer comes after vGPUs with their memory have moved. */
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
    final void move(ApiClient client, String path, Destination to, String text) {
        print(wait(client, path + "/move", to.body(), text),
            answer -> row(new Table("VGPU", "FROM", "TO",
                ">SESSIONS", ">TIME"), Item.of(answer)));
    }

    private static Table row(Table table, Item move) {
        return table.row(move.text("vgpu"), move.text("from"), move.text("to"), move.number("sessions"), time(move));
    }

    /** Moves all vGPUs away from a place. */
    final void drain(ApiClient client, String path, String what, String text) {
        Object answer = wait(client, path + "/drain", null, text);
        print(answer, MovingCommand::drained);
        List<Item> stayed = Item.of(answer).items("stayed");
        if (!stayed.isEmpty()) {
            out().flush();
            throw new ClientException(Failure.REFUSED, "the " + what + " gets no further vGPUs, but has some still: "
                + stayed.size());
        }
    }

    private static Table drained(Object answer) {
        Table table = new Table("VGPU", "GPU", ">SESSIONS", ">TIME", "STAYS BECAUSE");
        for (Item move : Item.of(answer).items("moved")) {
            table.row(move.text("vgpu"), move.text("to"), move.number("sessions"), time(move));
        }
        for (Item stay : Item.of(answer).items("stayed")) {
            table.row(stay.text("vgpu"), Item.of(answer).text("gpu"), "", "", stay.text("reason"));
        }
        return table;
    }

    /** The time of a move. */
    static String time(Item move) {
        return String.format(Locale.ROOT, "%.1f s", move.number("ms") / 1000.0);
    }
}
