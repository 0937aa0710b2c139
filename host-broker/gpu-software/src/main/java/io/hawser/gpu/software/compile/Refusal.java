package io.hawser.gpu.software.compile;

/** Something that the translator does not do, found where no line is at hand; becomes a PtxException. */
final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1;

    Refusal(String what) {
        super(what, null, false, false);
    }
}
