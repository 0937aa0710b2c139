package io.hawser.worker.calls;

import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;

/**
 * Ranges of memory of other sessions, mapped here. A range lies in consecutive pieces of {@link SharedHandles}. Drivers
 * map a piece whole, so the ranges in the same pieces share one mapping, which ends with the last of them. An
 * importer's kernels thus reach all of the pieces, as they reach the driver's whole block with the driver's own IPC.
 * Session thread.
 */
final class OpenedRanges {
    /** Pieces of one range; with their names it fits in a handle that the broker keeps. */
    static final int MAX_PIECES = 120;
    private static final int NAME_BYTES = 2 * Long.BYTES;
    private static final int READ_WRITE = 3; // CU_MEM_ACCESS_FLAGS_PROT_READWRITE

    /** Where a range lies. The owner's worker encodes it, and may lie. */
    record Place(List<SharedHandles.Name> pieces, long offset) {
        /** The handle for the broker: the offset, then the names of the pieces. */
        byte[] encode() {
            ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES + NAME_BYTES * pieces.size())
                .order(ByteOrder.LITTLE_ENDIAN).putLong(offset);
            pieces.forEach(name -> bytes.putLong(name.low()).putLong(name.high()));
            return bytes.array();
        }

        /** Reads a handle; null when it is malformed. */
        static Place decode(byte[] handle) {
            int count = (handle.length - Long.BYTES) / NAME_BYTES;
            if (count < 1 || count > MAX_PIECES || handle.length != Long.BYTES + count * NAME_BYTES) {
                return null;
            }
            ByteBuffer bytes = ByteBuffer.wrap(handle).order(ByteOrder.LITTLE_ENDIAN);
            long offset = bytes.getLong();
            List<SharedHandles.Name> pieces = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                pieces.add(new SharedHandles.Name(bytes.getLong(), bytes.getLong()));
            }
            return offset < 0 ? null : new Place(List.copyOf(pieces), offset);
        }
    }

    /** Consecutive pieces at consecutive addresses. */
    final class Mapped {
        private final List<SharedHandles.Name> names;
        private final List<SharedHandles.Opened> pieces;
        private final Set<Integer> devices = new HashSet<>(); // with access
        private long address;
        private long bytes;
        private int uses;

        private Mapped(List<SharedHandles.Name> names, List<SharedHandles.Opened> pieces) {
            this.names = names;
            this.pieces = pieces;
        }

        /** The address of the first piece. */
        long address() {
            return address;
        }

        /** Length of all pieces. */
        long bytes() {
            return bytes;
        }

        /** Ends one use; no work uses the range any more. */
        void close() {
            if (--uses == 0) {
                mapped.remove(names);
                backend.unmap(address, bytes);
                backend.unreserve(address, bytes);
                pieces.forEach(SharedHandles.Opened::close);
            }
        }

        private int map() {
            for (SharedHandles.Opened piece : pieces) {
                if (piece.bytes() > Long.MAX_VALUE - bytes) {
                    return CudaResult.INVALID_VALUE;
                }
                bytes += piece.bytes();
            }
            MemorySegment out = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);
            int result = backend.reserve(bytes, 0, 0, out);
            if (result != 0) {
                return result;
            }
            address = out.get(ValueLayout.JAVA_LONG, 0);
            long end = address;
            for (SharedHandles.Opened piece : pieces) {
                result = backend.map(end, piece.bytes(), 0, piece.handle());
                if (result != 0) {
                    break;
                }
                end += piece.bytes();
            }
            if (result != 0) {
                if (end > address) {
                    backend.unmap(address, end - address);
                }
                backend.unreserve(address, bytes);
            }
            return result;
        }

        private int allow(int device) {
            int result = devices.contains(device) ? 0 : backend.setAccess(address, bytes, device, READ_WRITE);
            if (result == 0) {
                devices.add(device);
            }
            return result;
        }
    }

    private final SharedHandles handles;
    private final VirtualMemory backend;
    private final Map<List<SharedHandles.Name>, Mapped> mapped = new HashMap<>();

    OpenedRanges(Session session, SharedHandles handles) {
        this.handles = handles;
        this.backend = session.backend().virtualMemory();
    }

    /**
     * Opens and maps pieces, or uses them again.
     *
     * @param device gets access.
     * @param done receives a CUresult, and the pieces or null. The caller closes them.
     */
    void open(List<SharedHandles.Name> names, int device, BiConsumer<Integer, Mapped> done) {
        if (backend == null) {
            done.accept(CudaResult.NOT_SUPPORTED, null);
            return;
        }
        Mapped before = mapped.get(names);
        if (before != null) {
            use(before, device, done);
        } else {
            openNext(names, device, new ArrayList<>(), done);
        }
    }

    private void openNext(List<SharedHandles.Name> names, int device, List<SharedHandles.Opened> pieces,
        BiConsumer<Integer, Mapped> done) {
        if (pieces.size() == names.size()) {
            map(names, device, pieces, done);
            return;
        }
        handles.open(names.get(pieces.size()), (result, piece) -> {
            if (result == 0) {
                pieces.add(piece);
                openNext(names, device, pieces, done);
            } else {
                pieces.forEach(SharedHandles.Opened::close);
                done.accept(result, null);
            }
        });
    }

    private void map(List<SharedHandles.Name> names, int device, List<SharedHandles.Opened> pieces,
        BiConsumer<Integer, Mapped> done) {
        Mapped before = mapped.get(names); // another call of the guest has been faster
        Mapped made = before != null ? before : new Mapped(names, pieces);
        int result = before != null ? 0 : made.map();
        if (before != null || result != 0) {
            pieces.forEach(SharedHandles.Opened::close);
        }
        if (result != 0) {
            done.accept(result, null);
            return;
        }
        mapped.put(names, made);
        use(made, device, done);
    }

    private void use(Mapped used, int device, BiConsumer<Integer, Mapped> done) {
        used.uses++;
        int result = used.allow(device);
        if (result != 0) {
            used.close();
        }
        done.accept(result, result == 0 ? used : null);
    }
}
