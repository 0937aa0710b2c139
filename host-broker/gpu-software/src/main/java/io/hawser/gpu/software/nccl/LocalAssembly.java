package io.hawser.gpu.software.nccl;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** The ranks of a communicator whose ranks are all in this worker. Thread-safe. */
final class LocalAssembly {
    private final CompletableFuture<Link[][]> all = new CompletableFuture<>();
    private boolean[] joined; // null until the first has joined
    private int count;

    /** Adds a rank, and waits for all. */
    Rank join(int ranks, int number) throws IOException {
        add(ranks, number);
        try {
            List<Link> links = new ArrayList<>(Arrays.asList(all.join()[number]));
            return new Rank(number, Collections.unmodifiableList(links), true);
        } catch (CompletionException e) {
            throw new IOException(e.getCause().getMessage(), e);
        }
    }

    private synchronized void add(int ranks, int number) throws IOException {
        if (joined == null) {
            joined = new boolean[ranks];
        }
        if (ranks != joined.length || number < 0 || number >= ranks || joined[number]) {
            fail();
            throw new IOException("ranks must agree in their number, and each must join once: ranks=" + ranks
                + " rank=" + number);
        }
        joined[number] = true;
        if (++count == ranks) {
            Link[][] links = new Link[ranks][ranks];
            for (int a = 0; a < ranks; a++) {
                for (int b = a + 1; b < ranks; b++) {
                    LocalLink[] pair = LocalLink.pair();
                    links[a][b] = pair[0];
                    links[b][a] = pair[1];
                }
            }
            all.complete(links);
        }
    }

    /** Ends the joining of all ranks. */
    void fail() {
        all.completeExceptionally(new IOException("the session has ended, or a rank has failed to join"));
    }
}
