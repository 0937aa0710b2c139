package io.hawser.gpu.software.nccl;

import io.hawser.cuda.backend.NcclMember;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.SecureRandom;
import java.util.HexFormat;

/**
 * What an ncclUniqueId of the software GPU names.
 *
 * @param port where the communicator's root listens, on loopback; 0: all ranks are in this worker.
 * @param secret 32 random bytes in hexadecimal: who has it may join.
 */
record UniqueId(int port, String secret) {
    static final int SECRET_BYTES = 32;
    private static final long MAGIC = 0x314c_4343_4e53_5748L; // "HWSNCCL1", so that an id of NVIDIA's is none
    private static final SecureRandom RANDOM = new SecureRandom();

    /** Makes an id with a new secret. */
    static UniqueId random(int port) {
        byte[] secret = new byte[SECRET_BYTES];
        RANDOM.nextBytes(secret);
        return new UniqueId(port, HexFormat.of().formatHex(secret));
    }

    /** The id as a program has it. */
    byte[] bytes() {
        return ByteBuffer.allocate(NcclMember.ID_BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(MAGIC).putInt(port)
            .putInt(0).put(HexFormat.of().parseHex(secret)).array();
    }

    /** Reads an id; null for bytes that are none. */
    static UniqueId of(byte[] bytes) {
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        long magic = in.getLong();
        int port = in.getInt();
        in.getInt();
        byte[] secret = new byte[SECRET_BYTES];
        in.get(secret);
        return magic != MAGIC || port < 0 || port > 0xffff ? null
            : new UniqueId(port, HexFormat.of().formatHex(secret));
    }
}
