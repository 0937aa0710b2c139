package io.hawser.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/** Starts programs, each with the environment of its way to a GPU. Any thread. */
final class Guests {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final AtomicInteger COUNT = new AtomicInteger();

    private final Installation installation;
    private final NativeCuda cuda;
    private final Children children;
    private final Path folder;

    Guests(Installation installation, NativeCuda cuda, Children children, Path folder) {
        this.installation = installation;
        this.cuda = cuda;
        this.children = children;
        this.folder = folder;
    }

    /**
     * A started program.
     *
     * @param out file of its standard output.
     * @param err file of its standard error.
     * @param statistics file with Hawser's counters, which a guest program writes at its end.
     */
    record Started(Process process, Path out, Path err, Path statistics) {
        /** Its present standard output. */
        String outText() {
            return text(out);
        }

        /** Its present standard error. */
        String errText() {
            return text(err);
        }

        /** The lines of JSON in its standard output. */
        List<JsonNode> lines() {
            List<JsonNode> lines = new ArrayList<>();
            for (String line : outText().lines().filter(l -> l.startsWith("{")).toList()) {
                try {
                    lines.add(JSON.readTree(line));
                } catch (IOException e) {
                    throw new CheckException("not a line of JSON: " + line, e);
                }
            }
            return lines;
        }

        private static String text(Path file) {
            try {
                return Files.readString(file, StandardCharsets.ISO_8859_1);
            } catch (IOException e) {
                throw new CheckException("the output of a program cannot be read: " + file, e);
            }
        }
    }

    /**
     * Starts a program of the installation.
     *
     * @param broker that serves it; null for a native run.
     */
    Started start(Way way, BrokerChild broker, String name, List<String> arguments) {
        return start(way, broker, name, arguments, null);
    }

    /** The same for a program of this vGPU; null is the default one. */
    Started start(Way way, BrokerChild broker, String name, List<String> arguments, String vgpu) {
        Path program = installation.program(name);
        Path base = folder.resolve("%04d-%s.%s".formatted(COUNT.incrementAndGet(), name.replace('/', '.'),
            way.label()));
        Path out = base.resolveSibling(base.getFileName() + ".out");
        Path err = base.resolveSibling(base.getFileName() + ".err");
        Path statistics = base.resolveSibling(base.getFileName() + ".stats");
        List<String> command = new ArrayList<>();
        if (way != Way.NATIVE && installation.isStatic(name)) {
            command.addAll(List.of(installation.command().toString(), "run"));
        }
        command.add(program.toString());
        command.addAll(arguments);
        Map<String, String> environment =
            way == Way.NATIVE ? nativeEnvironment(program) : guestEnvironment(way, broker, vgpu, statistics);
        return new Started(children.start(command, environment, out, err), out, err, statistics);
    }

    /**
     * Starts a script of a framework.
     *
     * @param way null: without a GPU's libraries, for a script that asks for none.
     */
    Started startScript(Way way, BrokerChild broker, String python, Path script, List<String> arguments) {
        return startScript(way, broker, python, script, arguments, null);
    }

    /** The same for a script of this vGPU; null is the default one. */
    Started startScript(Way way, BrokerChild broker, String python, Path script, List<String> arguments,
        String vgpu) {
        Path base = folder.resolve("%04d-%s.%s".formatted(COUNT.incrementAndGet(), script.getFileName(),
            way == null ? "none" : way.label()));
        Path out = base.resolveSibling(base.getFileName() + ".out");
        Path err = base.resolveSibling(base.getFileName() + ".err");
        Path statistics = base.resolveSibling(base.getFileName() + ".stats");
        Map<String, String> environment = new HashMap<>(System.getenv());
        environment.keySet().removeIf(key -> key.startsWith("HAWSER_"));
        environment.put("PYTHONDONTWRITEBYTECODE", "1");
        List<String> command = new ArrayList<>();
        if (way != null && way != Way.NATIVE) {
            environment.putAll(guestEnvironment(way, broker, vgpu, statistics));
            environment.remove("LD_LIBRARY_PATH"); // hawser run needs none
            command.addAll(List.of(installation.command().toString(), "run"));
        }
        command.addAll(List.of(python, script.toString()));
        command.addAll(arguments);
        return new Started(children.start(command, environment, out, err), out, err, statistics);
    }

    private Map<String, String> nativeEnvironment(Path program) {
        Map<String, String> environment = new HashMap<>(System.getenv());
        environment.keySet().removeIf(key -> key.startsWith("HAWSER_"));
        Set<Path> folders = new LinkedHashSet<>();
        NativeCuda.neededRuntime(program).flatMap(cuda::runtime).ifPresent(folders::add);
        cuda.driver().ifPresent(folders::add);
        environment.put("LD_LIBRARY_PATH", cuda.libraryPath(folders));
        return environment;
    }

    private Map<String, String> guestEnvironment(Way way, BrokerChild broker, String vgpu, Path statistics) {
        Map<String, String> environment = new HashMap<>(broker.guestVariables(way, vgpu));
        environment.put("PATH", System.getenv().getOrDefault("PATH", "/usr/bin:/bin"));
        environment.put("LD_LIBRARY_PATH", installation.libraries().toString());
        environment.put("HAWSER_LIBRARY_DIR", installation.libraries().toString());
        environment.put("HAWSER_STATS", statistics.toString());
        // The machine's configuration must not take part.
        environment.put("HAWSER_CONFIG", "/dev/null");
        environment.put("HAWSER_CONNECT_TIMEOUT_MS", "60000");
        return environment;
    }

    Children children() {
        return children;
    }

    /** The reason why a program cannot run natively despite a driver; empty if it can. */
    String whyNotNative(String name) {
        return NativeCuda.neededRuntime(installation.program(name)).filter(needed -> cuda.runtime(needed).isEmpty())
            .map(needed -> "no " + needed + " found").orElse("");
    }
}
