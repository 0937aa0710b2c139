package io.hawser.gpu.software.exec;

/**
 * A translated kernel and the needs of its CTAs.
 *
 * @param name        for messages.
 * @param code        the generated code.
 * @param savedInts   ints of a thread that live across suspensions.
 * @param savedLongs  longs and doubles of a thread that live across suspensions.
 * @param sharedBytes static shared memory.
 * @param localBytes  local memory of a thread, without the stack for recursion.
 * @param recursive   whether the nesting of calls has no known bound: the kernel then needs the launch's stack.
 * @param warpOps     whether the kernel has warp operations: its threads then run warp by warp.
 */
public record KernelPlan(String name, KernelCode code, int savedInts, int savedLongs, int sharedBytes, int localBytes,
    boolean recursive, boolean warpOps) {}
