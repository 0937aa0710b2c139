package io.hawser.check;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Moves a vGPU while its program works. One thread. */
final class MovesCheck {
    private static final String PROGRAM = "drv_idle_rounds";
    private static final String SCRIPT = "torch_steps.py";
    private static final String HELPERS = "hawser_cases.py";
    private static final Pattern LONGEST =
        Pattern.compile("^# measured: the longest time between two rounds was ([0-9.]+) ms", Pattern.MULTILINE);
    private static final Pattern SLOWEST = Pattern.compile("^slowest step: ([0-9.]+) ms", Pattern.MULTILINE);
    private static final int MOST_ROUNDS = 60_000; // a sum of more would not fit into an int
    private static final int STEPS_A_MOVE = 50;
    private static final int LOOK_EVERY_MS = 5;
    private static final Duration END_LIMIT = Duration.ofSeconds(1);

    private final MovesOptions options;
    private final Installation installation;
    private final Children children;
    private final Workplace workplace;
    private final Progress progress;
    private final NativeCuda cuda = NativeCuda.here();
    private final Guests guests;
    private final HeldPrograms held;
    private final List<String> skipped = new ArrayList<>();
    private MovesBrokers brokers;

    MovesCheck(MovesOptions options, Installation installation, Children children, Workplace workplace,
        Progress progress) {
        this.options = options;
        this.installation = installation;
        this.children = children;
        this.workplace = workplace;
        this.progress = progress;
        guests = new Guests(installation, cuda, children, workplace.folder());
        held = new HeldPrograms(children, Duration.ofSeconds(options.limitS()));
    }

    /** Runs the sets. @throws CheckException if a program fails. */
    MovesReport run() {
        Instant began = Instant.now();
        List<MovesRun> runs = new ArrayList<>();
        start();
        try {
            for (String set : options.sets()) {
                if (set.equals(MovesOptions.MEMORY)) {
                    runs.add(memory());
                } else {
                    training(set, runs);
                }
            }
        } finally {
            brokers.close();
        }
        return new MovesReport(began, Machine.here(), options, brokers.places(), brokers.gpus(), runs, skipped,
            brokers.defects());
    }

    private void start() {
        List<String> settings = new ArrayList<>();
        if (!options.isNvidia()) {
            settings.add("-Dhawser.gpu.software.devices=2");
        }
        boolean trains = options.sets().stream().anyMatch(set -> !set.equals(MovesOptions.MEMORY));
        boolean isSet = options.settings().stream().anyMatch(s -> s.startsWith(PythonLibraries.SETTING + "="));
        String folders = trains && !isSet
            ? PythonLibraries.folders(guests, children, options.python(), installation.frameworks().resolve(HELPERS))
            : "";
        if (!folders.isEmpty()) {
            settings.add("-D" + PythonLibraries.SETTING + "=" + folders);
        }
        options.settings().forEach(setting -> settings.add("-D" + setting));
        progress.phase(options.database().isEmpty() ? "starting a broker" : "starting two brokers");
        brokers = MovesBrokers.start(installation, children, workplace, cuda, options, settings);
    }

    private void move(String set, List<Long> moveMs, List<String> reasons) {
        MovesBrokers.Moved moved = brokers.move(moveMs.isEmpty() && reasons.isEmpty());
        moved.ms().ifPresent(moveMs::add);
        if (!moved.reason().isEmpty()) {
            reasons.add(moved.reason());
        }
        progress.step("%s: %d moves, %d others", set, moveMs.size(), reasons.size());
    }

    private MovesRun memory() {
        List<String> arguments = List.of("--mib", Integer.toString(options.mib()), "--rounds",
            Integer.toString(MOST_ROUNDS), "--pause-ms", "1", "--until-end", "1");
        List<Long> moveMs = new ArrayList<>();
        List<String> reasons = new ArrayList<>();
        List<Guests.Started> program = List.of(guests.start(options.carrier(), brokers.first(), PROGRAM,
            arguments, brokers.vgpu()));
        try {
            held.awaitReady(program);
            for (int i = 0; i < options.moves(); i++) {
                move(MovesOptions.MEMORY, moveMs, reasons);
            }
            held.release(program);
            held.awaitEnd(program);
        } catch (CheckException e) {
            children.end(program.getFirst().process(), END_LIMIT);
            throw e;
        }
        double wait = number(LONGEST, program.getFirst().outText());
        progress.phase("memory: %d moves, the longest wait %.0f ms", moveMs.size(), wait);
        return new MovesRun(MovesOptions.MEMORY, moveMs, reasons, OptionalDouble.empty(), wait, true);
    }

    /** The number in an output. @throws CheckException if it is not there. */
    static double number(Pattern pattern, String output) {
        Matcher line = pattern.matcher(output);
        if (!line.find()) {
            throw new CheckException("a program must print its longest time:\n" + output);
        }
        return Double.parseDouble(line.group(1));
    }

    private void training(String set, List<MovesRun> runs) {
        Path script = installation.frameworks().resolve(SCRIPT);
        List<String> arguments = List.of(set, Integer.toString(options.steps()));
        progress.step("%s without moves", set);
        Guests.Started alone = start(script, arguments);
        if (!children.await(alone.process(), Duration.ofSeconds(options.limitS()))) {
            throw new CheckException(set + " did not end within " + options.limitS() + " s: " + alone.out());
        }
        if (alone.process().exitValue() == ProgramRun.UNSUPPORTED) {
            skipped.add(set + ": PyTorch is not installed for " + options.python());
            return;
        }
        held.awaitEnd(List.of(alone));
        List<Long> moveMs = new ArrayList<>();
        List<String> reasons = new ArrayList<>();
        Guests.Started moving = start(script, arguments);
        for (int steps = STEPS_A_MOVE; steps < options.steps(); steps += STEPS_A_MOVE) {
            int wanted = steps;
            await(moving, () -> losses(moving.outText()).size() >= wanted);
            if (moving.process().isAlive()) {
                move(set, moveMs, reasons);
            }
        }
        held.awaitEnd(List.of(moving));
        boolean isEqual = losses(moving.outText()).equals(losses(alone.outText()))
            && losses(alone.outText()).size() == options.steps();
        double wait = number(SLOWEST, moving.outText());
        progress.phase("%s: %d moves, the longest step %.0f ms, losses %s", set, moveMs.size(), wait,
            isEqual ? "equal" : "DIFFERENT");
        runs.add(new MovesRun(set, moveMs, reasons, OptionalDouble.of(number(SLOWEST, alone.outText())), wait,
            isEqual));
    }

    private Guests.Started start(Path script, List<String> arguments) {
        return guests.startScript(options.carrier(), brokers.first(), options.python(), script, arguments,
            brokers.vgpu());
    }

    /** The losses of the steps that a script has done. */
    static List<String> losses(String output) {
        return output.lines().filter(line -> line.startsWith("loss ")).toList();
    }

    private void await(Guests.Started program, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(options.limitS()).toNanos();
        while (program.process().isAlive() && !condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new CheckException("a program did not go on within " + options.limitS() + " s: "
                    + program.out());
            }
            try {
                Thread.sleep(LOOK_EVERY_MS); // a file has no event
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new CheckException("interrupted", e);
            }
        }
    }
}
