package io.hawser.cuda.generator.model;

import io.hawser.cuda.generator.model.Param.Shape;
import java.util.List;
import java.util.Map;

/**
 * A function of the description.
 *
 * @param symbol exported name, or a name that exists only on the wire (prefix hws).
 * @param family the functions that share its backend method; null for none.
 * @param opcode library and number; null when it does not travel.
 * @param since first version that has it, times 1000, for example 11020; 0 for wire functions.
 * @param returns C's type of its result; null for the library's result type.
 * @param reply kind of reply; null with {@code sameAs}.
 * @param credited whether it costs credit.
 * @param memo whether the guest remembers the answers to a synchronous call, by its kind as for {@link Reply#PROBE}.
 * @param gate its effect on host functions that wait for the guest; null for none.
 * @param move its meaning for a session that moves; null when it does not travel.
 * @param guestReason why its guest code is hand-written; null when it is generated.
 * @param workerReason why its worker code is hand-written; null when it is generated.
 * @param backend whether the backend interface has it.
 * @param context whether the guest refuses the call without a current context.
 * @param ptsz whether it is also exported with _ptsz.
 * @param ptds whether it is also exported with _ptds.
 * @param sameAs the function that implements it, or null.
 * @param with values for parameters of that function that this function lacks.
 * @param wire functions whose records carry it, beside its own.
 * @param params parameters in C's order.
 * @param request the places of the request's values.
 * @param answer the places of the reply's values.
 */
public record ApiFunction(String symbol, Family family, Integer opcode, int since, String returns,
    Reply reply, boolean credited, boolean memo, Gate gate, Move move, String guestReason, String workerReason,
    boolean backend,
    boolean context, boolean ptsz, boolean ptds, String sameAs, Map<String, String> with, List<String> wire,
    List<Param> params, Wire request, Wire answer) {

    /** The kind of reply. */
    public enum Reply {
        /** The guest waits. */
        SYNC,
        /** The guest does not wait. */
        ASYNC,
        /** The guest waits for the first call with the same content except for addresses; later calls are ASYNC. */
        PROBE,
        /** The worker sends DATA records, then a reply. */
        DATA,
        /** The guest answers without the worker. */
        LOCAL
    }

    /** The effect of a call on host functions that wait for the guest. */
    public enum Gate {
        /** It may wait for the whole device, so the worker defers it while a host function is running. */
        WAITS,
        /** It lets a host function end, so the worker never defers it. */
        ANSWERS,
        /** It puts work into its stream, though it is not credited. */
        ISSUES,
        /** It puts work into its stream, which may then wait for the guest. */
        OPENS
    }

    /** The meaning of a call for a session that moves (moving.md). */
    public enum Move {
        /** It leaves no state that a journal must have. */
        NONE,
        /** It makes an object: the journal keeps the call until the object ends. */
        MAKE,
        /** It changes an object: the journal keeps the last call with this content. */
        SET,
        /** It leaves state that no journal has. */
        PINS
    }

    /** Whether its worker code may put work into its stream. */
    public boolean issuesWork() {
        return credited || gate == Gate.ISSUES || gate == Gate.OPENS;
    }

    /** Whether it has a record of its own. */
    public boolean travels() {
        return opcode != null;
    }

    /** The backend's method that serves it. */
    public String method() {
        return family == null ? symbol : family.name();
    }

    /** Whether libraries of the guest export it. */
    public boolean exported() {
        return !symbol.startsWith("hws");
    }

    /** Whether the generator writes its exported symbol. */
    public boolean generatedStub() {
        return exported() && guestReason == null;
    }

    /** Whether its worker code is hand-written. */
    public boolean manual() {
        return travels() && workerReason != null;
    }

    /** Whether a reply carries values. */
    public boolean hasOutputs() {
        return params.stream().anyMatch(Param::inReply);
    }

    /** The numbers that the call writes, on host or device. */
    public List<Param> results() {
        return params.stream().filter(p -> p.scalar() != null && p.scalar().isResult()).toList();
    }

    /** The parameter of type stream, or null. */
    public Param stream() {
        return params.stream().filter(p -> p.type().equals("CUstream")).findFirst().orElse(null);
    }

    /** The handle that the call creates, or null. */
    public Param created() {
        return params.stream().filter(p -> p.shape() == Shape.NEW).findFirst().orElse(null);
    }

    /**
     * The type of a number that a size uses: a parameter, or {@code parameter.field} of a record or of a descriptor's
     * content; null for others.
     */
    public CType number(String reference) {
        String[] names = reference.split("\\.");
        Param param = params.stream().filter(p -> p.name().equals(names[0])).findFirst().orElse(null);
        if (param == null || names.length == 1) {
            return param != null && param.shape() == Shape.NUMBER ? param.value() : null;
        }
        CType.Field field = param.isRecord() || param.conversion() != null
            ? ((CType.Structure) param.value()).field(names[1]) : null;
        return field != null && field.type() instanceof CType.Scalar && names.length == 2 ? field.type() : null;
    }

    /** Whether a parameter is an array of numbers in the request. */
    public boolean isArray(String name) {
        return params.stream().anyMatch(p -> p.name().equals(name) && p.shape() == Shape.BYTES);
    }

    /**
     * Whether a name is that of a descriptor. As a size of device memory it is the size of the memory that the
     * descriptor describes.
     */
    public boolean isDescriptor(String name) {
        return params.stream().anyMatch(p -> p.name().equals(name) && p.conversion() != null);
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
