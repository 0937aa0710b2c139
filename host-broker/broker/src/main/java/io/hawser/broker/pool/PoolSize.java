package io.hawser.broker.pool;

/**
 * The number of workers that a pool keeps ready. It follows the demand: each start that finds no ready worker adds one,
 * up to a limit. At the end of each idle time, the pool gives up the workers that no start has needed since the last
 * one. It thus grows at once and shrinks late, so that regular bursts do not start and end the same workers again and
 * again. The limits bound what guests can cause. One thread.
 */
final class PoolSize {
    private int least;
    private int grown; // workers beyond the least
    private int spare; // the fewest ready workers since the last review

    /** Makes a size without growth. */
    PoolSize(int least) {
        this.least = least;
    }

    /** Ready workers that the pool aims for. */
    int target() {
        return least + grown;
    }

    /** Workers that demand has added. */
    int grown() {
        return grown;
    }

    /** Sets the size without demand. */
    void setLeast(int wanted) {
        least = wanted;
        grown = wanted == 0 ? 0 : grown;
    }

    /**
     * A start has found no ready worker.
     *
     * @param mostGrown workers that demand may add now. A pool that keeps no worker ready does not grow.
     */
    void grow(int mostGrown) {
        spare = 0;
        if (least > 0 && grown < mostGrown) {
            grown++;
        }
    }

    /** Gives up workers that demand has added beyond a limit, because others need the memory. */
    void limit(int mostGrown) {
        grown = Math.min(grown, Math.max(0, mostGrown));
    }

    /** Takes note of the number of ready workers after each change. */
    void note(int ready) {
        spare = Math.min(spare, ready);
    }

    /**
     * Ends an idle time: gives up the workers that no start has needed.
     *
     * @param ready present number of ready workers.
     */
    void review(int ready) {
        grown -= Math.min(grown, Math.min(spare, ready));
        spare = ready;
    }
}
