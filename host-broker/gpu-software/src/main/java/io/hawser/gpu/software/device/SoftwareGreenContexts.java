package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUdevSmResourceSplit_flags.CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.backend.GreenContexts;
import io.hawser.cuda.generated.CUdevSmResource;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Green contexts. A multiprocessor is a processor of the machine: a kernel of a green context uses as many processors
 * as the context has multiprocessors, but no particular ones. Decoder's thread only.
 */
final class SoftwareGreenContexts implements GreenContexts {
    /** CUDA 13.0 cuda.h: least size and granularity of a group on compute capability 7.x. */
    private static final int LEAST = 2;

    private final Device device;

    SoftwareGreenContexts(Device device) {
        this.device = device;
    }

    /** Multiprocessors of a device or green context; 0 for a context that has ended. */
    private int count(Whole whole) {
        Context context = device.handles.get(whole.context(), Context.class);
        return whole.context() == 0 ? device.scheduler.processors() : context == null ? 0 : context.processors;
    }

    private static int granularity(int flags) {
        return (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0 ? 1 : LEAST;
    }

    private static void describe(int count, int granularity, MemorySegment out) {
        out.set(ValueLayout.JAVA_INT, CUdevSmResource.SM_COUNT_OFFSET, count);
        out.set(ValueLayout.JAVA_INT, CUdevSmResource.MIN_SM_PARTITION_SIZE_OFFSET, granularity);
        out.set(ValueLayout.JAVA_INT, CUdevSmResource.SM_COSCHEDULED_ALIGNMENT_OFFSET, granularity);
    }

    @Override
    public int resource(Whole whole, MemorySegment out) {
        describe(count(whole), LEAST, out);
        return count(whole) == 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    }

    /** A computed division; no groups where it is impossible. */
    private record Groups(int count, int size, int rest) {}

    private Groups divide(Split split) {
        int whole = count(split.whole());
        int granularity = granularity(split.flags());
        long least = Math.max(1, Integer.toUnsignedLong(split.minCount()));
        long size = (least + granularity - 1) / granularity * granularity;
        int possible = (int) (whole / size);
        int count = split.groups() == 0 ? possible
            : (int) Math.min(possible, Integer.toUnsignedLong(split.groups()));
        return new Groups(count, (int) Math.min(size, whole), whole - count * (int) Math.min(size, whole));
    }

    @Override
    public int split(Split split, MemorySegment out) {
        Groups groups = divide(split);
        if (groups.count == 0) {
            return Integer.toUnsignedLong(split.minCount()) > count(split.whole()) ? CUDA_ERROR_INVALID_VALUE
                : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        }
        int granularity = granularity(split.flags());
        describe(groups.size, granularity, out.asSlice(0, CUdevSmResource.BYTES));
        describe(groups.rest, granularity, out.asSlice(CUdevSmResource.BYTES, CUdevSmResource.BYTES));
        out.set(ValueLayout.JAVA_INT, 2 * CUdevSmResource.BYTES, groups.count);
        return CUDA_SUCCESS;
    }

    @Override
    public int create(long primary, Split split, int[] parts, MemorySegment out) {
        Context owner = device.handles.get(primary, Context.class);
        Groups groups = divide(split);
        int processors = parts.length == 0 ? count(split.whole()) : 0;
        for (int part : parts) {
            if (part < 0 || part > groups.count) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            processors += part == groups.count ? groups.rest : groups.size;
        }
        if (owner == null || processors <= 0 || processors > count(split.whole())) {
            return owner == null ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        }
        Context green = new Context(device.handles.peek(), owner, processors);
        device.handles.add(green);
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, green.id);
        return CUDA_SUCCESS;
    }
}
