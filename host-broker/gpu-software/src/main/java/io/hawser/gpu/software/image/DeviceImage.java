package io.hawser.gpu.software.image;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Takes the PTX out of what cuModuleLoadData and cuLibraryLoadData get. An image is one part (PTX text, fat binary,
 * ELF) or several fat binaries one after the other at multiples of 8, as the guest sends a device-linked program. All
 * bytes are the guest's: every length is checked.
 */
public final class DeviceImage {
    /** A guest chooses how many parts it sends; each is parsed. One is a source file of a device-linked program. */
    static final int MAX_PARTS = 4096;

    /** CUDA's fatbinary magic, observed in nvcc's output: facts/cuda.md section 3. */
    static final int FATBIN_MAGIC = 0xBA55ED50;
    private static final int ELF_MAGIC = 0x464C457F;

    /** Between the texts of an image that was linked here: a comment to anyone else. */
    private static final String BORDER = "\n//hawser: next linked text\n";

    private DeviceImage() {
    }

    /**
     * The PTX texts of an image, one for each part that has one.
     *
     * @param image the whole image, in private memory.
     * @param deviceArchitecture compute capability as major * 10 + minor, for the choice among several PTX texts.
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
     * One text of several, which {@link #ptx} takes apart: what the linker makes.
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

    /** PTX text without its NULs; anything that does not look like text is no image. */
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
