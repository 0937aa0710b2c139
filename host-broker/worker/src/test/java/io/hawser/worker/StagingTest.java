package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Images that the guest stages before it loads them. */
@Timeout(300)
@ParameterizedClass
@EnumSource(Carrier.class)
class StagingTest {
    @Parameter
    private Carrier carrier;

    private static byte[] image() {
        byte[] image = new byte[200_000];
        Arrays.fill(image, (byte) ' ');
        byte[] text = "image fill print".getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(text, 0, image, 0, text.length);
        return image;
    }

    private static Received stage(Guest guest, long blobId, byte[] blob) throws IOException {
        return guest.call(RecordLayout.CONTROL_STAGE, out -> {
            out.fixed(RecordLayout.STAGE_FIXED_BYTES);
            out.i64(RecordLayout.STAGE_BLOB_ID_OFFSET, blobId);
            out.i64(RecordLayout.STAGE_TOTAL_BYTES_OFFSET, blob.length);
            out.struct(RecordLayout.STAGE_SHA256_OFFSET, MemorySegment.ofArray(sha256(blob)), 0,
                RecordLayout.DIGEST_BYTES);
        });
    }

    private static byte[] sha256(byte[] bytes) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(bytes);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void sendPieces(Guest guest, long blobId, byte[] blob) throws IOException {
        int piece = 70_000;
        for (int at = 0; at < blob.length; at += piece) {
            int from = at;
            byte[] part = Arrays.copyOfRange(blob, at, Math.min(at + piece, blob.length));
            guest.send(RecordLayout.CONTROL_STAGE_DATA, Guest.CREDITED, out -> {
                out.fixed(RecordLayout.STAGE_DATA_FIXED_BYTES);
                out.i64(RecordLayout.STAGE_DATA_BLOB_ID_OFFSET, blobId);
                out.i64(RecordLayout.STAGE_DATA_OFFSET_BYTES_OFFSET, from);
                out.buffer(RecordLayout.STAGE_DATA_BYTES_OFFSET, MemorySegment.ofArray(part));
            });
        }
    }

    private static Received load(Guest guest, long blobId) throws IOException {
        return guest.call(Guest.IMAGE_LOAD,
            out -> Guest.image(out, guest.newId(HandleKind.MODULE), blobId, null));
    }

    @Test
    void shouldLoadStagedImageAndRecogniseIt() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            assertEquals(0, stage(guest, 1, image()).i32(0));
            sendPieces(guest, 1, image());
            Received loaded = load(guest, 1);
            assertEquals(0, loaded.status());
            assertEquals(0, loaded.i32(0));
            assertEquals(1, stage(guest, 2, image()).i32(0));
            assertEquals(0, load(guest, 2).i32(0));
            guest.close();
            rig.expect("ended");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldOfferBrokerOnlyImagesThatTheGpuHasLoaded() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            byte[] garbage = new byte[100_000];
            stage(guest, 1, garbage);
            sendPieces(guest, 1, garbage);
            assertEquals(200, load(guest, 1).i32(0));
            stage(guest, 2, image());
            sendPieces(guest, 2, image());
            assertEquals(0, load(guest, 2).i32(0));
            JsonNode offer = rig.expect("image");
            assertEquals(HexFormat.of().formatHex(sha256(image())), offer.path("sha256").asText());
            assertEquals(image().length, offer.path("bytes").asLong());
        }
    }

    @Test
    void shouldReportWhyImageDoesNotLoad() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            Received reply = guest.call(Guest.IMAGE_LOAD, out -> Guest.image(out, guest.newId(HandleKind.MODULE), 0,
                "garbage".getBytes(StandardCharsets.US_ASCII)));
            assertEquals(0, reply.status());
            assertEquals(200, reply.i32(0));
            assertEquals("not an image", new String(reply.buffer(16, 8), StandardCharsets.US_ASCII));
        }
    }

    @Test
    void shouldRefuseBlobWhoseContentIsNotItsDigest() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            stage(guest, 1, image());
            byte[] other = image();
            other[150_000] ^= 1;
            sendPieces(guest, 1, other);
            assertTrue(guest.reasonOfLoss().contains("end in its digest"));
        }
    }

    @Test
    void shouldRefuseLoadOfIncompleteBlob() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            stage(guest, 1, image());
            guest.send(Guest.IMAGE_LOAD, Guest.REPLY,
                out -> Guest.image(out, guest.newId(HandleKind.MODULE), 1, null));
            assertTrue(guest.reasonOfLoss().contains("must have been staged"));
        }
    }
}
