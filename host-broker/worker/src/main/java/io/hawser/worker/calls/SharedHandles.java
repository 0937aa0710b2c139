package io.hawser.worker.calls;

import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.SharedNames;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/**
 * Memory of {@link VirtualMemory} that sessions of one vGPU share, each piece of {@link VirtualMemory#create} under a
 * random name. The owner's worker passes a descriptor of the memory to the broker, which gives a duplicate to each
 * worker that asks for the name.
 *
 * <p>The name ends when the owner frees the memory or its session ends. Memory that others have opened then lives on,
 * and the broker counts it (see its SharedMemory). Opened memory costs its session nothing.
 *
 * <p>Another session's worker may be its guest's. Its descriptor can be of any file and its numbers can be wrong; then
 * the backend rejects them. Session thread.
 */
final class SharedHandles {
    private static final int MAX_SHARED = 1024; // per session; the broker keeps no more
    private static final int MAX_OPENED = 1024; // of other sessions; the broker lets a session find no more

    /** A random name of 128 bits. */
    record Name(long low, long high) {
        static Name random(SecureRandom random) {
            return new Name(random.nextLong(), random.nextLong());
        }

        /** 32 hexadecimal digits. */
        @Override
        public String toString() {
            return HexFormat.of().toHexDigits(high) + HexFormat.of().toHexDigits(low);
        }
    }

    /** Memory of another session. */
    final class Opened {
        private final String name;
        private final long handle;
        private final long bytes;
        private final int device;
        private final int compression;

        private Opened(String name, SharedNames.Memory found, int device, MemorySegment opened) {
            this.name = name;
            this.bytes = found.bytes();
            this.device = device;
            this.handle = opened.get(ValueLayout.JAVA_LONG, 0);
            this.compression = opened.get(ValueLayout.JAVA_INT, Long.BYTES);
        }

        /** The backend's handle. */
        long handle() {
            return handle;
        }

        /** Length as the owner reports it; memory of another length cannot be mapped. */
        long bytes() {
            return bytes;
        }

        int device() {
            return device;
        }

        int compression() {
            return compression;
        }

        /** Ends the count as an import, after the backend has released the handle. */
        void forget() {
            openedCount--;
            session.names().release(name);
        }

        /** Releases memory that has no mappings any more. */
        void close() {
            backend.release(handle);
            forget();
        }
    }

    private static final class Shared {
        private final Name name;
        private final List<Consumer<Name>> waiting = new ArrayList<>();
        private boolean isKept; // whether the broker keeps it

        Shared(Name name) {
            this.name = name;
        }
    }

    private final Session session;
    private final VirtualMemory backend;
    private final SecureRandom random = new SecureRandom();
    private final Map<Long, Shared> shared = new HashMap<>(); // by the backend's handle
    private int openedCount;

    SharedHandles(Session session) {
        this.session = session;
        this.backend = session.backend().virtualMemory();
    }

    /**
     * Shares memory; again under the same name when it is shared already.
     *
     * @param handle the backend's handle of memory that this session has made.
     * @param charge its charge, which must be given back after the backend has released the memory.
     * @param done receives a CUresult, and the name or null.
     */
    void share(long handle, long bytes, MemoryQuota.Charge charge, BiConsumer<Integer, Name> done) {
        Consumer<Name> answer = name -> done.accept(name == null ? CudaResult.OUT_OF_MEMORY : CudaResult.SUCCESS, name);
        Shared before = shared.get(handle);
        if (before != null) {
            if (before.isKept) {
                answer.accept(before.name);
            } else {
                before.waiting.add(answer);
            }
            return;
        }
        if (shared.size() >= MAX_SHARED) {
            answer.accept(null);
            return;
        }
        int descriptor;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
            int result = backend.share(handle, out);
            if (result != 0) {
                done.accept(result, null);
                return;
            }
            descriptor = out.get(ValueLayout.JAVA_INT, 0);
        }
        Shared made = new Shared(Name.random(random));
        made.waiting.add(answer);
        shared.put(handle, made);
        charge.passTo(counted -> {
            shared.remove(handle, made);
            session.names().unshare(made.name.toString(), counted);
        });
        session.names().share(made.name.toString(), new SharedNames.Memory(new byte[1], bytes, charge.column(),
            descriptor), charge, isKept -> answer(handle, made, isKept));
    }

    private void answer(long handle, Shared made, boolean isKept) {
        made.isKept = isKept;
        if (!isKept) {
            shared.remove(handle, made);
        }
        List<Consumer<Name>> waiting = List.copyOf(made.waiting);
        made.waiting.clear();
        waiting.forEach(answer -> answer.accept(isKept ? made.name : null));
    }

    /**
     * Opens memory of another session.
     *
     * @param done receives a CUresult, and the memory or null. The caller then owns the memory.
     */
    void open(Name name, BiConsumer<Integer, Opened> done) {
        // A session that opened its own memory would keep it after it has given back the charge.
        if (shared.values().stream().anyMatch(own -> own.name.equals(name))) {
            done.accept(CudaResult.INVALID_VALUE, null);
            return;
        }
        if (openedCount >= MAX_OPENED) {
            done.accept(CudaResult.OUT_OF_MEMORY, null);
            return;
        }
        openedCount++;
        session.names().find(name.toString(), found -> {
            if (found == null) {
                openedCount--;
                done.accept(CudaResult.INVALID_VALUE, null);
                return;
            }
            MemorySegment out = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);
            int device = session.objects().quota().deviceOf(found.column());
            int result = !found.isPassed() || found.bytes() <= 0 || device < 0 ? CudaResult.INVALID_VALUE
                : backend.open(found.descriptor(), found.bytes(), out);
            if (result == 0) {
                done.accept(result, new Opened(name.toString(), found, device, out));
            } else {
                openedCount--;
                session.names().release(name.toString());
                done.accept(result, null);
            }
        });
    }
}
