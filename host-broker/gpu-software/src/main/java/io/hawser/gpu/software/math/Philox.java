package io.hawser.gpu.software.math;

/**
 * The generator Philox4x32-10 of Salmon and others, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011), in the order
 * that cuRAND documents as CURAND_ORDERING_PSEUDO_LEGACY: four numbers of one of 65,536 subsequences are followed by
 * four of the next one. One thread.
 */
final class Philox {
    private static final long MULTIPLIER_0 = 0xD2511F53L;
    private static final long MULTIPLIER_1 = 0xCD9E8D57L;
    private static final int WEYL_0 = 0x9E3779B9;
    private static final int WEYL_1 = 0xBB67AE85;
    private static final int ROUNDS = 10;
    private static final int BLOCK = 4; // numbers of a counter
    private static final int SUBSEQUENCE_BITS = 16;

    private final int[] block = new int[BLOCK];
    private final int key0;
    private final int key1;
    private long position; // of the next number
    private boolean isFilled; // the block has the numbers around the position

    /**
     * Starts at a position.
     *
     * @param position any number: positions count modulo 2^64.
     */
    Philox(long seed, long position) {
        key0 = (int) seed;
        key1 = (int) (seed >>> Integer.SIZE);
        this.position = position;
    }

    /** The next number, as 32 bits. */
    int next() {
        int place = (int) (position & BLOCK - 1);
        if (!isFilled || place == 0) {
            long group = position >>> 2;
            long index = group >>> SUBSEQUENCE_BITS;
            block(block, (int) index, (int) (index >>> Integer.SIZE), (int) group & (1 << SUBSEQUENCE_BITS) - 1, 0,
                key0, key1);
            isFilled = true;
        }
        position++;
        return block[place];
    }

    /** Computes the four numbers of a counter, whose lowest word comes first. */
    static void block(int[] out, int counter0, int counter1, int counter2, int counter3, int key0, int key1) {
        int c0 = counter0;
        int c1 = counter1;
        int c2 = counter2;
        int c3 = counter3;
        int k0 = key0;
        int k1 = key1;
        for (int round = 0; round < ROUNDS; round++) {
            long product0 = MULTIPLIER_0 * Integer.toUnsignedLong(c0);
            long product1 = MULTIPLIER_1 * Integer.toUnsignedLong(c2);
            c0 = (int) (product1 >>> Integer.SIZE) ^ c1 ^ k0;
            c1 = (int) product1;
            c2 = (int) (product0 >>> Integer.SIZE) ^ c3 ^ k1;
            c3 = (int) product0;
            k0 += WEYL_0;
            k1 += WEYL_1;
        }
        out[0] = c0;
        out[1] = c1;
        out[2] = c2;
        out[3] = c3;
    }
}
