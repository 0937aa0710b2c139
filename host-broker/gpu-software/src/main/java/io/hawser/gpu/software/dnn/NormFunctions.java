package io.hawser.gpu.software.dnn;

import io.hawser.cuda.generated.cudnn.CudnnDriver;
import io.hawser.cuda.generated.cudnn.cudnnBatchNormOps_t;
import io.hawser.cuda.generated.cudnn.cudnnLRNMode_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The older functions for normalization. */
interface NormFunctions extends CudnnDriver {
    /** Handles and descriptors. */
    DnnState state();

    /** A call's work, with the name of its function for an error. */
    private int train(String name, MemorySegment handle, int mode, int bnOps, MemorySegment alpha, MemorySegment beta,
        MemorySegment xDesc, long x, MemorySegment yDesc, long y, MemorySegment parameters, long scale, long bias,
        double factor, long runningMean, long runningVariance, double epsilon, long savedMean, long savedInverse) {
        return state().issue(name, handle.address(), () -> {
            supportPlain(bnOps);
            Tensor in = state().input(xDesc, x);
            Tensor out = state().output(yDesc, y);
            Refusal.require(in.shape().hasSizesOf(out.shape()), "x and y have the same sizes");
            Tensor.supportInPlace(out, in);
            Tensor scales = state().input(parameters, scale);
            Tensor biases = state().input(parameters, bias);
            Normalization norm = Normalization.of(mode, in.shape(), scales.shape(), epsilon);
            Refusal.require((runningMean == 0) == (runningVariance == 0) && (savedMean == 0) == (savedInverse == 0),
                "a mean and its variance come together");
            Refusal.support(runningVariance == 0 || norm.members() > 1, "a running variance of several elements");
            Normalization.Statistics statistics = new Normalization.Statistics(
                state().optional(parameters, runningMean), state().optional(parameters, runningVariance), factor,
                state().optional(parameters, savedMean), state().optional(parameters, savedInverse));
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> norm.train(in, out, scales, biases, statistics, a, b);
        });
    }

    private static void supportPlain(int bnOps) throws Refusal {
        Refusal.support(bnOps == cudnnBatchNormOps_t.CUDNN_BATCHNORM_OPS_BN,
            "a normalization without addition and activation");
    }

    @Override
    default int cudnnBatchNormalizationForwardTraining(MemorySegment handle, int mode, MemorySegment alpha,
        MemorySegment beta, MemorySegment xDesc, long x, MemorySegment yDesc, long y,
        MemorySegment bnScaleBiasMeanVarDesc, long bnScale, long bnBias, double exponentialAverageFactor,
        long resultRunningMean, long resultRunningVariance, double epsilon, long resultSaveMean,
        long resultSaveInvVariance) {
        return train("cudnnBatchNormalizationForwardTraining", handle, mode,
            cudnnBatchNormOps_t.CUDNN_BATCHNORM_OPS_BN, alpha, beta, xDesc, x, yDesc, y, bnScaleBiasMeanVarDesc,
            bnScale, bnBias, exponentialAverageFactor, resultRunningMean, resultRunningVariance, epsilon,
            resultSaveMean, resultSaveInvVariance);
    }

    @Override
    default int cudnnBatchNormalizationForwardTrainingEx(MemorySegment handle, int mode, int bnOps,
        MemorySegment alpha, MemorySegment beta, MemorySegment xDesc, long xData, MemorySegment zDesc, long zData,
        MemorySegment yDesc, long yData, MemorySegment bnScaleBiasMeanVarDesc, long bnScale, long bnBias,
        double exponentialAverageFactor, long resultRunningMean, long resultRunningVariance, double epsilon,
        long resultSaveMean, long resultSaveInvVariance, MemorySegment activationDesc, long workspace,
        long workSpaceSizeInBytes, long reserveSpace, long reserveSpaceSizeInBytes) {
        return train("cudnnBatchNormalizationForwardTrainingEx", handle, mode, bnOps, alpha, beta, xDesc, xData,
            yDesc, yData, bnScaleBiasMeanVarDesc, bnScale, bnBias, exponentialAverageFactor, resultRunningMean,
            resultRunningVariance, epsilon, resultSaveMean, resultSaveInvVariance);
    }

    @Override
    default int cudnnBatchNormalizationForwardInference(MemorySegment handle, int mode, MemorySegment alpha,
        MemorySegment beta, MemorySegment xDesc, long x, MemorySegment yDesc, long y,
        MemorySegment bnScaleBiasMeanVarDesc, long bnScale, long bnBias, long estimatedMean, long estimatedVariance,
        double epsilon) {
        return state().issue("cudnnBatchNormalizationForwardInference", handle.address(), () -> {
            Tensor in = state().input(xDesc, x);
            Tensor out = state().output(yDesc, y);
            Refusal.require(in.shape().hasSizesOf(out.shape()), "x and y have the same sizes");
            Tensor.supportInPlace(out, in);
            Tensor scale = state().input(bnScaleBiasMeanVarDesc, bnScale);
            Tensor bias = state().input(bnScaleBiasMeanVarDesc, bnBias);
            Tensor mean = state().input(bnScaleBiasMeanVarDesc, estimatedMean);
            Tensor variance = state().input(bnScaleBiasMeanVarDesc, estimatedVariance);
            Normalization norm = Normalization.of(mode, in.shape(), scale.shape(), epsilon);
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> norm.infer(in, out, scale, bias, mean, variance, a, b);
        });
    }

    /** A call's work, with the name of its function for an error. */
    private int backward(String name, MemorySegment handle, int mode, int bnOps, MemorySegment[] factors,
        MemorySegment xDesc, long x, MemorySegment dyDesc, long dy, MemorySegment dxDesc, long dx,
        MemorySegment parameters, long scale, long dScale, long dBias, double epsilon, long savedMean,
        long savedInverse) {
        return state().issue(name, handle.address(), () -> {
            supportPlain(bnOps);
            Tensor in = state().input(xDesc, x);
            Tensor gradient = state().input(dyDesc, dy);
            Tensor out = state().output(dxDesc, dx);
            Refusal.require(in.shape().hasSizesOf(out.shape()) && in.shape().hasSizesOf(gradient.shape()),
                "x, dy and dx have the same sizes");
            Tensor.supportInPlace(out, in, gradient);
            Refusal.require((savedMean == 0) == (savedInverse == 0), "a mean and its variance come together");
            Tensor scales = state().input(parameters, scale);
            Normalization norm = Normalization.of(mode, in.shape(), scales.shape(), epsilon);
            Normalization.Parameters given = new Normalization.Parameters(scales, state().output(parameters, dScale),
                state().output(parameters, dBias), state().optional(parameters, savedMean),
                state().optional(parameters, savedInverse));
            Normalization.Factors numbers = new Normalization.Factors(DnnState.number(factors[0]),
                DnnState.number(factors[1]), DnnState.number(factors[2]), DnnState.number(factors[3]));
            return () -> norm.backward(in, gradient, out, given, numbers);
        });
    }

    @Override
    default int cudnnBatchNormalizationBackward(MemorySegment handle, int mode, MemorySegment alphaDataDiff,
        MemorySegment betaDataDiff, MemorySegment alphaParamDiff, MemorySegment betaParamDiff, MemorySegment xDesc,
        long x, MemorySegment dyDesc, long dy, MemorySegment dxDesc, long dx, MemorySegment dBnScaleBiasDesc,
        long bnScale, long dBnScaleResult, long dBnBiasResult, double epsilon, long savedMean,
        long savedInvVariance) {
        return backward("cudnnBatchNormalizationBackward", handle, mode, cudnnBatchNormOps_t.CUDNN_BATCHNORM_OPS_BN,
            new MemorySegment[] {alphaDataDiff, betaDataDiff, alphaParamDiff, betaParamDiff}, xDesc, x, dyDesc, dy,
            dxDesc, dx, dBnScaleBiasDesc, bnScale, dBnScaleResult, dBnBiasResult, epsilon, savedMean,
            savedInvVariance);
    }

    @Override
    default int cudnnBatchNormalizationBackwardEx(MemorySegment handle, int mode, int bnOps,
        MemorySegment alphaDataDiff, MemorySegment betaDataDiff, MemorySegment alphaParamDiff,
        MemorySegment betaParamDiff, MemorySegment xDesc, long xData, MemorySegment yDesc, long yData,
        MemorySegment dyDesc, long dyData, MemorySegment dzDesc, long dzData, MemorySegment dxDesc, long dxData,
        MemorySegment dBnScaleBiasDesc, long bnScaleData, long bnBiasData, long dBnScaleData, long dBnBiasData,
        double epsilon, long savedMean, long savedInvVariance, MemorySegment activationDesc, long workSpace,
        long workSpaceSizeInBytes, long reserveSpace, long reserveSpaceSizeInBytes) {
        return backward("cudnnBatchNormalizationBackwardEx", handle, mode, bnOps,
            new MemorySegment[] {alphaDataDiff, betaDataDiff, alphaParamDiff, betaParamDiff}, xDesc, xData, dyDesc,
            dyData, dxDesc, dxData, dBnScaleBiasDesc, bnScaleData, dBnScaleData, dBnBiasData, epsilon, savedMean,
            savedInvVariance);
    }

    private int needsNoMemory(String name, int bnOps, MemorySegment sizeInBytes) {
        return state().answer(name, () -> {
            supportPlain(bnOps);
            sizeInBytes.set(ValueLayout.JAVA_LONG, 0, 0);
        });
    }

    @Override
    default int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(MemorySegment handle, int mode, int bnOps,
        MemorySegment xDesc, MemorySegment zDesc, MemorySegment yDesc, MemorySegment bnScaleBiasMeanVarDesc,
        MemorySegment activationDesc, MemorySegment sizeInBytes) {
        return needsNoMemory("cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize", bnOps, sizeInBytes);
    }

    @Override
    default int cudnnGetBatchNormalizationBackwardExWorkspaceSize(MemorySegment handle, int mode, int bnOps,
        MemorySegment xDesc, MemorySegment yDesc, MemorySegment dyDesc, MemorySegment dzDesc, MemorySegment dxDesc,
        MemorySegment dBnScaleBiasDesc, MemorySegment activationDesc, MemorySegment sizeInBytes) {
        return needsNoMemory("cudnnGetBatchNormalizationBackwardExWorkspaceSize", bnOps, sizeInBytes);
    }

    @Override
    default int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(MemorySegment handle, int mode, int bnOps,
        MemorySegment activationDesc, MemorySegment xDesc, MemorySegment sizeInBytes) {
        return needsNoMemory("cudnnGetBatchNormalizationTrainingExReserveSpaceSize", bnOps, sizeInBytes);
    }

    private static void requireChannels(int lrnMode, Tensor in, Tensor... others) throws Refusal {
        Refusal.require(lrnMode == cudnnLRNMode_t.CUDNN_LRN_CROSS_CHANNEL_DIM1, "a mode of local normalization");
        Refusal.require(in.shape().dims() > 1, "a normalized tensor has channels");
        for (Tensor other : others) {
            Refusal.require(other.shape().hasSizesOf(in.shape()), "tensors have the same sizes");
        }
    }

    @Override
    default int cudnnLRNCrossChannelForward(MemorySegment handle, MemorySegment normDesc, int lrnMode,
        MemorySegment alpha, MemorySegment xDesc, long x, MemorySegment beta, MemorySegment yDesc, long y) {
        return state().issue("cudnnLRNCrossChannelForward", handle.address(), () -> {
            LocalResponse response = state().find(normDesc, LocalResponse.class);
            Tensor in = state().input(xDesc, x);
            Tensor out = state().output(yDesc, y);
            requireChannels(lrnMode, in, out);
            Tensor.supportApart(out, in);
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> response.forward(in, out, a, b);
        });
    }

    @Override
    default int cudnnLRNCrossChannelBackward(MemorySegment handle, MemorySegment normDesc, int lrnMode,
        MemorySegment alpha, MemorySegment yDesc, long y, MemorySegment dyDesc, long dy, MemorySegment xDesc, long x,
        MemorySegment beta, MemorySegment dxDesc, long dx) {
        return state().issue("cudnnLRNCrossChannelBackward", handle.address(), () -> {
            LocalResponse response = state().find(normDesc, LocalResponse.class);
            Tensor gradient = state().input(dyDesc, dy);
            Tensor in = state().input(xDesc, x);
            Tensor out = state().output(dxDesc, dx);
            requireChannels(lrnMode, in, gradient, out, state().input(yDesc, y));
            Tensor.supportApart(out, in, gradient);
            double a = DnnState.number(alpha);
            double b = DnnState.number(beta);
            return () -> response.backward(in, gradient, out, a, b);
        });
    }
}
