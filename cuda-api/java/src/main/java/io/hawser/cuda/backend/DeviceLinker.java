package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Consumer;

/** Links several inputs into one image. Decoder's thread. */
@FunctionalInterface
public interface DeviceLinker {
    /**
     * An option with a number.
     *
     * @param option CUjit_option.
     * @param value the guest's value.
     */
    record Option(int option, long value) {}

    /**
     * One piece of code.
     *
     * @param type CUjitInputType.
     * @param bytes in private native memory, at a multiple of 8, followed by a NUL that does not count.
     * @param name for messages.
     * @param options for this input alone.
     */
    record Input(int type, MemorySegment bytes, String name, List<Option> options) {}

    /**
     * Links the inputs.
     *
     * @param inputs at least one.
     * @param log receives the linker's messages.
     * @param image receives the result once, on success; the segment is valid until the call returns.
     * @return CUresult.
     */
    int link(List<Input> inputs, List<Option> options, StringBuilder log, Consumer<MemorySegment> image);
}
