package io.hawser.gpu.software.nccl;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;

/**
 * Messages of a rank that travel at the same time: each other rank has a sender of its own, so that no order of
 * receiving can block. Used once, by one thread.
 */
final class Exchange {
    private record Message(int peer, MemorySegment memory) {
    }

    private final Rank rank;
    private final Map<Integer, List<MemorySegment>> sends = new HashMap<>();
    private final List<Message> receives = new ArrayList<>();

    Exchange(Rank rank) {
        this.rank = rank;
    }

    /** Adds a message to another rank or to this one; an empty one is none. */
    Exchange send(int peer, MemorySegment data) {
        if (data.byteSize() > 0) {
            sends.computeIfAbsent(peer, key -> new ArrayList<>()).add(data);
        }
        return this;
    }

    /** Adds a message from another rank or from this one; an empty one is none. */
    Exchange receive(int peer, MemorySegment into) {
        if (into.byteSize() > 0) {
            receives.add(new Message(peer, into));
        }
        return this;
    }

    /**
     * Transfers all messages.
     *
     * @param threads run the senders.
     */
    void run(Executor threads) throws IOException {
        Queue<MemorySegment> own = new ArrayDeque<>(sends.getOrDefault(rank.number(), List.of()));
        List<CompletableFuture<Void>> senders = new ArrayList<>();
        sends.forEach((peer, messages) -> {
            if (peer != rank.number()) {
                senders.add(CompletableFuture.runAsync(() -> sendAll(peer, messages), threads));
            }
        });
        try {
            for (Message message : receives) {
                if (message.peer() != rank.number()) {
                    rank.link(message.peer()).receive(message.memory());
                } else {
                    copy(own.poll(), message.memory());
                }
            }
            if (!own.isEmpty()) {
                throw new Link.MismatchException(own.element().byteSize(), 0);
            }
        } catch (IOException e) {
            rank.closeLinks(); // the senders end, and so do the other ranks
            await(senders);
            throw e;
        }
        Throwable failure = await(senders);
        if (failure != null) {
            throw new IOException(failure.getMessage(), failure);
        }
    }

    private static void copy(MemorySegment from, MemorySegment to) throws IOException {
        if (from == null || from.byteSize() != to.byteSize()) {
            throw new Link.MismatchException(from == null ? 0 : from.byteSize(), to.byteSize());
        }
        to.copyFrom(from);
    }

    private void sendAll(int peer, List<MemorySegment> messages) {
        try {
            for (MemorySegment message : messages) {
                rank.link(peer).send(message);
            }
        } catch (IOException e) {
            rank.closeLinks(); // ends what this rank awaits of others
            throw new UncheckedIOException(e);
        }
    }

    /** Waits for the senders; returns the first failure, or null. */
    private static Throwable await(List<CompletableFuture<Void>> senders) {
        Throwable first = null;
        for (CompletableFuture<Void> sender : senders) {
            try {
                sender.join();
            } catch (CompletionException e) {
                first = first == null ? e.getCause() : first;
            }
        }
        return first;
    }
}
