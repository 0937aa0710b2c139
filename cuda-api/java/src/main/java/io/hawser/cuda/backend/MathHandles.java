package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/** The handles of a math library. Results are the library's own, 0 for success. Session thread. */
public interface MathHandles {
    /** Creates a handle in the current context; {@code out} receives it (8 bytes). */
    int create(MemorySegment out);

    /** Destroys a handle of {@link #create}. */
    int destroy(long handle);

    /** Device memory that a handle takes beyond the caller's memory. */
    long handleBytes();
}
