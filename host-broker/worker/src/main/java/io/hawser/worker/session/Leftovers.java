package io.hawser.worker.session;

/**
 * Resources that a session holds.
 *
 * @param handles number of objects.
 * @param deviceBytes device memory.
 * @param stagingBytes staging memory in use.
 * @param calls number of calls without a reply.
 * @param creditBytes credit that is not released.
 */
public record Leftovers(int handles, long deviceBytes, long stagingBytes, int calls, long creditBytes) {
    /** No resources. */
    public static final Leftovers NONE = new Leftovers(0, 0, 0, 0, 0);
}
