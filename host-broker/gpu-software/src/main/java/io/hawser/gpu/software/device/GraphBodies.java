package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS;

import io.hawser.cuda.backend.GraphNode;
import io.hawser.gpu.software.exec.GlobalMemory;
import java.lang.foreign.MemorySegment;

/** The work of a graph's copies, fills and functions of the worker. */
final class GraphBodies {
    private static final System.Logger LOG = System.getLogger(GraphBodies.class.getName());

    private final GlobalMemory memory;

    GraphBodies(GlobalMemory memory) {
        this.memory = memory;
    }

    /** A function of the worker. As in CUDA: a failed context calls none. */
    static Work.Body routine(Runnable function, Context context) {
        return () -> {
            if (context.error() == 0) {
                function.run();
            }
        };
    }

    Work.Body copy(GraphNode.Copy copy, Context context) {
        return () -> {
            if (context.error() != 0) {
                return;
            }
            MemorySegment to = bytes(copy.destination(), copy, context);
            MemorySegment from = bytes(copy.source(), copy, context);
            if (to == null || from == null) {
                return;
            }
            long width = copy.widthBytes();
            if (isOneRun(copy.destination(), copy) && isOneRun(copy.source(), copy)) {
                to.copyFrom(from);
                return;
            }
            for (long slice = 0; slice < copy.slices(); slice++) {
                for (long row = 0; row < copy.rows(); row++) {
                    MemorySegment.copy(from, offset(copy.source(), slice, row), to,
                        offset(copy.destination(), slice, row), width);
                }
            }
        };
    }

    private static long offset(GraphNode.End end, long slice, long row) {
        return slice * end.slicePitch() + row * end.pitch();
    }

    private static boolean isOneRun(GraphNode.End end, GraphNode.Copy copy) {
        return (copy.rows() == 1 || end.pitch() == copy.widthBytes())
            && (copy.slices() == 1 || end.slicePitch() == copy.widthBytes() * copy.rows());
    }

    /** The memory at one end of a copy. If that memory has been freed, the context fails and the result is null. */
    private MemorySegment bytes(GraphNode.End end, GraphNode.Copy copy, Context context) {
        long span = offset(end, copy.slices() - 1, copy.rows() - 1) + copy.widthBytes();
        return end.isHost() ? MemorySegment.ofAddress(end.address()).reinterpret(span)
            : device(end.address(), span, context);
    }

    private MemorySegment device(long address, long bytes, Context context) {
        if (!memory.isAllocated(address, bytes)) {
            context.poison(CUDA_ERROR_ILLEGAL_ADDRESS);
            LOG.log(System.Logger.Level.WARNING, "a graph uses memory that has been freed: address=0x"
                + Long.toHexString(address) + " bytes=" + bytes);
            return null;
        }
        return memory.slice(address, bytes);
    }

    Work.Body fill(GraphNode.Fill fill, Context context) {
        return () -> {
            if (context.error() != 0) {
                return;
            }
            long rowBytes = fill.width() * fill.elementBytes();
            MemorySegment target = device(fill.address(), (fill.rows() - 1) * fill.pitch() + rowBytes, context);
            for (long row = 0; target != null && row < fill.rows(); row++) {
                Fill.fill(target.asSlice(row * fill.pitch(), rowBytes), fill.elementBytes(), fill.value());
            }
        };
    }
}
