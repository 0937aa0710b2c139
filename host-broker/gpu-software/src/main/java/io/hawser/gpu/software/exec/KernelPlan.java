package io.hawser.gpu.software.exec;

/**
 * A translated kernel and what a CTA of it needs.
 *
 * @param name        for messages.
 * @param code        the generated code.
 * @param savedInts   ints of a thread that live across suspensions.
 * @param savedLongs  longs and doubles likewise.
 * @param sharedBytes static shared memory.
 * @param localBytes  local memory of a thread, without the stack for recursion.
 * @param recursive   calls may nest deeper than is known: needs the launch's stack.
 * @param warpOps     uses warp operations: threads are run warp by warp.
 */
public record KernelPlan(String name, KernelCode code, int savedInts, int savedLongs, int sharedBytes, int localBytes,
                         boolean recursive, boolean warpOps) { }
