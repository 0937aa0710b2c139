package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.CublasLtBackend.Arguments;
import io.hawser.cuda.backend.CublasLtBackend.Content;
import io.hawser.cuda.backend.CublasLtBackend.Matmul;
import io.hawser.cuda.generated.cublas.cublasFillMode_t;
import io.hawser.cuda.generated.cublaslt.CublasLtNative;
import io.hawser.cuda.generated.cublaslt.HwsLtEmulation;
import io.hawser.cuda.generated.cublaslt.HwsLtMatmulDesc;
import io.hawser.cuda.generated.cublaslt.HwsLtPreference;
import io.hawser.cuda.generated.cublaslt.cublasLtEmulationDescAttributes_t;
import io.hawser.cuda.generated.cublaslt.cublasLtEpilogue_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulDescAttributes_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulPreferenceAttributes_t;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The descriptors of NVIDIA's cublasLt for products of one content. Session thread. */
final class NvidiaLtMatmul implements Matmul {
    /** An attribute: its number, where its value lies in the content, in how many bytes, and the library's size. */
    private record Attribute(int number, long offset, int stored, int bytes, boolean signed, long byDefault) {
        static Attribute int8(int number, long offset) {
            return new Attribute(number, offset, Byte.BYTES, Integer.BYTES, false, 0);
        }

        static Attribute int16(int number, long offset, boolean isSigned, long byDefault) {
            return new Attribute(number, offset, Short.BYTES, Integer.BYTES, isSigned, byDefault);
        }

        static Attribute int32(int number, long offset, long byDefault) {
            return new Attribute(number, offset, Integer.BYTES, Integer.BYTES, true, byDefault);
        }

        static Attribute int64(int number, long offset, long byDefault) {
            return new Attribute(number, offset, Long.BYTES, Long.BYTES, true, byDefault);
        }

        long value(MemorySegment content) {
            return switch (stored) {
                case Byte.BYTES -> Byte.toUnsignedLong(content.get(ValueLayout.JAVA_BYTE, offset));
                case Short.BYTES -> {
                    short value = content.get(ValueLayout.JAVA_SHORT_UNALIGNED, offset);
                    yield signed ? value : Short.toUnsignedLong(value);
                }
                case Integer.BYTES -> content.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
                default -> content.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
            };
        }
    }

    private static final Attribute[] NUMBERS = {
        Attribute.int8(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_POINTER_MODE,
            HwsLtMatmulDesc.POINTER_MODE_OFFSET),
        Attribute.int8(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_TRANSA, HwsLtMatmulDesc.TRANS_A_OFFSET),
        Attribute.int8(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_TRANSB, HwsLtMatmulDesc.TRANS_B_OFFSET),
        Attribute.int8(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_TRANSC, HwsLtMatmulDesc.TRANS_C_OFFSET),
        new Attribute(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_FILL_MODE, HwsLtMatmulDesc.FILL_MODE_OFFSET,
            Byte.BYTES, Integer.BYTES, false, cublasFillMode_t.CUBLAS_FILL_MODE_FULL),
        Attribute.int16(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_EPILOGUE, HwsLtMatmulDesc.EPILOGUE_OFFSET,
            false, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_DEFAULT),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE,
            HwsLtMatmulDesc.BIAS_STRIDE_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
            HwsLtMatmulDesc.AUX_LD_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
            HwsLtMatmulDesc.AUX_STRIDE_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE,
            HwsLtMatmulDesc.ALPHA_VECTOR_STRIDE_OFFSET, 0),
        Attribute.int32(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
            HwsLtMatmulDesc.SM_COUNT_TARGET_OFFSET, 0),
        Attribute.int16(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE,
            HwsLtMatmulDesc.AUX_TYPE_OFFSET, true, -1),
        Attribute.int16(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
            HwsLtMatmulDesc.BIAS_TYPE_OFFSET, true, -1),
        new Attribute(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_FAST_ACCUM,
            HwsLtMatmulDesc.FAST_ACCUM_OFFSET, Byte.BYTES, Byte.BYTES, false, 0),
        Attribute.int8(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
            HwsLtMatmulDesc.A_SCALE_MODE_OFFSET),
        Attribute.int8(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
            HwsLtMatmulDesc.B_SCALE_MODE_OFFSET),
        Attribute.int8(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_C_SCALE_MODE,
            HwsLtMatmulDesc.C_SCALE_MODE_OFFSET),
        Attribute.int8(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_D_SCALE_MODE,
            HwsLtMatmulDesc.D_SCALE_MODE_OFFSET),
        Attribute.int8(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE,
            HwsLtMatmulDesc.AUX_SCALE_MODE_OFFSET),
        Attribute.int8(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE,
            HwsLtMatmulDesc.D_OUT_SCALE_MODE_OFFSET),
    };
    private static final Attribute[] ADDRESSES = {
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_BIAS_POINTER,
            HwsLtMatmulDesc.BIAS_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
            HwsLtMatmulDesc.AUX_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
            HwsLtMatmulDesc.A_SCALE_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
            HwsLtMatmulDesc.B_SCALE_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_C_SCALE_POINTER,
            HwsLtMatmulDesc.C_SCALE_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_D_SCALE_POINTER,
            HwsLtMatmulDesc.D_SCALE_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_AMAX_D_POINTER,
            HwsLtMatmulDesc.AMAX_D_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER,
            HwsLtMatmulDesc.AUX_SCALE_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER,
            HwsLtMatmulDesc.AUX_AMAX_OFFSET, 0),
        Attribute.int64(cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER,
            HwsLtMatmulDesc.D_OUT_SCALE_OFFSET, 0),
    };
    private static final Attribute[] EMULATION = {
        Attribute.int32(cublasLtEmulationDescAttributes_t.CUBLASLT_EMULATION_DESC_STRATEGY,
            HwsLtEmulation.STRATEGY_OFFSET, 0),
        Attribute.int32(cublasLtEmulationDescAttributes_t.CUBLASLT_EMULATION_DESC_SPECIAL_VALUES_SUPPORT,
            HwsLtEmulation.SPECIAL_VALUES_OFFSET, 0xffff),
        Attribute.int32(cublasLtEmulationDescAttributes_t.CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_CONTROL,
            HwsLtEmulation.MANTISSA_CONTROL_OFFSET, 0),
        Attribute.int32(cublasLtEmulationDescAttributes_t.CUBLASLT_EMULATION_DESC_FIXEDPOINT_MAX_MANTISSA_BIT_COUNT,
            HwsLtEmulation.MAX_MANTISSA_BITS_OFFSET, 0),
        Attribute.int32(cublasLtEmulationDescAttributes_t.CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_OFFSET,
            HwsLtEmulation.MANTISSA_BIT_OFFSET_OFFSET, 0),
    };
    private static final Attribute MANTISSA_BIT_COUNT = Attribute.int64(
        cublasLtEmulationDescAttributes_t.CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER,
        HwsLtEmulation.MANTISSA_BIT_COUNT_OFFSET, 0);
    private static final Attribute[] PREFERENCE = {
        Attribute.int16(cublasLtMatmulPreferenceAttributes_t.CUBLASLT_MATMUL_PREF_SEARCH_MODE,
            HwsLtPreference.SEARCH_MODE_OFFSET, false, 0),
        Attribute.int64(cublasLtMatmulPreferenceAttributes_t.CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            HwsLtPreference.MAX_WORKSPACE_BYTES_OFFSET, 0),
        Attribute.int16(cublasLtMatmulPreferenceAttributes_t.CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
            HwsLtPreference.REDUCTION_MASK_OFFSET, false, 7),
        Attribute.int32(cublasLtMatmulPreferenceAttributes_t.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            HwsLtPreference.ALIGN_A_OFFSET, 256),
        Attribute.int32(cublasLtMatmulPreferenceAttributes_t.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            HwsLtPreference.ALIGN_B_OFFSET, 256),
        Attribute.int32(cublasLtMatmulPreferenceAttributes_t.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            HwsLtPreference.ALIGN_C_OFFSET, 256),
        Attribute.int32(cublasLtMatmulPreferenceAttributes_t.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
            HwsLtPreference.ALIGN_D_OFFSET, 256),
        Attribute.int32(cublasLtMatmulPreferenceAttributes_t.CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT,
            HwsLtPreference.MAX_WAVES_OFFSET, 0),
        Attribute.int64(cublasLtMatmulPreferenceAttributes_t.CUBLASLT_MATMUL_PREF_IMPL_MASK,
            HwsLtPreference.IMPL_MASK_OFFSET, -1),
    };

    private final CublasLtNative library;
    private final NvidiaLtLayouts layouts;
    private final MemorySegment value = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);
    private final long[] applied = new long[ADDRESSES.length]; // addresses that the descriptor has now
    private long appliedCount; // the address of the emulation descriptor
    private long desc; // 0: none
    private long emulation;
    private int status;

    /** Sets an attribute of a descriptor in the library. */
    private interface Setter {
        int set(long descriptor, int attribute, MemorySegment value, long bytes);
    }

    NvidiaLtMatmul(CublasLtNative library, Content content) {
        this.library = library;
        layouts = new NvidiaLtLayouts(library, content.layouts());
        status = layouts.status();
        MemorySegment operation = content.operation();
        if (status == 0) {
            status = library.cublasLtMatmulDescCreate(value,
                operation.get(ValueLayout.JAVA_SHORT, HwsLtMatmulDesc.COMPUTE_TYPE_OFFSET),
                operation.get(ValueLayout.JAVA_SHORT, HwsLtMatmulDesc.SCALE_TYPE_OFFSET));
            desc = status != 0 ? 0 : value.get(ValueLayout.JAVA_LONG, 0);
        }
        status = status != 0 ? status : set(library::cublasLtMatmulDescSetAttribute, desc, NUMBERS, operation);
        if (status == 0 && content.emulation().get(ValueLayout.JAVA_INT, HwsLtEmulation.IS_SET_OFFSET) != 0) {
            emulate(content.emulation());
        }
    }

    private void emulate(MemorySegment content) {
        status = library.cublasLtEmulationDescCreate(value);
        emulation = status != 0 ? 0 : value.get(ValueLayout.JAVA_LONG, 0);
        status = status != 0 ? status : set(library::cublasLtEmulationDescSetAttribute, emulation, EMULATION, content);
        status = status != 0 ? status : useEmulation();
    }

    private int useEmulation() {
        value.set(ValueLayout.JAVA_LONG, 0, emulation);
        return library.cublasLtMatmulDescSetAttribute(desc,
            cublasLtMatmulDescAttributes_t.CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, value, Long.BYTES);
    }

    /** Sets the attributes that differ from their defaults: an older library need not know the others. */
    private int set(Setter setter, long descriptor, Attribute[] attributes, MemorySegment content) {
        int result = 0;
        for (int i = 0; i < attributes.length && result == 0; i++) {
            long wanted = attributes[i].value(content);
            if (wanted != attributes[i].byDefault) {
                value.set(ValueLayout.JAVA_LONG, 0, wanted); // little-endian: also a shorter number
                result = setter.set(descriptor, attributes[i].number, value, attributes[i].bytes);
            }
        }
        return result;
    }

    /** Gives the descriptors a call's addresses. Returns the library's result. */
    private int address(MemorySegment operation, MemorySegment emulationContent) {
        int result = 0;
        for (int i = 0; i < ADDRESSES.length && result == 0; i++) {
            long wanted = ADDRESSES[i].value(operation);
            if (wanted != applied[i]) {
                value.set(ValueLayout.JAVA_LONG, 0, wanted);
                result = library.cublasLtMatmulDescSetAttribute(desc, ADDRESSES[i].number, value, Long.BYTES);
                applied[i] = result == 0 ? wanted : applied[i];
            }
        }
        long count = MANTISSA_BIT_COUNT.value(emulationContent);
        if (result == 0 && emulation != 0 && count != appliedCount) {
            value.set(ValueLayout.JAVA_LONG, 0, count);
            result = library.cublasLtEmulationDescSetAttribute(emulation, MANTISSA_BIT_COUNT.number, value, Long.BYTES);
            result = result != 0 ? result : useEmulation(); // in case the library has copied the old content
            appliedCount = result == 0 ? count : appliedCount;
        }
        return result;
    }

    @Override
    public int status() {
        return status;
    }

    @Override
    public void close() {
        if (desc != 0) {
            library.cublasLtMatmulDescDestroy(desc);
        }
        if (emulation != 0) {
            library.cublasLtEmulationDescDestroy(emulation);
        }
        layouts.close();
    }

    @Override
    public int run(Arguments call, MemorySegment operation, MemorySegment emulationContent, MemorySegment algo,
        long workspace, long workspaceBytes) {
        int result = address(operation, emulationContent);
        return result != 0 ? result : library.cublasLtMatmul(call.handle(), desc, call.alpha(),
            MemorySegment.ofAddress(call.a()), layouts.get(0), MemorySegment.ofAddress(call.b()), layouts.get(1),
            call.beta(), MemorySegment.ofAddress(call.c()), layouts.get(2), MemorySegment.ofAddress(call.d()),
            layouts.get(3), algo, MemorySegment.ofAddress(workspace), workspaceBytes, call.stream());
    }

    @Override
    public int heuristic(long handle, MemorySegment operation, MemorySegment emulationContent,
        MemorySegment preference, int requested, MemorySegment results, MemorySegment count) {
        int result = address(operation, emulationContent);
        result = result != 0 ? result : library.cublasLtMatmulPreferenceCreate(value);
        if (result != 0) {
            return result;
        }
        long made = value.get(ValueLayout.JAVA_LONG, 0);
        result = set(library::cublasLtMatmulPreferenceSetAttribute, made, PREFERENCE, preference);
        result = result != 0 ? result : library.cublasLtMatmulAlgoGetHeuristic(handle, desc, layouts.get(0),
            layouts.get(1), layouts.get(2), layouts.get(3), made, requested, results, count);
        library.cublasLtMatmulPreferenceDestroy(made);
        return result;
    }

    @Override
    public int check(long handle, MemorySegment operation, MemorySegment emulationContent, MemorySegment algo,
        MemorySegment checked) {
        int result = address(operation, emulationContent);
        return result != 0 ? result : library.cublasLtMatmulAlgoCheck(handle, desc, layouts.get(0), layouts.get(1),
            layouts.get(2), layouts.get(3), algo, checked);
    }
}
