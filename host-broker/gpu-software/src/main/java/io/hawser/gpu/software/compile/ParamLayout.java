package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Function;
import io.hawser.gpu.software.ptx.Variable;
import java.util.ArrayList;
import java.util.List;

/** The places of a kernel's parameters in its parameter buffer. */
final class ParamLayout {
    private ParamLayout() {
    }

    static List<PtxKernel.Param> of(Function kernel) {
        List<PtxKernel.Param> result = new ArrayList<>();
        long at = 0;
        for (Variable parameter : kernel.params()) {
            at = (at + parameter.alignment() - 1) / parameter.alignment() * parameter.alignment();
            result.add(new PtxKernel.Param((int) at, (int) parameter.bytes()));
            at += parameter.bytes();
            // CUDA 12.1 and newer allow 32,764 bytes of parameters.
            if (at > 32_764) {
                throw new Refusal("kernel parameters over 32764 bytes");
            }
        }
        return result;
    }

    static int offset(Function kernel, Variable parameter) {
        return of(kernel).get(kernel.params().indexOf(parameter)).offset();
    }
}
