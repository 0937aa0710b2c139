package io.hawser.broker.model;

import java.util.HexFormat;

/**
 * A session of a vGPU that goes to another broker, as its broker tells the other one.
 *
 * @param id at both brokers.
 * @param keyId of the token that the guest has proved.
 * @param peer the guest's address.
 * @param nonce of the guest's HELLO, in hexadecimal; the guest names it when it comes.
 */
public record Traveller(long id, String keyId, String peer, long pid, String program, String host, String nonce) {
    /** The guest, at its new broker. */
    public Guest guest(String vgpu) {
        return new Guest(keyId, vgpu, Carrier.TCP, peer, pid, program, host);
    }

    /** The nonce's bytes. */
    public byte[] nonceBytes() {
        return HexFormat.of().parseHex(nonce);
    }
}
