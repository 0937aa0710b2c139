package io.hawser.broker.door;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.HexFormat;
import javax.net.ssl.SSLException;
import org.junit.jupiter.api.Test;

/** The TLS alert that a guest sends when it ends the handshake. */
class TlsAlertsTest {
    private static final SSLException BAD_LENGTH = new SSLException("BAD_PACKET_LENGTH");
    /** The start of a ClientHello and a ChangeCipherSpec. Some of their bytes look like alerts. */
    private static final String BEFORE = "1603010009" + "150303000202301503" + "1403030001" + "15";

    private static String reason(String hex, int pieceBytes, Throwable failure) {
        TlsAlerts alerts = new TlsAlerts();
        EmbeddedChannel channel = new EmbeddedChannel(alerts);
        byte[] bytes = HexFormat.of().parseHex(hex);
        ByteBuf passed = Unpooled.buffer();
        for (int at = 0; at < bytes.length; at += pieceBytes) {
            channel.writeInbound(Unpooled.wrappedBuffer(bytes, at, Math.min(pieceBytes, bytes.length - at)));
            ByteBuf piece = channel.readInbound();
            passed.writeBytes(piece);
            piece.release();
        }
        assertEquals(Unpooled.wrappedBuffer(bytes), passed, "the observer must pass all bytes unchanged");
        channel.finishAndReleaseAll();
        return alerts.reason(failure);
    }

    @Test
    void shouldReadAnAlertInClearHoweverItArrives() {
        for (int pieceBytes = 1; pieceBytes < 40; pieceBytes++) {
            assertEquals("the guest has not accepted the certificate: TLS alert unknown_ca",
                reason(BEFORE + "15030300020230", pieceBytes, BAD_LENGTH), "pieces of " + pieceBytes);
        }
    }

    @Test
    void shouldTellCertificatesFromOtherAlerts() {
        assertEquals("the guest has not accepted the certificate: TLS alert certificate_expired",
            reason("1503030002022d", 7, BAD_LENGTH));
        assertEquals("the guest has ended the TLS handshake: TLS alert protocol_version",
            reason("15030300020246", 7, BAD_LENGTH));
        assertEquals("the guest has ended the TLS handshake: TLS alert 200", reason("150303000202c8", 7, BAD_LENGTH));
    }

    @Test
    void shouldBelieveNoCiphertextAndNoEnd() {
        for (String hex : new String[] {"1503030012023000000000000000000000000000000000", "15030300020100", BEFORE,
            "150303000202", "1503030000" + "1503030001" + "30"}) {
            assertEquals("the TLS handshake failed: BAD_PACKET_LENGTH", reason(hex, 3, BAD_LENGTH), hex);
        }
    }

    @Test
    void shouldReadWhatTheHandlerOfTlsHasDecrypted() {
        assertEquals("the guest has not accepted the certificate: TLS alert certificate_unknown", reason("", 1,
            new SSLException("error:10000416:SSL routines:OPENSSL_internal:SSLV3_ALERT_CERTIFICATE_UNKNOWN")));
        assertEquals("the guest has not accepted the certificate: TLS alert bad_certificate", reason("", 1,
            new SSLException("Received fatal alert: bad_certificate")));
        assertTrue(reason("", 1, new SSLException((String) null)).startsWith("the TLS handshake failed"));
    }
}
