package io.hawser.gpu.software.compile;

/** An unsupported construct found by code that does not know the line; the caller converts it to a PtxException. */
final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1;

    Refusal(String what) {
        super(what, null, false, false);
    }
}
