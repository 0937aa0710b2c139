package io.hawser.cuda.generator.model;

/**
 * A parameter of a function.
 *
 * @param name C's name.
 * @param type C's type.
 * @param shape its form on the wire.
 * @param value the type that travels: that of the number, of a pointer's target or of an array's elements; null for
 *     bytes and texts, and where nothing travels.
 * @param bytes size of a buffer; null for anything else.
 * @param max maximum size of a buffer or text in bytes.
 * @param nullable whether NULL (or the null handle) is legal.
 * @param variable whether an output buffer may be shorter than {@code bytes}.
 * @param bulk whether a buffer is sent without copying it first.
 * @param device bytes of the session's device memory required at this address; null for none.
 * @param conversion macro of the guest that converts C's argument to the structure that travels; null for none.
 * @param scalar a number behind a pointer, on host or device; null for anything else.
 */
public record Param(String name, String type, Shape shape, CType value, SizeExpression bytes, int max,
    boolean nullable, boolean variable, boolean bulk, SizeExpression device, String conversion,
    Scalar scalar) {

    /**
     * A number behind a pointer of C, on host or device.
     *
     * @param bytes its size.
     * @param isRead whether the call reads it.
     * @param isResult whether the call writes it.
     */
    public record Scalar(SizeExpression bytes, boolean isRead, boolean isResult) {
    }

    /** The form of a parameter on the wire. */
    public enum Shape {
        /** Nothing: the guest answers the function. */
        LOCAL,
        /** A number or enumerator. */
        NUMBER,
        /** A handle that must exist. */
        HANDLE,
        /** A handle that the call creates; the guest has chosen its id. */
        NEW,
        /** A handle that the call destroys. */
        DROP,
        /** A structure by value, or a structure or number behind a pointer. */
        STRUCT,
        /** A text. */
        TEXT,
        /** A buffer or an array of plain elements. */
        BYTES,
        /** An array of handles. */
        HANDLES,
        /** A number in the reply. */
        OUT_NUMBER,
        /** A structure in the reply. */
        OUT_STRUCT,
        /** A buffer in the reply. */
        OUT_BYTES,
        /** A number or structure in the request and in the reply. */
        INOUT,
        /** Host memory that the call works in: nothing travels, and the worker has its own. */
        WORKSPACE
    }

    /** Whether it is part of the request. */
    public boolean inRequest() {
        return switch (shape) {
            case NUMBER, HANDLE, NEW, DROP, STRUCT, TEXT, BYTES, HANDLES, INOUT -> true;
            case LOCAL, OUT_NUMBER, OUT_STRUCT, OUT_BYTES, WORKSPACE -> false;
        };
    }

    /** Whether it is part of the reply. */
    public boolean inReply() {
        return switch (shape) {
            case OUT_NUMBER, OUT_STRUCT, OUT_BYTES, INOUT -> true;
            default -> false;
        };
    }

    /** Whether its bytes follow the fixed part, which holds their length. */
    public boolean isBuffer() {
        return switch (shape) {
            case TEXT, BYTES, HANDLES, OUT_BYTES -> true;
            default -> false;
        };
    }

    /** Whether the worker receives it as an object with accessors, not as memory. */
    public boolean isRecord() {
        return shape == Shape.STRUCT && value instanceof CType.Structure structure && structure.record();
    }

    /** Whether C passes the structure itself, not a pointer to it. */
    public boolean isStructureByValue() {
        return shape == Shape.STRUCT && conversion == null && !type.endsWith("*");
    }

    /** Size in the fixed part, in bytes. */
    int fixedSize() {
        return switch (shape) {
            case HANDLE, NEW, DROP -> 8;
            case TEXT, BYTES, HANDLES, OUT_BYTES -> 4;
            case NUMBER, STRUCT, OUT_NUMBER, OUT_STRUCT, INOUT -> value.size();
            case LOCAL, WORKSPACE -> 0;
        };
    }

    /** Alignment in the fixed part, in bytes. */
    int fixedAlignment() {
        return value instanceof CType.Structure && !isBuffer() ? 8 : fixedSize();
    }

    /** The kind of its handles. */
    public HandleKind kind() {
        return ((CType.Handle) value).kind();
    }
}
