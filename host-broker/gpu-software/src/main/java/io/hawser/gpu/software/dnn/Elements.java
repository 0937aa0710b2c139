package io.hawser.gpu.software.dnn;

/** Functions of the elements of tensors. */
final class Elements {
    private Elements() {
    }

    /** A function of an element of each input. */
    interface Function {
        /**
         * The result.
         *
         * @param in reused for the next element.
         */
        double of(double[] in);
    }

    /**
     * {@code out = function(inputs) + beta * out}. An input that has size 1 in a dimension repeats its element. An
     * input may be the output.
     */
    static void map(Tensor out, double beta, Function function, Tensor... inputs) {
        long[][] strides = new long[inputs.length + 1][];
        strides[inputs.length] = out.shape().strides();
        for (int i = 0; i < inputs.length; i++) {
            strides[i] = inputs[i].shape().stridesWithin(out.shape());
        }
        long[] sizes = out.shape().sizes();
        Parallel.each(out.shape().count(), 1, (from, to) -> {
            Walk walk = new Walk(sizes, strides);
            walk.seek(from);
            double[] in = new double[inputs.length];
            for (long element = from; element < to; element++) {
                for (int i = 0; i < in.length; i++) {
                    in[i] = inputs[i].get(walk.place(i));
                }
                out.blend(walk.place(inputs.length), function.of(in), beta);
                walk.next();
            }
        });
    }
}
