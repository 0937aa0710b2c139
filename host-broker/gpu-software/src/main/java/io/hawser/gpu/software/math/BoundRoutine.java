package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_SUCCESS;

import io.hawser.cuda.generated.cublas.CublasForm;
import io.hawser.gpu.software.math.Routine.Argument;
import io.hawser.gpu.software.math.Routine.Kind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A routine with the arguments of one call: checked, then computed when the stream comes to it. Addresses are real
 * addresses that the worker has checked, except for those in arrays of pointers.
 */
final class BoundRoutine {
    // cblas.h
    private static final int COLUMN_MAJOR = 102;
    private static final int UPPER = 121;
    private static final int LOWER = 122;
    private static final int NON_UNIT = 131;
    private static final int LEFT = 141;

    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private final OpenBlas blas;
    private final Routine routine;
    private final String function;
    private final Type type;
    private final boolean hasComplexScalars;
    private final boolean isWide;
    private final Map<String, Long> numbers = new HashMap<>();
    private final Map<String, MemorySegment> scalars = new HashMap<>();

    BoundRoutine(OpenBlas blas, Routine routine, String function, Type type, boolean hasComplexScalars,
        boolean isWide) {
        this.blas = blas;
        this.routine = routine;
        this.function = function;
        this.type = type;
        this.hasComplexScalars = hasComplexScalars;
        this.isWide = isWide;
    }

    /** The function of cblas.h for a form of a routine. */
    static String function(Routine routine, CublasForm form) {
        boolean isComplexProduct = routine.name().equals("dotu") || routine.name().equals("dotc");
        return "cblas_" + (isIndex(routine) ? "i" : "") + form.name().toLowerCase(Locale.ROOT) + routine.name()
            + (isComplexProduct ? "_sub" : "");
    }

    private static boolean isIndex(Routine routine) {
        return routine.name().startsWith("am");
    }

    /** A number: its bytes, or its address on the device (a segment without bytes). */
    static MemorySegment stable(MemorySegment scalar) {
        if (scalar.byteSize() == 0) {
            return scalar.reinterpret(Type.MAX_BYTES);
        }
        return Arena.ofAuto().allocate(scalar.byteSize(), Type.MAX_BYTES).copyFrom(scalar);
    }

    /** Checks and keeps cuBLAS's arguments after the handle. Returns a cublasStatus_t. */
    int bind(Object[] values) {
        boolean isOfMatrices = routine.ordered();
        int at = 0;
        for (Argument argument : routine.arguments()) {
            Object value = values[at++];
            if (value instanceof MemorySegment number) {
                scalars.put(argument.name(), stable(number));
                continue;
            }
            long number = ((Number) value).longValue();
            boolean isWrong = switch (argument.kind()) {
                case OPERATION -> number < 0 || number > 2;
                case REAL_OPERATION -> number < 0 || number > (type.isComplex() ? 1 : 2);
                case HERMITIAN_OPERATION -> number != 0 && number != 2;
                case FILL, DIAGONAL, SIDE -> number < 0 || number > 1;
                case DIMENSION, BAND, BATCH -> isOfMatrices && number < 0;
                case INCREMENT -> isOfMatrices && number == 0;
                case LEADING -> number < Routine.least(argument.rows(), numbers);
                default -> false;
            };
            if (isWrong) {
                return CUBLAS_STATUS_INVALID_VALUE;
            }
            boolean isCounted = switch (argument.kind()) {
                case DIMENSION, BAND, INCREMENT, LEADING -> true;
                default -> false;
            };
            if (isCounted && (int) number != number) {
                return CUBLAS_STATUS_NOT_SUPPORTED; // OpenBLAS counts in 32 bits
            }
            numbers.put(argument.name(), number);
        }
        boolean isEmpty = routine.arguments().stream().anyMatch(a -> (a.kind() == Kind.DIMENSION
            || a.kind() == Kind.BATCH) && numbers.get(a.name()) <= 0);
        boolean lacksMatrix = routine.arguments().stream().anyMatch(a -> (a.kind() == Kind.ADDRESS
            || a.kind() == Kind.ADDRESSES) && numbers.get(a.name()) == 0);
        return !isEmpty && lacksMatrix ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
    }

    /** Computes a routine without a result. */
    void compute() {
        long batch = numbers.getOrDefault("batch", 1L);
        for (long i = 0; i < batch; i++) {
            if (routine.name().equals("trmm")) {
                copyOperand();
            }
            Object _ = blas.call(function, null, arguments(i).toArray());
        }
    }

    /** Computes a number. */
    void reduce(MemorySegment target) {
        long n = numbers.get("n");
        boolean isSum = !numbers.containsKey("incy"); // the others take any increment
        boolean isNothing = n <= 0 || isSum && numbers.get("incx") <= 0;
        List<Object> arguments = arguments(0);
        if (isIndex(routine)) {
            // From 1, as Fortran counts; 0 for no element.
            long index = isNothing ? 0 : (long) blas.call(function, ValueLayout.JAVA_LONG, arguments.toArray()) + 1;
            if (isWide) {
                target.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, index);
            } else {
                target.set(ValueLayout.JAVA_INT_UNALIGNED, 0, (int) index);
            }
        } else if (function.endsWith("_sub")) {
            if (isNothing) {
                target.asSlice(0, type.bytes()).fill((byte) 0);
                return;
            }
            arguments.add(target.address());
            Object _ = blas.call(function, null, arguments.toArray());
        } else if (type.isDouble()) {
            target.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, 0, isNothing ? 0
                : (double) blas.call(function, ValueLayout.JAVA_DOUBLE, arguments.toArray()));
        } else {
            target.set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, isNothing ? 0
                : (float) blas.call(function, ValueLayout.JAVA_FLOAT, arguments.toArray()));
        }
    }

    /** C's arguments for one of the batch. */
    private List<Object> arguments(long index) {
        List<Object> arguments = new ArrayList<>();
        if (routine.ordered()) {
            arguments.add(COLUMN_MAJOR);
        }
        boolean isInPlace = routine.name().equals("trmm");
        for (Argument argument : routine.arguments()) {
            String name = argument.name();
            if (isInPlace && (name.equals("B") || name.equals("ldb"))) {
                continue;
            }
            long number = numbers.getOrDefault(name, 0L);
            switch (argument.kind()) {
                case OPERATION, REAL_OPERATION, HERMITIAN_OPERATION -> arguments.add(Product.NO_TRANSPOSE
                    + (int) number);
                case FILL -> arguments.add(number == 0 ? LOWER : UPPER);
                case DIAGONAL -> arguments.add(NON_UNIT + (int) number);
                case SIDE -> arguments.add(LEFT + (int) number);
                case DIMENSION, BAND, INCREMENT, LEADING -> arguments.add((int) number);
                case SCALAR -> arguments.add(hasComplexScalars ? (Object) scalars.get(name).address()
                    : type.real(scalars.get(name)));
                case REAL -> arguments.add(type.real(scalars.get(name)));
                case NUMBERS -> arguments.add(scalars.get(name).address());
                case ADDRESS -> arguments.add(number + index * numbers.getOrDefault("stride" + name, 0L)
                    * type.bytes());
                case ADDRESSES -> arguments.add(ALL.get(ValueLayout.JAVA_LONG_UNALIGNED, number + index * Long.BYTES));
                case STRIDE, BATCH, RESULT -> {}
            }
        }
        return arguments;
    }

    /** cblas_?trmm works in place, cuBLAS from B to C. */
    private void copyOperand() {
        long from = numbers.get("B");
        long to = numbers.get("C");
        long bytes = numbers.get("m") * type.bytes();
        for (long column = 0; from != to && column < numbers.get("n"); column++) {
            MemorySegment.copy(ALL, from + column * numbers.get("ldb") * type.bytes(), ALL,
                to + column * numbers.get("ldc") * type.bytes(), bytes);
        }
    }
}
