package io.hawser.cuda.generator.model;

import io.hawser.cuda.generator.model.Param.Shape;
import java.util.List;
import java.util.Map;

/**
 * A function of the description.
 *
 * @param symbol exported name, or a name that exists on the wire only (prefix hws).
 * @param opcode library and number; null when it does not travel.
 * @param since version that brought it times 1000, for example 11020; 0 for wire functions.
 * @param reply how it is answered; null with {@code sameAs}.
 * @param credited whether it costs credit.
 * @param gate what it has to do with host functions that wait for the guest; null for nothing.
 * @param guestReason why its guest code is written by hand; null when it is generated.
 * @param workerReason why its worker code is written by hand; null when it is generated.
 * @param backend whether the backend interface has it.
 * @param context whether the guest refuses it without a current context.
 * @param ptsz whether it is also exported with _ptsz.
 * @param ptds whether it is also exported with _ptds.
 * @param sameAs the function that it amounts to, or null.
 * @param with values of the target's parameters that this one lacks.
 * @param params parameters in C's order.
 * @param request where the request's values lie.
 * @param answer where the reply's values lie.
 */
public record ApiFunction(String symbol, Integer opcode, int since, Reply reply, boolean credited, Gate gate,
        String guestReason, String workerReason, boolean backend, boolean context, boolean ptsz, boolean ptds,
        String sameAs, Map<String, String> with, List<Param> params, Wire request, Wire answer) {

    /** How a function is answered. */
    public enum Reply {
        /** The guest waits. */
        SYNC,
        /** The guest does not wait. */
        ASYNC,
        /** DATA records, then a reply. */
        DATA,
        /** In the guest. */
        LOCAL
    }

    /** What a call has to do with host functions that wait for the guest. */
    public enum Gate {
        /** It may wait for the whole device, so it is put off while a host function is running. */
        WAITS,
        /** It lets a host function end, so nothing holds it up. */
        ANSWERS
    }

    /** Whether it has a record of its own. */
    public boolean travels() {
        return opcode != null;
    }

    /** Whether libraries of the guest export it. */
    public boolean exported() {
        return !symbol.startsWith("hws");
    }

    /** Whether its exported symbol is generated. */
    public boolean generatedStub() {
        return exported() && guestReason == null;
    }

    /** Whether its worker code is written by hand. */
    public boolean manual() {
        return travels() && workerReason != null;
    }

    /** Whether a reply carries values. */
    public boolean hasOutputs() {
        return params.stream().anyMatch(Param::inReply);
    }

    /** The parameter of type stream, or null. */
    public Param stream() {
        return params.stream().filter(p -> p.type().equals("CUstream")).findFirst().orElse(null);
    }

    /** The handle that the call creates, or null. */
    public Param created() {
        return params.stream().filter(p -> p.shape() == Shape.NEW).findFirst().orElse(null);
    }

    /** The name without version: cuMemAlloc for cuMemAlloc_v2. */
    public String baseName() {
        return baseName(symbol);
    }

    /** A symbol without version and stream suffix. */
    public static String baseName(String symbol) {
        return symbol.replaceFirst("_pt[sd][zs]$", "").replaceFirst("_v\\d+$", "");
    }
}
