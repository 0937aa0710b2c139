package io.hawser.broker.model;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;

/** The name under which the doors count a peer. Stateless; any thread. */
public final class PeerName {
    /** RFC 4291, 2.5.4: a host has all addresses of its network of 64 bits. */
    private static final int IPV6_NETWORK_BYTES = 8;

    private PeerName() {
    }

    /** An IPv4 address, or the IPv6 network of 64 bits that the address belongs to. */
    public static String of(InetAddress address) {
        if (!(address instanceof Inet6Address six)) {
            return address.getHostAddress();
        }
        byte[] network = Arrays.copyOf(Arrays.copyOf(six.getAddress(), IPV6_NETWORK_BYTES), six.getAddress().length);
        try {
            return InetAddress.getByAddress(network).getHostAddress() + "/64";
        } catch (UnknownHostException e) {
            throw new IllegalStateException("an IPv6 address has 16 bytes: bytes=" + network.length, e);
        }
    }
}
