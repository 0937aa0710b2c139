package io.hawser.check;

/**
 * The frame of a check with a broker of its own, in a folder of its own: {@code --soak}, {@code --starts} and
 * {@code --errors}.
 */
final class Standalone {
    /** What such a check does. */
    @FunctionalInterface
    interface Check {
        /**
         * Runs it.
         *
         * @return whether all is well; if not, logs and outputs stay.
         */
        boolean run(Installation installation, Children children, Workplace workplace) throws CheckException;
    }

    private Standalone() {
    }

    /**
     * Makes the folder, runs the check and ends its processes, also when the JVM is ended.
     *
     * @param region whether guests need a region of shared memory.
     * @param keep whether logs and outputs stay in any case.
     * @return the exit status.
     */
    static int run(boolean region, boolean keep, Check check) {
        try (Workplace workplace = Workplace.make(region, keep); Children children = new Children()) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                children.close();
                workplace.close();
            }));
            String failure = "";
            int status = CheckException.FAILED;
            try {
                if (check.run(Installation.ofLauncher(), children, workplace)) {
                    return 0;
                }
            } catch (CheckException e) {
                failure = e.getMessage();
                status = e.status();
            }
            workplace.keep();
            if (failure.isEmpty()) {
                System.out.println("logs and outputs: " + workplace.folder());
            } else {
                System.err.println("hawser-check: " + failure + "\nlogs and outputs: " + workplace.folder());
            }
            return status;
        }
    }

    /** Prints the error of a command line. Returns the exit status. */
    static int refuse(UsageException e, String mode) {
        System.err.println("hawser-check: " + e.getMessage() + " (see " + mode + " --help)");
        return CheckException.REFUSED;
    }
}
