package io.hawser.worker.session;

/**
 * Where the guest has the bytes of a copy, or wants them.
 *
 * @param address of the first byte, in the guest's process.
 * @param key that admits to the memory there.
 */
public record GuestPlace(long address, int key) {
}
