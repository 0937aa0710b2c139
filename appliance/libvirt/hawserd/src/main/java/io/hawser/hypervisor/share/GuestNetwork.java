package io.hawser.hypervisor.share;

import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The address by which guests of this host reach the broker, and the paths by which the broker opens their regions. Any
 * thread.
 */
public final class GuestNetwork {
    private static final Pattern ADDRESS = Pattern.compile("(?:tls://|tcp://)?\\[?([^\\]]*?)\\]?(?::\\d+)?");
    private static final String TLS = "tls://";
    private static final int MAX_CA_BYTES = 60 << 10; // the guest accepts settings of up to 64 KiB

    private final String named;
    private final Path caFile;

    /**
     * @param named {@code guest.broker}; empty to use the address that the broker reports.
     * @param caFile {@code guest.ca-file}; null for none.
     */
    public GuestNetwork(String named, Path caFile) {
        this.named = named;
        this.caFile = caFile;
    }

    /** The broker's address for guests by TCP. */
    String broker(Shares shares) throws ShareException {
        if (!named.isEmpty()) {
            return named;
        }
        String reported = shares.guestEndpoint();
        Matcher matcher = ADDRESS.matcher(reported);
        try {
            if (matcher.matches() && !reported.isEmpty()) {
                InetAddress address = InetAddress.getByName(matcher.group(1));
                if (!address.isAnyLocalAddress() && !address.isLoopbackAddress()) {
                    return reported;
                }
            }
        } catch (UnknownHostException e) {
            return reported; // a name that guests may resolve, although this host cannot
        }
        throw new ShareException(ShareException.Reason.REFUSED, "guest.broker in hawserd.conf must be the broker's "
            + "address for guests by TCP, because the broker reports no network address: " + reported);
    }

    /** The certificates by which guests verify the broker; empty without TLS, or if the setting is missing. */
    String ca(String broker) throws ShareException {
        if (caFile == null || !broker.startsWith(TLS)) {
            return "";
        }
        try {
            if (Files.size(caFile) > MAX_CA_BYTES) {
                throw new IOException("the file has more than " + MAX_CA_BYTES + " bytes");
            }
            String pem = Files.readString(caFile);
            if (!pem.contains("-----BEGIN CERTIFICATE-----") || pem.contains("\"\"\"")) {
                throw new IOException("the file has no certificate (PEM)");
            }
            return pem.endsWith("\n") ? pem : pem + "\n";
        } catch (IOException e) {
            throw new ShareException(ShareException.Reason.REFUSED, "guest.ca-file of hawserd.conf cannot be used: "
                + caFile + ": " + e.getMessage(), e);
        }
    }

    /** The region's file in the form that the broker expects. */
    String regionPlace(Path file) {
        return file.toString();
    }
}
