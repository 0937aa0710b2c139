package io.hawser.gpu.software.dnn;

import io.hawser.cuda.generated.cudnn.CudnnDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The older functions for activations, softmax, pooling, reductions, and element by element. */
interface TensorFunctions extends CudnnDriver {
    /** Handles and descriptors. */
    DnnState state();

    /** Checks that an element of the output depends on the inputs' elements with its index. */
    private static void requireSame(Tensor output, Tensor... inputs) throws Refusal {
        for (Tensor input : inputs) {
            Refusal.require(input.shape().hasSizesOf(output.shape()), "tensors have the same sizes");
        }
        Tensor.supportInPlace(output, inputs);
    }

    @Override
    default int cudnnAddTensor(MemorySegment handle, MemorySegment alpha, MemorySegment aDesc, long A,
        MemorySegment beta, MemorySegment cDesc, long C) {
        return state().issue("cudnnAddTensor", handle.address(), () -> {
            Tensor in = state().input(aDesc, A);
            Tensor out = state().output(cDesc, C);
            Refusal.require(in.shape().isWithin(out.shape()), "A has the sizes of C, or 1");
            Tensor.supportInPlace(out, in);
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> Elements.map(out, b, v -> a * v[0], in);
        });
    }

    @Override
    default int cudnnTransformTensor(MemorySegment handle, MemorySegment alpha, MemorySegment xDesc, long x,
        MemorySegment beta, MemorySegment yDesc, long y) {
        return state().issue("cudnnTransformTensor", handle.address(), () -> {
            Tensor in = state().input(xDesc, x);
            Tensor out = state().output(yDesc, y);
            requireSame(out, in);
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> Elements.map(out, b, v -> a * v[0], in);
        });
    }

    @Override
    default int cudnnOpTensor(MemorySegment handle, MemorySegment opTensorDesc, MemorySegment alpha1,
        MemorySegment aDesc, long A, MemorySegment alpha2, MemorySegment bDesc, long B, MemorySegment beta,
        MemorySegment cDesc, long C) {
        return state().issue("cudnnOpTensor", handle.address(), () -> {
            Operator operator = state().find(opTensorDesc, Operator.class);
            Tensor left = state().input(aDesc, A);
            Tensor right = operator.isUnary() ? left : state().input(bDesc, B);
            Tensor out = state().output(cDesc, C);
            requireSame(out, left);
            Refusal.require(right.shape().isWithin(out.shape()), "B has the sizes of A, or 1");
            Tensor.supportInPlace(out, right);
            double a = DnnState.number(alpha1);
            double b = DnnState.number(alpha2);
            double c = DnnState.number(beta);
            return () -> Elements.map(out, c, v -> operator.of(a * v[0], b * v[1]), left, right);
        });
    }

    @Override
    default int cudnnReduceTensor(MemorySegment handle, MemorySegment reduceTensorDesc, long indices,
        long indicesSizeInBytes, long workspace, long workspaceSizeInBytes, MemorySegment alpha, MemorySegment aDesc,
        long A, MemorySegment beta, MemorySegment cDesc, long C) {
        return state().issue("cudnnReduceTensor", handle.address(), () -> {
            Reduction reduction = state().find(reduceTensorDesc, Reduction.class);
            Tensor in = state().input(aDesc, A);
            Tensor out = state().output(cDesc, C);
            reduction.check(in.shape(), out.shape());
            Tensor.supportApart(out, in);
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> reduction.run(in, out, a, b);
        });
    }

    private int reductionBytes(String name, MemorySegment reduceTensorDesc, MemorySegment aDesc, MemorySegment cDesc,
        MemorySegment sizeInBytes) {
        return state().answer(name, () -> {
            state().find(reduceTensorDesc, Reduction.class).check(state().find(aDesc, Shape.class),
                state().find(cDesc, Shape.class));
            sizeInBytes.set(ValueLayout.JAVA_LONG, 0, 0);
        });
    }

    @Override
    default int cudnnGetReductionWorkspaceSize(MemorySegment handle, MemorySegment reduceTensorDesc,
        MemorySegment aDesc, MemorySegment cDesc, MemorySegment sizeInBytes) {
        return reductionBytes("cudnnGetReductionWorkspaceSize", reduceTensorDesc, aDesc, cDesc, sizeInBytes);
    }

    @Override
    default int cudnnGetReductionIndicesSize(MemorySegment handle, MemorySegment reduceTensorDesc,
        MemorySegment aDesc, MemorySegment cDesc, MemorySegment sizeInBytes) {
        return reductionBytes("cudnnGetReductionIndicesSize", reduceTensorDesc, aDesc, cDesc, sizeInBytes);
    }

    @Override
    default int cudnnScaleTensor(MemorySegment handle, MemorySegment yDesc, long y, MemorySegment alpha) {
        return state().issue("cudnnScaleTensor", handle.address(), () -> {
            Tensor out = state().output(yDesc, y);
            double a = DnnState.number(alpha);
            return () -> Elements.map(out, 0, v -> a * v[0], out);
        });
    }

    @Override
    default int cudnnActivationForward(MemorySegment handle, MemorySegment activationDesc, MemorySegment alpha,
        MemorySegment xDesc, long x, MemorySegment beta, MemorySegment yDesc, long y) {
        return state().issue("cudnnActivationForward", handle.address(), () -> {
            Activation activation = state().find(activationDesc, Activation.class);
            activation.check();
            Tensor in = state().input(xDesc, x);
            Tensor out = state().output(yDesc, y);
            requireSame(out, in);
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> activation.forward(in, out, a, b);
        });
    }

    @Override
    default int cudnnActivationBackward(MemorySegment handle, MemorySegment activationDesc, MemorySegment alpha,
        MemorySegment yDesc, long y, MemorySegment dyDesc, long dy, MemorySegment xDesc, long x, MemorySegment beta,
        MemorySegment dxDesc, long dx) {
        return state().issue("cudnnActivationBackward", handle.address(), () -> {
            Activation activation = state().find(activationDesc, Activation.class);
            activation.check();
            Tensor result = state().input(yDesc, y);
            Tensor gradient = state().input(dyDesc, dy);
            Tensor in = state().input(xDesc, x);
            Tensor out = state().output(dxDesc, dx);
            requireSame(out, result, gradient, in);
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> activation.backward(result, gradient, in, out, a, b);
        });
    }

    @Override
    default int cudnnSoftmaxForward(MemorySegment handle, int algo, int mode, MemorySegment alpha,
        MemorySegment xDesc, long x, MemorySegment beta, MemorySegment yDesc, long y) {
        return state().issue("cudnnSoftmaxForward", handle.address(), () -> {
            Tensor in = state().input(xDesc, x);
            Tensor out = state().output(yDesc, y);
            requireSame(out, in);
            Softmax softmax = Softmax.of(algo, mode, in.shape());
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> softmax.forward(in, out, a, b);
        });
    }

    @Override
    default int cudnnSoftmaxBackward(MemorySegment handle, int algo, int mode, MemorySegment alpha,
        MemorySegment yDesc, long y, MemorySegment dyDesc, long dy, MemorySegment beta, MemorySegment dxDesc,
        long dx) {
        return state().issue("cudnnSoftmaxBackward", handle.address(), () -> {
            Tensor result = state().input(yDesc, y);
            Tensor gradient = state().input(dyDesc, dy);
            Tensor out = state().output(dxDesc, dx);
            requireSame(out, result, gradient);
            Softmax softmax = Softmax.of(algo, mode, result.shape());
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> softmax.backward(result, gradient, out, a, b);
        });
    }

    @Override
    default int cudnnPoolingForward(MemorySegment handle, MemorySegment poolingDesc, MemorySegment alpha,
        MemorySegment xDesc, long x, MemorySegment beta, MemorySegment yDesc, long y) {
        return state().issue("cudnnPoolingForward", handle.address(), () -> {
            Tensor in = state().input(xDesc, x);
            Tensor out = state().output(yDesc, y);
            Pooling pooling = Pooling.of(state().find(poolingDesc, Pooling.Content.class), in.shape(), out.shape());
            Tensor.supportApart(out, in);
            Tensor from = in.volume();
            Tensor to = out.volume();
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> pooling.forward(from, to, a, b);
        });
    }

    @Override
    default int cudnnPoolingBackward(MemorySegment handle, MemorySegment poolingDesc, MemorySegment alpha,
        MemorySegment yDesc, long y, MemorySegment dyDesc, long dy, MemorySegment xDesc, long x, MemorySegment beta,
        MemorySegment dxDesc, long dx) {
        return state().issue("cudnnPoolingBackward", handle.address(), () -> {
            Tensor result = state().input(yDesc, y);
            Tensor gradient = state().input(dyDesc, dy);
            Tensor in = state().input(xDesc, x);
            Tensor out = state().output(dxDesc, dx);
            Refusal.require(result.shape().hasSizesOf(gradient.shape()) && in.shape().hasSizesOf(out.shape()),
                "gradients have the sizes of their tensors");
            Tensor.supportApart(out, in, gradient);
            Pooling pooling = Pooling.of(state().find(poolingDesc, Pooling.Content.class), in.shape(),
                gradient.shape());
            Tensor from = in.volume();
            Tensor by = gradient.volume();
            Tensor to = out.volume();
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> pooling.backward(from, by, to, a, b);
        });
    }
}
