package io.hawser.worker.calls;

/** Memory without an address; kept with its handle. Session thread. */
final class Allocation {
    final long bytes;
    final boolean isOpened; // memory of another session
    int mappings; // to addresses
    private int arrayParts;
    private Runnable release; // runs with the last part; null while the guest has the handle

    Allocation(long bytes, boolean isOpened) {
        this.bytes = bytes;
        this.isOpened = isOpened;
    }

    /** Counts a part of an array that the memory is mapped onto. */
    void addArrayPart() {
        arrayParts++;
    }

    /**
     * Ends the count of a part.
     *
     * @return releases the memory; null while the guest or another part needs it. The caller runs it when no work uses
     *     the part.
     */
    Runnable removeArrayPart() {
        Runnable released = --arrayParts == 0 ? release : null;
        release = released == null ? release : null;
        return released;
    }

    /**
     * Gives up the guest's handle.
     *
     * @param last releases the memory; kept until the last part is unmapped.
     * @return whether parts of arrays still need the memory.
     */
    boolean outlives(Runnable last) {
        release = arrayParts == 0 ? null : last;
        return arrayParts != 0;
    }
}
