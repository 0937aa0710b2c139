package io.hawser.gpu.software.dnn;

import io.hawser.cuda.generated.cudnn.CudnnDriver;
import io.hawser.cuda.generated.cudnn.cudnnActivationMode_t;
import io.hawser.cuda.generated.cudnn.cudnnConvolutionBwdDataAlgo_t;
import io.hawser.cuda.generated.cudnn.cudnnConvolutionBwdFilterAlgo_t;
import io.hawser.cuda.generated.cudnn.cudnnConvolutionFwdAlgoPerf_t;
import io.hawser.cuda.generated.cudnn.cudnnConvolutionFwdAlgo_t;
import io.hawser.cuda.generated.cudnn.cudnnDeterminism_t;
import io.hawser.cuda.generated.cudnn.cudnnMathType_t;
import io.hawser.cuda.generated.cudnn.cudnnNanPropagation_t;
import io.hawser.cuda.generated.cudnn.cudnnReduceTensorOp_t;
import io.hawser.cuda.generated.cudnn.cudnnStatus_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The older functions for convolutions. All algorithms of cuDNN are the same one here. */
interface ConvolutionFunctions extends CudnnDriver {
    /** Handles and descriptors. */
    DnnState state();

    private Convolution convolution(MemorySegment convDesc, MemorySegment xDesc, MemorySegment wDesc,
        MemorySegment yDesc, int algorithm, int algorithms) throws Refusal {
        Refusal.require(algorithm >= 0 && algorithm < algorithms, "an algorithm of convolutions");
        return Convolution.of(state().find(convDesc, Convolution.Content.class), state().find(xDesc, Shape.class),
            state().find(wDesc, Shape.class), state().find(yDesc, Shape.class));
    }

    private Runnable forward(double a, MemorySegment xDesc, long x, MemorySegment wDesc, long w,
        MemorySegment convDesc, int algo, double b, MemorySegment yDesc, long y) throws Refusal {
        Convolution convolution = convolution(convDesc, xDesc, wDesc, yDesc, algo,
            cudnnConvolutionFwdAlgo_t.CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
        Tensor in = state().input(xDesc, x);
        Tensor filter = state().input(wDesc, w);
        Tensor out = state().output(yDesc, y);
        Tensor.supportApart(out, in, filter);
        return () -> convolution.forward(in, filter, out, a, b);
    }

    @Override
    default int cudnnConvolutionForward(MemorySegment handle, MemorySegment alpha, MemorySegment xDesc, long x,
        MemorySegment wDesc, long w, MemorySegment convDesc, int algo, long workSpace, long workSpaceSizeInBytes,
        MemorySegment beta, MemorySegment yDesc, long y) {
        return state().issue("cudnnConvolutionForward", handle.address(), () -> forward(DnnState.number(alpha), xDesc,
            x, wDesc, w, convDesc, algo, DnnState.number(beta), yDesc, y));
    }

    @Override
    default int cudnnConvolutionBiasActivationForward(MemorySegment handle, MemorySegment alpha1, MemorySegment xDesc,
        long x, MemorySegment wDesc, long w, MemorySegment convDesc, int algo, long workSpace,
        long workSpaceSizeInBytes, MemorySegment alpha2, MemorySegment zDesc, long z, MemorySegment biasDesc,
        long bias, MemorySegment activationDesc, MemorySegment yDesc, long y) {
        return state().issue("cudnnConvolutionBiasActivationForward", handle.address(), () -> {
            Convolution convolution = convolution(convDesc, xDesc, wDesc, yDesc, algo,
                cudnnConvolutionFwdAlgo_t.CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
            Activation activation = state().find(activationDesc, Activation.class);
            Refusal.support(activation.mode() == cudnnActivationMode_t.CUDNN_ACTIVATION_RELU
                || activation.mode() == cudnnActivationMode_t.CUDNN_ACTIVATION_IDENTITY, "RELU or IDENTITY");
            Tensor in = state().input(xDesc, x);
            Tensor filter = state().input(wDesc, w);
            Tensor out = state().output(yDesc, y);
            Tensor offset = state().input(biasDesc, bias);
            requireBias(offset.shape(), out.shape());
            double a = DnnState.number(alpha1);
            double b = DnnState.number(alpha2);
            Tensor added = b == 0 ? out : state().input(zDesc, z);
            Refusal.require(added.shape().hasSizesOf(out.shape()), "z has the sizes of y");
            boolean isInPlace = added.isAt(out);
            Tensor.supportApart(out, in, filter, offset);
            Tensor.supportInPlace(out, added);
            return () -> {
                convolution.forward(in, filter, out, a, isInPlace ? b : 0);
                Elements.map(out, 0, v -> activation.of(v[0] + v[1] + (isInPlace ? 0 : b * v[2])), out, offset, added);
            };
        });
    }

    private static void requireBias(Shape bias, Shape data) throws Refusal {
        boolean fits = bias.dims() == data.dims() && data.dims() > 1;
        for (int i = 0; i < data.dims() && fits; i++) {
            fits = bias.size(i) == (i == 1 ? data.size(1) : 1);
        }
        Refusal.require(fits, "a bias has one number for each channel");
    }

    @Override
    default int cudnnConvolutionBackwardBias(MemorySegment handle, MemorySegment alpha, MemorySegment dyDesc, long dy,
        MemorySegment beta, MemorySegment dbDesc, long db) {
        return state().issue("cudnnConvolutionBackwardBias", handle.address(), () -> {
            Tensor in = state().input(dyDesc, dy);
            Tensor out = state().output(dbDesc, db);
            Tensor.supportApart(out, in);
            requireBias(out.shape(), in.shape());
            Reduction sum = new Reduction(cudnnReduceTensorOp_t.CUDNN_REDUCE_TENSOR_ADD,
                cudnnNanPropagation_t.CUDNN_PROPAGATE_NAN);
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> sum.run(in, out, a, b);
        });
    }

    private Runnable backwardData(double a, MemorySegment wDesc, long w, MemorySegment dyDesc, long dy,
        MemorySegment convDesc, int algo, double b, MemorySegment dxDesc, long dx) throws Refusal {
        Convolution convolution = convolution(convDesc, dxDesc, wDesc, dyDesc, algo,
            cudnnConvolutionBwdDataAlgo_t.CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
        Tensor filter = state().input(wDesc, w);
        Tensor gradient = state().input(dyDesc, dy);
        Tensor out = state().output(dxDesc, dx);
        Tensor.supportApart(out, filter, gradient);
        return () -> convolution.backwardData(filter, gradient, out, a, b);
    }

    @Override
    default int cudnnConvolutionBackwardData(MemorySegment handle, MemorySegment alpha, MemorySegment wDesc, long w,
        MemorySegment dyDesc, long dy, MemorySegment convDesc, int algo, long workSpace, long workSpaceSizeInBytes,
        MemorySegment beta, MemorySegment dxDesc, long dx) {
        return state().issue("cudnnConvolutionBackwardData", handle.address(), () -> backwardData(DnnState.number(
            alpha), wDesc, w, dyDesc, dy, convDesc, algo, DnnState.number(beta), dxDesc, dx));
    }

    private Runnable backwardFilter(double a, MemorySegment xDesc, long x, MemorySegment dyDesc, long dy,
        MemorySegment convDesc, int algo, double b, MemorySegment dwDesc, long dw) throws Refusal {
        Convolution convolution = convolution(convDesc, xDesc, dwDesc, dyDesc, algo,
            cudnnConvolutionBwdFilterAlgo_t.CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
        Tensor in = state().input(xDesc, x);
        Tensor gradient = state().input(dyDesc, dy);
        Tensor out = state().output(dwDesc, dw);
        Tensor.supportApart(out, in, gradient);
        return () -> convolution.backwardFilter(in, gradient, out, a, b);
    }

    @Override
    default int cudnnConvolutionBackwardFilter(MemorySegment handle, MemorySegment alpha, MemorySegment xDesc, long x,
        MemorySegment dyDesc, long dy, MemorySegment convDesc, int algo, long workSpace, long workSpaceSizeInBytes,
        MemorySegment beta, MemorySegment dwDesc, long dw) {
        return state().issue("cudnnConvolutionBackwardFilter", handle.address(), () -> backwardFilter(DnnState.number(
            alpha), xDesc, x, dyDesc, dy, convDesc, algo, DnnState.number(beta), dwDesc, dw));
    }

    @Override
    default int cudnnGetConvolutionForwardWorkspaceSize(MemorySegment handle, MemorySegment xDesc,
        MemorySegment wDesc, MemorySegment convDesc, MemorySegment yDesc, int algo, MemorySegment sizeInBytes) {
        return state().answer("cudnnGetConvolutionForwardWorkspaceSize", () -> {
            convolution(convDesc, xDesc, wDesc, yDesc, algo,
                cudnnConvolutionFwdAlgo_t.CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
            sizeInBytes.set(ValueLayout.JAVA_LONG, 0, 0);
        });
    }

    @Override
    default int cudnnGetConvolutionBackwardDataWorkspaceSize(MemorySegment handle, MemorySegment wDesc,
        MemorySegment dyDesc, MemorySegment convDesc, MemorySegment dxDesc, int algo, MemorySegment sizeInBytes) {
        return state().answer("cudnnGetConvolutionBackwardDataWorkspaceSize", () -> {
            convolution(convDesc, dxDesc, wDesc, dyDesc, algo,
                cudnnConvolutionBwdDataAlgo_t.CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
            sizeInBytes.set(ValueLayout.JAVA_LONG, 0, 0);
        });
    }

    @Override
    default int cudnnGetConvolutionBackwardFilterWorkspaceSize(MemorySegment handle, MemorySegment xDesc,
        MemorySegment dyDesc, MemorySegment convDesc, MemorySegment gradDesc, int algo, MemorySegment sizeInBytes) {
        return state().answer("cudnnGetConvolutionBackwardFilterWorkspaceSize", () -> {
            convolution(convDesc, xDesc, gradDesc, dyDesc, algo,
                cudnnConvolutionBwdFilterAlgo_t.CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
            sizeInBytes.set(ValueLayout.JAVA_LONG, 0, 0);
        });
    }

    /** Algorithms that programs know, the best first. */
    int[] FORWARD = {cudnnConvolutionFwdAlgo_t.CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
        cudnnConvolutionFwdAlgo_t.CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
        cudnnConvolutionFwdAlgo_t.CUDNN_CONVOLUTION_FWD_ALGO_GEMM};
    /** The same for gradients of data. */
    int[] BACKWARD_DATA = {cudnnConvolutionBwdDataAlgo_t.CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
        cudnnConvolutionBwdDataAlgo_t.CUDNN_CONVOLUTION_BWD_DATA_ALGO_0};
    /** The same for gradients of filters. */
    int[] BACKWARD_FILTER = {cudnnConvolutionBwdFilterAlgo_t.CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
        cudnnConvolutionBwdFilterAlgo_t.CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0};
    /** As of cuDNN's heuristics: no time has been measured. */
    float NO_TIME = -1;

    /** Writes as many results as the program has room for. The three structures have the same layout. */
    private static void rank(int requested, MemorySegment returned, MemorySegment results, float milliseconds,
        int... algorithms) throws Refusal {
        requireOne(requested);
        int count = Math.min(requested, algorithms.length);
        for (int i = 0; i < count; i++) {
            MemorySegment result = results.asSlice(i * (long) cudnnConvolutionFwdAlgoPerf_t.BYTES,
                cudnnConvolutionFwdAlgoPerf_t.BYTES);
            result.fill((byte) 0);
            result.set(ValueLayout.JAVA_INT, cudnnConvolutionFwdAlgoPerf_t.ALGO_OFFSET, algorithms[i]);
            result.set(ValueLayout.JAVA_FLOAT, cudnnConvolutionFwdAlgoPerf_t.TIME_OFFSET, milliseconds);
            result.set(ValueLayout.JAVA_INT, cudnnConvolutionFwdAlgoPerf_t.DETERMINISM_OFFSET,
                cudnnDeterminism_t.CUDNN_DETERMINISTIC);
            result.set(ValueLayout.JAVA_INT, cudnnConvolutionFwdAlgoPerf_t.MATH_TYPE_OFFSET,
                cudnnMathType_t.CUDNN_DEFAULT_MATH);
        }
        returned.set(ValueLayout.JAVA_INT, 0, count);
    }

    private static void requireOne(int requested) throws Refusal {
        Refusal.require(requested > 0, "at least one algorithm is requested");
    }

    @Override
    default int cudnnGetConvolutionForwardAlgorithm_v7(MemorySegment handle, MemorySegment srcDesc,
        MemorySegment filterDesc, MemorySegment convDesc, MemorySegment destDesc, int requestedAlgoCount,
        MemorySegment returnedAlgoCount, MemorySegment perfResults) {
        return state().answer("cudnnGetConvolutionForwardAlgorithm_v7", () -> {
            convolution(convDesc, srcDesc, filterDesc, destDesc, 0, 1);
            rank(requestedAlgoCount, returnedAlgoCount, perfResults, NO_TIME, FORWARD);
        });
    }

    @Override
    default int cudnnGetConvolutionBackwardDataAlgorithm_v7(MemorySegment handle, MemorySegment filterDesc,
        MemorySegment diffDesc, MemorySegment convDesc, MemorySegment gradDesc, int requestedAlgoCount,
        MemorySegment returnedAlgoCount, MemorySegment perfResults) {
        return state().answer("cudnnGetConvolutionBackwardDataAlgorithm_v7", () -> {
            convolution(convDesc, gradDesc, filterDesc, diffDesc, 0, 1);
            rank(requestedAlgoCount, returnedAlgoCount, perfResults, NO_TIME, BACKWARD_DATA);
        });
    }

    @Override
    default int cudnnGetConvolutionBackwardFilterAlgorithm_v7(MemorySegment handle, MemorySegment srcDesc,
        MemorySegment diffDesc, MemorySegment convDesc, MemorySegment gradDesc, int requestedAlgoCount,
        MemorySegment returnedAlgoCount, MemorySegment perfResults) {
        return state().answer("cudnnGetConvolutionBackwardFilterAlgorithm_v7", () -> {
            convolution(convDesc, srcDesc, gradDesc, diffDesc, 0, 1);
            rank(requestedAlgoCount, returnedAlgoCount, perfResults, NO_TIME, BACKWARD_FILTER);
        });
    }

    /** All algorithms are one computation, so one run measures the time of each. */
    private int search(String name, MemorySegment handle, int requested, MemorySegment returned,
        MemorySegment results, int[] algorithms, DnnState.Call call) {
        return state().measure(name, handle.address(), () -> {
            requireOne(requested);
            return call.prepare();
        }, time -> rank(requested, returned, results, time, algorithms));
    }

    @Override
    default int cudnnFindConvolutionForwardAlgorithmEx(MemorySegment handle, MemorySegment xDesc, long x,
        MemorySegment wDesc, long w, MemorySegment convDesc, MemorySegment yDesc, long y, int requestedAlgoCount,
        MemorySegment returnedAlgoCount, MemorySegment perfResults, long workSpace, long workSpaceSizeInBytes) {
        return search("cudnnFindConvolutionForwardAlgorithmEx", handle, requestedAlgoCount, returnedAlgoCount,
            perfResults, FORWARD, () -> forward(1, xDesc, x, wDesc, w, convDesc, 0, 0, yDesc, y));
    }

    @Override
    default int cudnnFindConvolutionBackwardDataAlgorithmEx(MemorySegment handle, MemorySegment wDesc, long w,
        MemorySegment dyDesc, long dy, MemorySegment convDesc, MemorySegment dxDesc, long dx, int requestedAlgoCount,
        MemorySegment returnedAlgoCount, MemorySegment perfResults, long workSpace, long workSpaceSizeInBytes) {
        return search("cudnnFindConvolutionBackwardDataAlgorithmEx", handle, requestedAlgoCount, returnedAlgoCount,
            perfResults, BACKWARD_DATA, () -> backwardData(1, wDesc, w, dyDesc, dy, convDesc, 0, 0, dxDesc, dx));
    }

    @Override
    default int cudnnFindConvolutionBackwardFilterAlgorithmEx(MemorySegment handle, MemorySegment xDesc, long x,
        MemorySegment dyDesc, long dy, MemorySegment convDesc, MemorySegment dwDesc, long dw, int requestedAlgoCount,
        MemorySegment returnedAlgoCount, MemorySegment perfResults, long workSpace, long workSpaceSizeInBytes) {
        return search("cudnnFindConvolutionBackwardFilterAlgorithmEx", handle, requestedAlgoCount, returnedAlgoCount,
            perfResults, BACKWARD_FILTER, () -> backwardFilter(1, xDesc, x, dyDesc, dy, convDesc, 0, 0, dwDesc, dw));
    }

    private static int count(MemorySegment count, int[] algorithms) {
        count.set(ValueLayout.JAVA_INT, 0, algorithms.length);
        return cudnnStatus_t.CUDNN_STATUS_SUCCESS;
    }

    @Override
    default int cudnnGetConvolutionForwardAlgorithmMaxCount(MemorySegment handle, MemorySegment count) {
        return count(count, FORWARD);
    }

    @Override
    default int cudnnGetConvolutionBackwardDataAlgorithmMaxCount(MemorySegment handle, MemorySegment count) {
        return count(count, BACKWARD_DATA);
    }

    @Override
    default int cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(MemorySegment handle, MemorySegment count) {
        return count(count, BACKWARD_FILTER);
    }
}
