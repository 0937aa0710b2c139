package io.hawser.gpu.software.image;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Extracts the PTX from the images of cuModuleLoadData and cuLibraryLoadData. An image is one part (PTX text, fat
 * binary, ELF), or several fat binaries in sequence at multiples of 8. The guest sends a device-linked program in the
 * second form. The guest chooses all bytes, so every length is checked.
 */
public final class DeviceImage {
    /**
     * The guest chooses the number of parts, and each is parsed. A device-linked program has one for each source file.
     */
    static final int MAX_PARTS = 4096;

    /** CUDA's fatbinary magic, observed in nvcc's output: facts/cuda.md section 3. */
    static final int FATBIN_MAGIC = 0xBA55ED50;
    private static final int ELF_MAGIC = 0x464C457F;

    /** Separates the texts of an image that the software GPU linked; other readers of PTX see a comment. */
    private static final String BORDER = "\n//hawser: next linked text\n";

    private DeviceImage() {
    }

    /**
     * Returns the PTX texts of an image, one for each part that has a text.
     *
     * @param image the whole image, in private memory.
     * @param deviceArchitecture compute capability as major * 10 + minor; selects among several PTX texts.
     * @return at least one text.
     * @throws ImageException CUDA_ERROR_INVALID_IMAGE if it is malformed, CUDA_ERROR_NO_BINARY_FOR_GPU if it holds only
     *     machine code of NVIDIA's GPUs.
     */
    public static List<String> ptx(MemorySegment image, int deviceArchitecture) throws ImageException {
        if (image.byteSize() < Integer.BYTES) {
            throw ImageException.invalid("image must have a magic number: bytes=" + image.byteSize());
        }
        int magic = image.get(ValueLayout.JAVA_INT_UNALIGNED, 0);
        if (magic == ELF_MAGIC) {
            throw noPtx();
        }
        if (magic != FATBIN_MAGIC) {
            List<String> joined = List.of(text(image).split(BORDER, MAX_PARTS + 1));
            if (joined.size() > MAX_PARTS) {
                throw ImageException.invalid("image must have at most " + MAX_PARTS + " parts");
            }
            return joined;
        }
        List<String> texts = new ArrayList<>();
        long offset = 0;
        int parts = 0;
        while (offset < image.byteSize()) {
            if (++parts > MAX_PARTS) {
                throw ImageException.invalid("image must have at most " + MAX_PARTS + " parts");
            }
            FatBinary part = FatBinary.at(image.asSlice(offset));
            String text = part.bestPtx(deviceArchitecture);
            if (text != null) {
                texts.add(text);
            }
            offset += (part.bytes() + 7) & -8L;
        }
        if (texts.isEmpty()) {
            throw noPtx();
        }
        return texts;
    }

    /**
     * Joins several texts into one, as the linker does; {@link #ptx} separates them again.
     *
     * @param texts at least one.
     */
    public static String join(List<String> texts) {
        return String.join(BORDER, texts);
    }

    private static ImageException noPtx() {
        return new ImageException(ImageException.NO_BINARY_FOR_GPU,
            "the image holds only machine code of NVIDIA GPUs; the software GPU needs PTX: compile with, for example, "
                + "nvcc -gencode arch=compute_75,code=compute_75");
    }

    /** PTX text without its NULs; rejects bytes that are not text. */
    static String text(MemorySegment bytes) throws ImageException {
        long length = bytes.byteSize();
        while (length > 0 && bytes.get(ValueLayout.JAVA_BYTE, length - 1) == 0) {
            length--;
        }
        if (length == 0 || length > Integer.MAX_VALUE - 16) {
            throw ImageException.invalid("PTX text must not be empty: bytes=" + bytes.byteSize());
        }
        byte[] text = bytes.asSlice(0, length).toArray(ValueLayout.JAVA_BYTE);
        for (byte b : text) {
            if (b == 0) {
                throw ImageException.invalid("image must be PTX text, a fat binary or ELF");
            }
        }
        return new String(text, StandardCharsets.UTF_8);
    }
}
