package io.hawser.hypervisor.model;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.UUID;

/**
 * The addresses of a domain's virtual function in the fabric. They follow from the domain's UUID, so they stay the same
 * for each function that the domain gets, and a partition or a switch can name them.
 */
public final class FabricAddress {
    private static final HexFormat COLONS = HexFormat.ofDelimiter(":");
    private static final byte LOCAL = 0x02; // IEEE 802: chosen locally, and no group address
    private static final int MAC_BYTES = 6;
    private static final int GUID_BYTES = 8;

    private FabricAddress() {}

    /** The Ethernet address of a domain's function: {@code 02:...}. */
    public static String mac(UUID domain) {
        return COLONS.formatHex(local("mac " + domain, MAC_BYTES));
    }

    /** The node GUID of a domain's function: {@code 02:...}, even. */
    public static String nodeGuid(UUID domain) {
        return guid("guid " + domain, 0);
    }

    /** The port GUID of a domain's function: the node GUID plus one. */
    public static String portGuid(UUID domain) {
        return guid("guid " + domain, 1);
    }

    /**
     * The GUID of a function that no domain has. A function must not keep the GUID of its last domain, because the
     * domain's next function has the same.
     *
     * @param adapter a text that is unique to the adapter in the fabric.
     * @param index of the function on the adapter.
     * @param port 0 for the node, 1 for its port.
     */
    public static String freeGuid(String adapter, int index, int port) {
        return guid("free " + adapter + " " + index, port);
    }

    private static String guid(String text, int port) {
        byte[] guid = local(text, GUID_BYTES);
        guid[GUID_BYTES - 1] = (byte) (guid[GUID_BYTES - 1] & ~1 | port);
        return COLONS.formatHex(guid);
    }

    private static byte[] local(String text, int length) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(("hawser " + text).getBytes(
                StandardCharsets.UTF_8));
            byte[] address = java.util.Arrays.copyOf(hash, length);
            address[0] = LOCAL;
            return address;
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("each Java has SHA-256", e);
        }
    }
}
