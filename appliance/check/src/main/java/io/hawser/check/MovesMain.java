package io.hawser.check;

/**
 * {@code hawser-check --moves}: programs whose vGPU moves while they work. Exit status: 0 after a measurement, 1 if a
 * program failed or had another result, 2 for a wrong command line.
 */
public final class MovesMain {
    private MovesMain() {
    }

    /** Measures, and ends the process with the exit status; returns after {@code --help}. */
    public static void main(String[] args) {
        MovesOptions options;
        try {
            options = MovesOptions.parse(NativeCuda.here().isUsable(), args);
        } catch (UsageException e) {
            System.exit(Standalone.refuse(e, "--moves"));
            return;
        }
        if (options.help()) {
            System.out.print(MovesOptions.USAGE);
            return;
        }
        System.exit(Standalone.run(options.carrier() == Way.SHM, options.keep(),
            (installation, children, workplace) -> {
                try (Progress progress = new Progress()) {
                    MovesReport report = new MovesCheck(options, installation, children, workplace, progress).run();
                    progress.close();
                    System.out.print(report.text(options.markdown()));
                    options.json().ifPresent(report::write);
                    return report.isGood();
                }
            }));
    }
}
