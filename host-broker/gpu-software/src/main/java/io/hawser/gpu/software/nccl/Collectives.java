package io.hawser.gpu.software.nccl;

import static io.hawser.gpu.software.nccl.Link.ALL;

import io.hawser.cuda.backend.NcclOperation;
import io.hawser.cuda.generated.nccl.HwsNcclKind;
import io.hawser.cuda.generated.nccl.HwsNcclReduction;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * Operations over the links of a rank. Each rank reduces a part and sends it to the others. Numbers are reduced in
 * pieces, so the worker's own memory is bounded. The addresses have been checked.
 */
final class Collectives {
    private static final long PIECE_BYTES = 1 << 20; // of each rank; a multiple of every type's size

    private final Rank rank;
    private final Executor threads;

    Collectives(Rank rank, Executor threads) {
        this.rank = rank;
        this.threads = threads;
    }

    /** Runs the operations of a group: its collective ones in order, then all sends and receives at the same time. */
    void run(List<NcclOperation> operations) throws IOException {
        Exchange pairs = new Exchange(rank);
        for (NcclOperation operation : operations) {
            if (!operation.isPointToPoint()) {
                collective(operation);
            } else if (operation.kind() == HwsNcclKind.HWS_NCCL_SEND) {
                pairs.send(operation.peer(), ALL.asSlice(operation.send(), bytes(operation)));
            } else {
                pairs.receive(operation.peer(), ALL.asSlice(operation.receive(), bytes(operation)));
            }
        }
        pairs.run(threads);
    }

    private static long bytes(NcclOperation operation) {
        return operation.count() * NcclOperation.bytesOf(operation.datatype());
    }

    private void collective(NcclOperation operation) throws IOException {
        switch (operation.kind()) {
            case HwsNcclKind.HWS_NCCL_ALL_REDUCE -> allReduce(operation);
            case HwsNcclKind.HWS_NCCL_REDUCE -> reduce(operation);
            case HwsNcclKind.HWS_NCCL_REDUCE_SCATTER -> reduceScatter(operation);
            case HwsNcclKind.HWS_NCCL_ALL_GATHER -> allGather(operation);
            default -> broadcast(operation);
        }
    }

    private void broadcast(NcclOperation operation) throws IOException {
        MemorySegment receive = ALL.asSlice(operation.receive(), bytes(operation));
        Exchange exchange = new Exchange(rank);
        if (operation.peer() == rank.number()) {
            MemorySegment send = ALL.asSlice(operation.send(), bytes(operation));
            others(other -> exchange.send(other, send));
            receive.copyFrom(send);
        } else {
            exchange.receive(operation.peer(), receive);
        }
        exchange.run(threads);
    }

    private void allGather(NcclOperation operation) throws IOException {
        long bytes = bytes(operation);
        MemorySegment send = ALL.asSlice(operation.send(), bytes);
        MemorySegment receive = ALL.asSlice(operation.receive(), bytes * rank.ranks());
        Exchange exchange = new Exchange(rank);
        others(other -> exchange.send(other, send).receive(other, receive.asSlice(other * bytes, bytes)));
        exchange.run(threads);
        receive.asSlice(rank.number() * bytes, bytes).copyFrom(send);
    }

    private void reduceScatter(NcclOperation operation) throws IOException {
        long bytes = bytes(operation);
        MemorySegment receive = ALL.asSlice(operation.receive(), bytes);
        for (long at = 0; at < bytes; at += PIECE_BYTES) {
            long length = Math.min(PIECE_BYTES, bytes - at);
            try (Arena arena = Arena.ofShared()) {
                MemorySegment[] own = new MemorySegment[rank.ranks()];
                for (int part = 0; part < own.length; part++) {
                    own[part] = scaled(operation, operation.send() + part * bytes + at, length, arena);
                }
                receive.asSlice(at, length).copyFrom(reducePart(operation, own, arena));
            }
        }
    }

    /** Sends each rank its part, and reduces this rank's part of all ranks. */
    private MemorySegment reducePart(NcclOperation operation, MemorySegment[] own, Arena arena) throws IOException {
        MemorySegment[] parts = new MemorySegment[rank.ranks()];
        parts[rank.number()] = own[rank.number()];
        Exchange exchange = new Exchange(rank);
        others(other -> {
            parts[other] = arena.allocate(own[rank.number()].byteSize(), Long.BYTES);
            exchange.send(other, own[other]).receive(other, parts[other]);
        });
        exchange.run(threads);
        MemorySegment result = arena.allocate(own[rank.number()].byteSize(), Long.BYTES);
        new Reduction(operation.datatype(), operation.reduction()).reduce(parts, result);
        return result;
    }

    private void allReduce(NcclOperation operation) throws IOException {
        long bytes = bytes(operation);
        int element = NcclOperation.bytesOf(operation.datatype());
        for (long at = 0; at < bytes; at += PIECE_BYTES * rank.ranks()) {
            long length = Math.min(PIECE_BYTES * rank.ranks(), bytes - at);
            long part = (length / element + rank.ranks() - 1) / rank.ranks() * element;
            try (Arena arena = Arena.ofShared()) {
                MemorySegment[] own = new MemorySegment[rank.ranks()];
                for (int i = 0; i < own.length; i++) {
                    long begin = Math.min(i * part, length);
                    own[i] = scaled(operation, operation.send() + at + begin, Math.min(part, length - begin), arena);
                }
                MemorySegment result = reducePart(operation, own, arena);
                Exchange exchange = new Exchange(rank);
                long start = operation.receive() + at;
                others(other -> exchange.send(other, result).receive(other,
                    ALL.asSlice(start + Math.min(other * part, length), own[other].byteSize())));
                exchange.run(threads);
                ALL.asSlice(start + Math.min(rank.number() * part, length), result.byteSize()).copyFrom(result);
            }
        }
    }

    private void reduce(NcclOperation operation) throws IOException {
        long bytes = bytes(operation);
        for (long at = 0; at < bytes; at += PIECE_BYTES) {
            long length = Math.min(PIECE_BYTES, bytes - at);
            try (Arena arena = Arena.ofShared()) {
                MemorySegment own = scaled(operation, operation.send() + at, length, arena);
                Exchange exchange = new Exchange(rank);
                if (operation.peer() != rank.number()) {
                    exchange.send(operation.peer(), own).run(threads);
                    continue;
                }
                MemorySegment[] parts = new MemorySegment[rank.ranks()];
                parts[rank.number()] = own;
                others(other -> {
                    parts[other] = arena.allocate(length, Long.BYTES);
                    exchange.receive(other, parts[other]);
                });
                exchange.run(threads);
                new Reduction(operation.datatype(), operation.reduction()).reduce(parts,
                    ALL.asSlice(operation.receive() + at, length));
            }
        }
    }

    /** A piece of what this rank sends, multiplied by the factor of the reduction. */
    private static MemorySegment scaled(NcclOperation operation, long address, long bytes, Arena arena) {
        MemorySegment piece = ALL.asSlice(address, bytes);
        if (operation.reduction() != HwsNcclReduction.HWS_NCCL_PRE_MUL_SUM || bytes == 0) {
            return piece;
        }
        MemorySegment factor;
        if (operation.isFactorOnDevice()) {
            factor = ALL.asSlice(operation.factor(), operation.factorBytes());
        } else {
            factor = arena.allocate(ValueLayout.JAVA_LONG);
            factor.set(ValueLayout.JAVA_LONG, 0, operation.factor());
        }
        MemorySegment scaled = arena.allocate(bytes, Long.BYTES);
        new Reduction(operation.datatype(), operation.reduction()).scale(piece, factor, scaled);
        return scaled;
    }

    /** An action for each other rank. */
    @FunctionalInterface
    private interface Each {
        void accept(int other);
    }

    /** Each rank begins with its next one, so that not all send to the same. */
    private void others(Each each) {
        for (int i = 1; i < rank.ranks(); i++) {
            each.accept((rank.number() + i) % rank.ranks());
        }
    }
}
