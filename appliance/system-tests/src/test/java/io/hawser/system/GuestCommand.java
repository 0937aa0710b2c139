package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Runs of the guest's `hawser` command. */
final class GuestCommand {
    private static final long LIMIT_S = 300;

    /** The exit code of an ended command, and both its outputs in one. */
    record Ended(int exit, String out) {}

    private GuestCommand() {
    }

    static Ended run(Map<String, String> variables, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(Chain.COMMAND.toString()));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        Map<String, String> environment = new HashMap<>(variables);
        environment.put("PATH", "/usr/bin:/bin");
        environment.put("HAWSER_CONFIG", "/dev/null");
        environment.put("HAWSER_CONNECT_TIMEOUT_MS", "60000");
        builder.environment().clear();
        builder.environment().putAll(environment);
        Process process = builder.start();
        process.getOutputStream().close();
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(process.waitFor(LIMIT_S, TimeUnit.SECONDS), "hawser does not end");
        return new Ended(process.exitValue(), out);
    }
}
