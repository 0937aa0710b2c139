package io.hawser.broker.turns;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.turns.TurnPage;
import io.hawser.turns.Seat;
import java.io.IOException;
import java.util.List;

/** One worker's page and bell. Any thread makes it; then only the scheduler uses and closes it. */
final class TurnTicket implements Seat {
    /** Rings in a window before the scheduler mutes the bell until the window's end; it still reads the page. */
    private static final int MAX_RINGS_A_WINDOW = 20_000;
    private static final long WINDOW_NS = 1_000_000_000;

    final String vgpu;
    final int weight;
    final List<String> gpus;
    final EventFd bell;
    private final TurnPage page;
    private final int pageDescriptor;
    private long windowNs;
    private int rings;

    TurnTicket(String vgpu, int weight, List<String> gpus) throws IOException {
        this.vgpu = vgpu;
        this.weight = weight;
        this.gpus = List.copyOf(gpus);
        pageDescriptor = TurnPage.create();
        TurnPage mapped = null;
        try {
            mapped = TurnPage.map(pageDescriptor);
            bell = EventFd.create();
        } catch (IOException e) {
            if (mapped != null) {
                mapped.close();
            }
            Descriptors.close(pageDescriptor);
            throw e;
        }
        page = mapped;
    }

    /** Descriptor of the page that the worker maps. */
    int pageDescriptor() {
        return pageDescriptor;
    }

    @Override
    public int state() {
        return page.state();
    }

    @Override
    public void setPermit(int permit) {
        page.setPermit(permit);
    }

    @Override
    public int copied() {
        return page.copied();
    }

    @Override
    public void setCopies(int copies) {
        page.setCopies(copies);
    }

    /**
     * Resets the bell's count.
     *
     * @return whether the bell is still below its limit.
     */
    boolean acceptRing(long nowNs) throws IOException {
        bell.poll(0);
        if (nowNs - windowNs > WINDOW_NS) {
            windowNs = nowNs;
            rings = 0;
        }
        return ++rings <= MAX_RINGS_A_WINDOW;
    }

    /** Whether the bell is muted: it rang too often in a window that has not ended. */
    boolean isMuted(long nowNs) {
        return rings > MAX_RINGS_A_WINDOW && nowNs - windowNs <= WINDOW_NS;
    }

    void close() {
        page.setPermit(TurnPage.FREE); // in case the worker outlives the ticket
        page.setCopies(TurnPage.UNCOUNTED);
        page.close();
        bell.close();
        Descriptors.close(pageDescriptor);
    }
}
