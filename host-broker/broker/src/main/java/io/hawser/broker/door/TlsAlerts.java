package io.hawser.broker.door;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Finds the alert with which a guest ends the TLS handshake. A client of TLS 1.3 that rejects the certificate may send
 * its alert in clear, where Netty's TLS handler expects ciphertext. The TLS handler then reports only a record of a bad
 * length. This handler stands before it in the pipeline and reads the record headers without changing them. It runs on
 * the connection's event loop until the handshake ends.
 */
final class TlsAlerts extends ChannelInboundHandlerAdapter {
    // RFC 8446, sections 5.1 and 6.
    private static final int RECORD_HEADER_BYTES = 5;
    private static final int TYPE_ALERT = 21;
    private static final int ALERT_BYTES = 2;
    private static final int CLOSE_NOTIFY = 0;
    private static final Map<Integer, String> NAMES = Map.ofEntries(Map.entry(10, "unexpected_message"),
        Map.entry(20, "bad_record_mac"), Map.entry(22, "record_overflow"), Map.entry(40, "handshake_failure"),
        Map.entry(42, "bad_certificate"), Map.entry(43, "unsupported_certificate"),
        Map.entry(44, "certificate_revoked"), Map.entry(45, "certificate_expired"),
        Map.entry(46, "certificate_unknown"), Map.entry(47, "illegal_parameter"), Map.entry(48, "unknown_ca"),
        Map.entry(49, "access_denied"), Map.entry(50, "decode_error"), Map.entry(51, "decrypt_error"),
        Map.entry(70, "protocol_version"), Map.entry(71, "insufficient_security"), Map.entry(80, "internal_error"),
        Map.entry(86, "inappropriate_fallback"), Map.entry(90, "user_canceled"),
        Map.entry(109, "missing_extension"), Map.entry(110, "unsupported_extension"),
        Map.entry(112, "unrecognized_name"), Map.entry(113, "bad_certificate_status_response"));
    private static final Set<String> OF_THE_CERTIFICATE = Set.of("bad_certificate", "unsupported_certificate",
        "certificate_revoked", "certificate_expired", "certificate_unknown", "unknown_ca",
        "bad_certificate_status_response");
    /** BoringSSL's and OpenSSL's {@code SSLV3_ALERT_CERTIFICATE_UNKNOWN}, the JDK's {@code fatal alert: unknown_ca}. */
    private static final Pattern NAMED = Pattern.compile("(?:ALERT_|fatal alert: )(\\w+)");

    private final byte[] head = new byte[RECORD_HEADER_BYTES + ALERT_BYTES];
    private int headBytes;
    private int bodyBytes;
    private String alert;

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (message instanceof ByteBuf bytes) {
            parse(bytes);
        }
        context.fireChannelRead(message);
    }

    /** Parses records, which may span several reads, and keeps only the first bytes of each. */
    private void parse(ByteBuf bytes) {
        int at = bytes.readerIndex();
        while (at < bytes.writerIndex()) {
            if (headBytes < RECORD_HEADER_BYTES) {
                head[headBytes++] = bytes.getByte(at++);
                bodyBytes = headBytes < RECORD_HEADER_BYTES ? 0 : (head[3] & 0xff) << 8 | head[4] & 0xff;
            } else if (isAlert() && headBytes < head.length) {
                head[headBytes++] = bytes.getByte(at++);
                bodyBytes--;
            } else {
                int passed = Math.min(bodyBytes, bytes.writerIndex() - at);
                at += passed;
                bodyBytes -= passed;
            }
            if (headBytes >= RECORD_HEADER_BYTES && bodyBytes == 0) {
                if (isAlert() && headBytes == head.length) {
                    setAlert(head[RECORD_HEADER_BYTES + 1] & 0xff);
                }
                headBytes = 0;
            }
        }
    }

    /** Whether the record is an alert in clear: an encrypted alert is longer, or has another type. */
    private boolean isAlert() {
        return head[0] == TYPE_ALERT && head[3] == 0 && head[4] == ALERT_BYTES;
    }

    private void setAlert(int description) {
        if (alert == null && description != CLOSE_NOTIFY) {
            alert = NAMES.getOrDefault(description, Integer.toString(description));
        }
    }

    /** Describes a failed handshake in one sentence. */
    String reason(Throwable failure) {
        String text = String.valueOf(failure.getMessage());
        String name = alert;
        if (name == null) {
            Matcher matcher = NAMED.matcher(text);
            if (!matcher.find()) {
                return "the TLS handshake failed: " + text;
            }
            name = matcher.group(1).toLowerCase(java.util.Locale.ROOT);
        }
        return (OF_THE_CERTIFICATE.contains(name) ? "the guest has not accepted the certificate"
            : "the guest has ended the TLS handshake") + ": TLS alert " + name;
    }
}
