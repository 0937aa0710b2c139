package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.ClientException;
import io.hawser.client.EventReader;
import io.hawser.client.Failure;
import io.hawser.client.Json;
import io.hawser.ctl.terminal.LivePicture;
import io.hawser.ctl.terminal.Terminal;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code hawserctl top}. */
@Command(name = "top", description = "Shows GPUs, vGPUs and sessions each second, the busiest sessions"
    + " first. Without a terminal it prints one picture after the other.")
public final class TopCommand extends ApiCommand {
    private static final String ALTERNATE_SCREEN = "\033[?1049h\033[?25l";
    private static final String NORMAL_SCREEN = "\033[?25h\033[?1049l";

    @Option(names = {"-n", "--count"}, paramLabel = "N", description = "Exits after N pictures.")
    private Integer count;

    @Override
    void run(ApiClient client) {
        boolean window = Terminal.isInteractive() && !json();
        Runnable restore = () -> {
            out().print(NORMAL_SCREEN);
            out().flush();
        };
        Thread atExit = new Thread(restore);
        try (Stream<String> lines = client.stream("/api/v1/stream")) {
            if (window) {
                out().print(ALTERNATE_SCREEN);
                Runtime.getRuntime().addShutdownHook(atExit); // runs also after Ctrl-C
            }
            show(new EventReader(lines.iterator()), window);
        } finally {
            if (window) {
                Runtime.getRuntime().removeShutdownHook(atExit);
                restore.run();
            }
        }
    }

    private void show(EventReader events, boolean window) {
        LivePicture picture = new LivePicture();
        int shown = 0;
        while (count == null || shown < count) {
            if (!events.hasNext()) {
                throw new ClientException(Failure.NOT_REACHABLE, "the broker closed the stream");
            }
            EventReader.Event event = events.next();
            if (!picture.apply(event)) {
                continue;
            }
            if (json()) {
                out().println(Json.line(Map.of(event.name(), event.json().fields())));
            } else if (window) {
                draw(picture.lines());
            } else {
                picture.lines().forEach(out()::println);
                out().println();
            }
            out().flush();
            shown++;
        }
    }

    /** Draws over the previous picture, so that the screen does not flicker. */
    private void draw(List<String> lines) {
        Terminal.Size size = Terminal.size();
        StringBuilder screen = new StringBuilder("\033[H");
        for (int i = 0; i < Math.min(lines.size(), size.rows()); i++) {
            String line = lines.get(i);
            int end = line.offsetByCodePoints(0, Math.min(size.columns(), line.codePointCount(0, line.length())));
            screen.append(i == 0 ? "" : "\r\n").append(line, 0, end).append("\033[K");
        }
        out().print(screen.append("\033[J"));
    }
}
