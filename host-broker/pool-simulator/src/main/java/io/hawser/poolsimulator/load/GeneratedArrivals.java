package io.hawser.poolsimulator.load;

import java.util.Optional;
import java.util.SplittableRandom;

/**
 * Generated arrivals: a Poisson process that fills the pool, then one that keeps the number of vGPUs. Lives are
 * exponential, so those of the first vGPUs need no correction. The same seed gives the same sequence.
 */
public final class GeneratedArrivals implements Arrivals {
    private final SplittableRandom random;
    private final Shape shape;
    private double atMs;
    private int filled;

    /**
     * What to generate.
     *
     * @param vgpus number of vGPUs at a time, on average after the fill.
     * @param fillPerSecond arrivals a second until that many have come.
     * @param lifeMs mean life in milliseconds.
     * @param sizes memory in MiB.
     * @param shares compute shares.
     * @param usedPart part of the vGPUs that are in use, 0 to 1.
     */
    public record Shape(int vgpus, double fillPerSecond, double lifeMs, Mix sizes, Mix shares, double usedPart) {}

    /** Begins with the first arrival. */
    public GeneratedArrivals(Shape shape, long seed) {
        this.shape = shape;
        random = new SplittableRandom(seed);
    }

    @Override
    public Optional<Arrival> next() {
        double perMs = filled < shape.vgpus ? shape.fillPerSecond / 1000 : shape.vgpus / shape.lifeMs;
        filled = Math.min(shape.vgpus, filled + 1);
        atMs += exponential(1 / perMs);
        return Optional.of(new Arrival((long) atMs, Math.max(1, (long) exponential(shape.lifeMs)),
            shape.sizes.pick(random), shape.shares.pick(random), random.nextDouble() < shape.usedPart));
    }

    private double exponential(double mean) {
        return -mean * Math.log(1 - random.nextDouble());
    }
}
