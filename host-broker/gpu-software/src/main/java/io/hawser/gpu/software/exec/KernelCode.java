package io.hawser.gpu.software.exec;

/** A translated kernel; the generated class is its only implementation. */
public abstract class KernelCode {
    /** For generated constructors. */
    protected KernelCode() {
    }

    /**
     * Runs each runnable thread of a range until it exits or waits. A thread is runnable while its {@code next} is
     * not negative.
     *
     * @param c    the CTA.
     * @param from first thread.
     * @param to   one past the last.
     */
    public abstract void run(CtaSlot c, int from, int to);
}
