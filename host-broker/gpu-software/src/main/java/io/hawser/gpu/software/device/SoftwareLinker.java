package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.backend.DeviceLinker;
import io.hawser.gpu.software.compile.PtxImage;
import io.hawser.gpu.software.compile.PtxModule;
import io.hawser.gpu.software.image.DeviceImage;
import io.hawser.gpu.software.image.ImageException;
import io.hawser.gpu.software.ptx.PtxException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Links PTX texts by joining compatible ones into one image; loading the image links it again. */
final class SoftwareLinker implements DeviceLinker {
    private static final int CUBIN = 0; // CUjitInputType
    private static final int FATBINARY = 2;

    @Override
    public int link(List<Input> inputs, List<Option> options, StringBuilder log, Consumer<MemorySegment> image) {
        List<String> texts = new ArrayList<>();
        List<PtxModule> modules = new ArrayList<>();
        for (Input input : inputs) {
            if (input.type() > FATBINARY) {
                log.append(input.name()).append(": the software GPU links PTX and fat binaries that hold PTX\n");
                return CUDA_ERROR_NOT_SUPPORTED;
            }
            try {
                for (String text : DeviceImage.ptx(input.bytes(), Properties.COMPUTE_CAPABILITY)) {
                    modules.add(PtxModule.compile(text));
                    texts.add(text);
                }
            } catch (ImageException e) {
                log.append(input.name()).append(": ").append(e.getMessage()).append('\n');
                return input.type() == CUBIN ? CUDA_ERROR_NO_BINARY_FOR_GPU : e.cuResult();
            } catch (PtxException e) {
                log.append(input.name()).append(": ptx: ").append(e.getMessage()).append('\n');
                return e.cuResult();
            }
        }
        try {
            PtxImage.link(modules);
        } catch (PtxException e) {
            log.append("link: ").append(e.getMessage()).append('\n');
            return e.cuResult();
        }
        try (Arena arena = Arena.ofConfined()) {
            image.accept(arena.allocateFrom(DeviceImage.join(texts)));
        }
        return CUDA_SUCCESS;
    }
}
