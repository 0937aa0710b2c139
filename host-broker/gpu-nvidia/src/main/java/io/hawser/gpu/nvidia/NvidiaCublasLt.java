package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.CublasLtBackend;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.cublaslt.CublasLtNative;
import io.hawser.cuda.generated.cublaslt.HwsLtTransform;
import io.hawser.cuda.generated.cublaslt.cublasLtMatrixTransformDescAttributes_t;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** NVIDIA's cublasLt. Session thread. */
final class NvidiaCublasLt implements CublasLtBackend {
    /** An assumption: the library documents "light" resources without a number, and no workspace. */
    private static final long HANDLE_BYTES = 1 << 20;

    private final CublasLtNative library;

    NvidiaCublasLt(NativeLibrary library) {
        this.library = new CublasLtNative(library);
    }

    @Override
    public int create(MemorySegment out) {
        return library.cublasLtCreate(out);
    }

    @Override
    public int destroy(long handle) {
        return library.cublasLtDestroy(handle);
    }

    @Override
    public long handleBytes() {
        return HANDLE_BYTES;
    }

    @Override
    public int property(int type, MemorySegment value) {
        return library.cublasLtGetProperty(type, value);
    }

    @Override
    public Matmul matmul(Content content) {
        return new NvidiaLtMatmul(library, content);
    }

    @Override
    public Transform transform(Content content) {
        return new LtTransform(content);
    }

    @Override
    public int algoIds(long handle, int[] types, int requested, MemorySegment ids, MemorySegment count) {
        return library.cublasLtMatmulAlgoGetIds(handle, types[0], types[1], types[2], types[3], types[4], types[5],
            requested, ids, count);
    }

    @Override
    public int algoInit(long handle, int[] types, int algoId, MemorySegment algo) {
        return library.cublasLtMatmulAlgoInit(handle, types[0], types[1], types[2], types[3], types[4], types[5],
            algoId, algo);
    }

    @Override
    public int capability(MemorySegment algo, int attribute, MemorySegment value, long bytes, MemorySegment written) {
        return library.cublasLtMatmulAlgoCapGetAttribute(algo, attribute, value, bytes, written);
    }

    @Override
    public int configuration(MemorySegment algo, int attribute, MemorySegment value, long bytes,
        MemorySegment written) {
        return library.cublasLtMatmulAlgoConfigGetAttribute(algo, attribute, value, bytes, written);
    }

    @Override
    public int configure(MemorySegment algo, int attribute, MemorySegment value, long bytes) {
        return library.cublasLtMatmulAlgoConfigSetAttribute(algo, attribute, value, bytes);
    }

    /** A transform descriptor and its layouts. */
    private final class LtTransform implements Transform {
        private final NvidiaLtLayouts layouts;
        private long desc; // 0: none
        private int status;

        LtTransform(Content content) {
            MemorySegment operation = content.operation();
            layouts = new NvidiaLtLayouts(library, content.layouts());
            status = layouts.status();
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment made = arena.allocate(Long.BYTES, Long.BYTES);
                status = status != 0 ? status : library.cublasLtMatrixTransformDescCreate(made,
                    operation.get(ValueLayout.JAVA_INT, HwsLtTransform.SCALE_TYPE_OFFSET));
                desc = status != 0 ? 0 : made.get(ValueLayout.JAVA_LONG, 0);
                set(cublasLtMatrixTransformDescAttributes_t.CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, operation,
                    HwsLtTransform.POINTER_MODE_OFFSET);
                set(cublasLtMatrixTransformDescAttributes_t.CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, operation,
                    HwsLtTransform.TRANS_A_OFFSET);
                set(cublasLtMatrixTransformDescAttributes_t.CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, operation,
                    HwsLtTransform.TRANS_B_OFFSET);
            }
        }

        private void set(int attribute, MemorySegment operation, long offset) {
            if (status == 0) {
                status = library.cublasLtMatrixTransformDescSetAttribute(desc, attribute,
                    operation.asSlice(offset, Integer.BYTES), Integer.BYTES);
            }
        }

        @Override
        public int status() {
            return status;
        }

        @Override
        public void close() {
            if (desc != 0) {
                library.cublasLtMatrixTransformDescDestroy(desc);
            }
            layouts.close();
        }

        @Override
        public int run(Arguments call) {
            return library.cublasLtMatrixTransform(call.handle(), desc, call.alpha(), MemorySegment.ofAddress(call.a()),
                call.a() == 0 ? 0 : layouts.get(0), call.beta(), MemorySegment.ofAddress(call.b()),
                call.b() == 0 ? 0 : layouts.get(1), MemorySegment.ofAddress(call.c()), layouts.get(2), call.stream());
        }
    }
}
