package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.CusparseLtBackend;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.cublas.libraryPropertyType_t;
import io.hawser.cuda.generated.cusparselt.CusparseLtNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;

/** NVIDIA's cuSPARSELt. A handle is the address of its cusparseLtHandle_t. Session thread. */
final class NvidiaCusparseLt implements CusparseLtBackend {
    /** cusparseLt.h of 0.8.0 gives its structures 512 bytes; a later library might fill more. */
    static final long OBJECT_BYTES = 1024;
    static final long OBJECT_ALIGNMENT = 16; // of the same header

    /** An assumption, as the library documents no number. */
    private static final long HANDLE_BYTES = 8L << 20;
    /** Older libraries have other numbers for types of computation and other sizes of structures. */
    private static final int OLDEST_VERSION = 800;

    private final CusparseLtNative library;
    private final int version;
    private final Map<Long, MemorySegment> handles = new HashMap<>(); // the memory of each, by its address

    private NvidiaCusparseLt(CusparseLtNative library, int version) {
        this.library = library;
        this.version = version;
    }

    /** Opens the library; null for one that is too old, which the log names. */
    static NvidiaCusparseLt open(NativeLibrary opened) {
        CusparseLtNative library = new CusparseLtNative(opened);
        int major = property(library, libraryPropertyType_t.MAJOR_VERSION);
        int minor = property(library, libraryPropertyType_t.MINOR_VERSION);
        int patch = property(library, libraryPropertyType_t.PATCH_LEVEL);
        int version = major * 1000 + minor * 100 + patch;
        if (major < 0 || minor < 0 || patch < 0 || version < OLDEST_VERSION) {
            System.getLogger(NvidiaCusparseLt.class.getName()).log(System.Logger.Level.WARNING,
                "cuSPARSELt must be 0.8 or newer, so its calls are not supported: version=" + version);
            return null;
        }
        return new NvidiaCusparseLt(library, version);
    }

    private static int property(CusparseLtNative library, int type) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(ValueLayout.JAVA_INT);
            return library.cusparseLtGetProperty(type, value) == 0 ? value.get(ValueLayout.JAVA_INT, 0) : -1;
        }
    }

    @Override
    public int create(MemorySegment out) {
        MemorySegment handle = Arena.ofAuto().allocate(OBJECT_BYTES, OBJECT_ALIGNMENT);
        int status = library.cusparseLtInit(handle);
        if (status == 0) {
            handles.put(handle.address(), handle);
            out.set(ValueLayout.JAVA_LONG, 0, handle.address());
        }
        return status;
    }

    @Override
    public int destroy(long handle) {
        int status = library.cusparseLtDestroy(MemorySegment.ofAddress(handle));
        handles.remove(handle); // not before the call: it keeps the memory
        return status;
    }

    @Override
    public long handleBytes() {
        return HANDLE_BYTES;
    }

    @Override
    public int version(MemorySegment value) {
        value.set(ValueLayout.JAVA_INT, 0, version);
        return 0;
    }

    @Override
    public Made make(long handle, Content content) {
        return new NvidiaSltObjects(library, MemorySegment.ofAddress(handle), content);
    }
}
