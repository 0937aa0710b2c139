package io.hawser.check;

/**
 * {@code hawser-check --swaps}: programs whose memory does not fit on one GPU together. Exit status: 0 after a
 * measurement, 1 if a program failed, 2 for a wrong command line.
 */
public final class SwapsMain {
    private SwapsMain() {
    }

    /** Measures, and ends the process with the exit status; returns after {@code --help}. */
    public static void main(String[] args) {
        SwapsOptions options;
        try {
            options = SwapsOptions.parse(NativeCuda.here().isUsable(), args);
        } catch (UsageException e) {
            System.exit(Standalone.refuse(e, "--swaps"));
            return;
        }
        if (options.help()) {
            System.out.print(SwapsOptions.USAGE);
            return;
        }
        System.exit(Standalone.run(false, options.keep(), (installation, children, workplace) -> {
            try (Progress progress = new Progress()) {
                SwapsReport report = new Swaps(options, installation, children, workplace, progress).run();
                progress.close();
                System.out.print(report.text(options.markdown()));
                options.json().ifPresent(report::write);
                return report.isGood();
            }
        }));
    }
}
