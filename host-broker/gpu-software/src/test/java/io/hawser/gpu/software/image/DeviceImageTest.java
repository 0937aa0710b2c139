package io.hawser.gpu.software.image;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class DeviceImageTest {
    private static final int CC = 75;

    private static byte[] image(String mode) throws IOException {
        try (InputStream in = DeviceImageTest.class.getResourceAsStream("/images/k-" + mode + ".fatbin")) {
            return in.readAllBytes();
        }
    }

    private static List<String> ptx(byte[] bytes) throws ImageException {
        return DeviceImage.ptx(MemorySegment.ofArray(bytes), CC);
    }

    @ParameterizedTest
    @ValueSource(strings = {"default", "none", "size", "speed"})
    void shouldUnpackEachCompressionModeToTheSameText(String mode) throws Exception {
        List<String> texts = ptx(image(mode));
        assertEquals(1, texts.size());
        assertTrue(texts.getFirst().contains(".visible .entry vadd"));
        assertEquals(ptx(image("none")), texts);
    }

    @Test
    void shouldTakeThePtxOfTheHighestArchitectureUpToTheDevices() throws Exception {
        assertTrue(ptx(image("default")).getFirst().contains(".target sm_75"));
        assertTrue(DeviceImage.ptx(MemorySegment.ofArray(image("default")), 90).getFirst().contains(".target sm_90"));
        assertTrue(DeviceImage.ptx(MemorySegment.ofArray(image("default")), 50).getFirst().contains(".target sm_75"));
    }

    @Test
    void shouldTakeThePtxOfEachPartOfADeviceLinkedImage() throws Exception {
        byte[] one = image("size");
        byte[] two = image("speed");
        ByteBuffer both = ByteBuffer.allocate((one.length + 7 & -8) + two.length);
        both.put(one).position(one.length + 7 & -8).put(two);
        assertEquals(2, ptx(both.array()).size());
    }

    @Test
    void shouldReadPlainTextWithAndWithoutNul() throws Exception {
        byte[] text = ".version 8.0\n".getBytes(StandardCharsets.US_ASCII);
        assertEquals(List.of(".version 8.0\n"), ptx(text));
        assertEquals(List.of(".version 8.0\n"), ptx(Arrays.copyOf(text, text.length + 1)));
    }

    @Test
    void shouldSayThatMachineCodeAloneIsNotEnough() throws Exception {
        byte[] elf = {0x7F, 'E', 'L', 'F', 2, 1, 1, 0};
        ImageException e = assertThrows(ImageException.class, () -> ptx(elf));
        assertEquals(ImageException.NO_BINARY_FOR_GPU, e.cuResult());
        assertTrue(e.getMessage().contains("compute_75"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"default", "size", "speed"})
    void shouldRefuseAnImageTruncatedAtAnyLength(String mode) throws Exception {
        byte[] whole = image(mode);
        for (int length = 0; length < whole.length; length++) {
            byte[] part = Arrays.copyOf(whole, length);
            assertThrows(ImageException.class, () -> ptx(part), "length=" + length);
        }
    }

    @Test
    void shouldRefuseAnEntryThatUnpacksToMoreThanTheLimit() throws Exception {
        byte[] bytes = image("size");
        ByteBuffer view = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        for (int entry = 16; entry < bytes.length; entry += view.getInt(entry + 4) + (int) view.getLong(entry + 8)) {
            view.putLong(entry + 56, FatBinary.MAX_PTX_BYTES + 1);
        }
        assertThrows(ImageException.class, () -> ptx(bytes));
    }

    @Test
    void shouldNeverDoAnythingButRefuseDamagedImages() throws Exception {
        Random random = new Random(11);
        for (String mode : List.of("size", "speed")) {
            byte[] whole = image(mode);
            for (int run = 0; run < 3000; run++) {
                byte[] damaged = whole.clone();
                for (int hits = 1 + random.nextInt(4); hits > 0; hits--) {
                    damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
                }
                try {
                    ptx(damaged);
                } catch (ImageException refused) {
                    assertTrue(refused.cuResult() == ImageException.INVALID_IMAGE
                        || refused.cuResult() == ImageException.NO_BINARY_FOR_GPU);
                }
            }
        }
    }
}
