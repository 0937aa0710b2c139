package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Consumer;

/** Makes one image of several. Decoder's thread. */
@FunctionalInterface
public interface DeviceLinker {
    /**
     * An option with a number.
     *
     * @param option CUjit_option.
     * @param value as the guest gave it.
     */
    record Option(int option, long value) { }

    /**
     * One piece of code.
     *
     * @param type CUjitInputType.
     * @param bytes in private native memory, at a multiple of 8, with a NUL behind them that is not counted.
     * @param name for messages.
     * @param options for this input alone.
     */
    record Input(int type, MemorySegment bytes, String name, List<Option> options) { }

    /**
     * Links.
     *
     * @param inputs at least one.
     * @param log receives what the linker has to say.
     * @param image gets the result once, on success; valid until it returns.
     * @return CUresult.
     */
    int link(List<Input> inputs, List<Option> options, StringBuilder log, Consumer<MemorySegment> image);
}
