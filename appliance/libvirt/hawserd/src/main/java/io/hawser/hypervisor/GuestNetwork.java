package io.hawser.hypervisor;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** How guests of this host reach the broker, and how the broker reaches their regions. Any thread. */
final class GuestNetwork {
    private static final Pattern ADDRESS = Pattern.compile("(?:tls://|tcp://)?\\[?([^\\]]*?)\\]?(?::\\d+)?");
    private static final String TLS = "tls://";
    private static final int MAX_CA_BYTES = 60 << 10; // the guest takes 64 KiB in all

    private final String named;
    private final Path caFile;

    /**
     * As the settings say.
     *
     * @param named {@code guest.broker}; empty to take what the broker says of itself.
     * @param caFile {@code guest.ca-file}; null for none.
     */
    GuestNetwork(String named, Path caFile) {
        this.named = named;
        this.caFile = caFile;
    }

    /** The broker's address for guests by TCP. */
    String broker(Shares shares) throws ShareException {
        if (!named.isEmpty()) {
            return named;
        }
        String told = shares.guestEndpoint();
        Matcher matcher = ADDRESS.matcher(told);
        try {
            if (matcher.matches() && !told.isEmpty()) {
                InetAddress address = InetAddress.getByName(matcher.group(1));
                if (!address.isAnyLocalAddress() && !address.isLoopbackAddress()) {
                    return told;
                }
            }
        } catch (UnknownHostException e) {
            return told; // a name that guests know, though this host does not
        }
        throw new ShareException(ShareException.Reason.REFUSED, "guest.broker in hawserd.conf must name the broker as "
            + "guests reach it by TCP, since the broker says no address of a network: " + told);
    }

    /** The certificates by which guests know the broker; empty without TLS, or when none are named. */
    String ca(String broker) throws ShareException {
        if (caFile == null || !broker.startsWith(TLS)) {
            return "";
        }
        try {
            if (Files.size(caFile) > MAX_CA_BYTES) {
                throw new IOException("it has more than " + MAX_CA_BYTES + " bytes");
            }
            String pem = Files.readString(caFile);
            if (!pem.contains("-----BEGIN CERTIFICATE-----") || pem.contains("\"\"\"")) {
                throw new IOException("it has no certificate (PEM)");
            }
            return pem.endsWith("\n") ? pem : pem + "\n";
        } catch (IOException e) {
            throw new ShareException(ShareException.Reason.REFUSED, "guest.ca-file of hawserd.conf cannot be used: "
                + caFile + ": " + e.getMessage(), e);
        }
    }

    /** The region's file as the broker names it. */
    String regionPlace(Path file) {
        return file.toString();
    }
}
