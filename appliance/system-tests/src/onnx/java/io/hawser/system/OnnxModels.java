package io.hawser.system;

import static io.hawser.system.OnnxGraph.list;

import io.hawser.system.OnnxGraph.Element;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Small ONNX models, each of one operator or a few that a framework fuses. The software GPU runs all of them. */
final class OnnxModels {
    private static final long[] IMAGE = {2, 8, 16, 16};
    private static final int BLOCK_WIDTH = 64;
    private static final int BLOCK_HEADS = 4;

    private final List<Model> models = new ArrayList<>();

    /**
     * A model.
     *
     * @param name its name in the output.
     * @param graph its graph.
     */
    record Model(String name, OnnxGraph graph) {}

    private OnnxModels() {
        elements();
        products();
        convolutions();
        normalizations();
        reductions();
        movements();
        add("transformer_block", transformerBlock());
        add("loop", loop());
    }

    /** All models. */
    static List<Model> all() {
        return List.copyOf(new OnnxModels().models);
    }

    private void add(String name, OnnxGraph graph) {
        models.add(new Model(name, graph));
    }

    /** A graph with the image {@code x} as its input. */
    private static OnnxGraph image() {
        return new OnnxGraph().input("x", IMAGE);
    }

    /** Adds one node for each operator, and an output with the operator's name. */
    private static OnnxGraph each(OnnxGraph graph, String inputs, String... operators) {
        for (String operator : operators) {
            graph.node(operator, inputs, operator).outputs(operator);
        }
        return graph;
    }

    private void elements() {
        add("unary", each(image(), "x", "Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Abs", "Neg", "Softplus", "Sin",
            "Cos", "Floor", "Round", "Sign"));
        add("broadcast", each(image().input("z", 8, 1, 16), "x,z", "Add", "Mul", "Sub", "Div", "Max", "Min"));
        add("equal", new OnnxGraph().input("x", Element.INT64, 4, 5).input("z", Element.INT64, 4, 5)
            .node("Equal", "x,z", "y").outputs("y", Element.BOOL));
        add("where", new OnnxGraph().input("c", Element.BOOL, 4, 9).input("x", 4, 9).input("z", 4, 9)
            .node("Where", "c,x,z", "y").outputs("y"));
        add("cast", image().node("Cast", "x", "y", Map.of("to", Element.FLOAT16.number()))
            .outputs("y", Element.FLOAT16));
    }

    private void products() {
        add("matmul_float", new OnnxGraph().input("a", 3, 64, 48).input("b", 3, 48, 40)
            .node("MatMul", "a,b", "y").outputs("y"));
        add("matmul_double", new OnnxGraph().input("a", Element.DOUBLE, 64, 48).input("b", Element.DOUBLE, 48, 40)
            .node("MatMul", "a,b", "y").outputs("y", Element.DOUBLE));
        add("gemm", new OnnxGraph().input("a", 32, 48).weights("b", 1, 40, 48).weights("c", 1, 40)
            .node("Gemm", "a,b,c", "y", Map.of("transB", 1L, "alpha", 0.5f, "beta", 2.0f)).outputs("y"));
        add("einsum", new OnnxGraph().input("a", 2, 8, 5).input("b", 2, 5, 7)
            .node("Einsum", "a,b", "y", Map.of("equation", "bij,bjk->bik")).outputs("y"));
    }

    private void convolutions() {
        long[] one = list(1, 1, 1, 1);
        long[] two = list(2, 2);
        add("conv", image().weights("w", 1, 12, 8, 3, 3).weights("b", 1, 12)
            .node("Conv", "x,w,b", "y", Map.of("pads", one)).outputs("y"));
        add("conv_strided_grouped", image().weights("w", 1, 12, 4, 3, 3).weights("b", 1, 12)
            .node("Conv", "x,w,b", "y", Map.of("pads", one, "strides", two, "dilations", two, "group", 2L))
            .outputs("y"));
        add("conv_1d", new OnnxGraph().input("x", 2, 8, 50).weights("w", 1, 12, 8, 5)
            .node("Conv", "x,w", "y").outputs("y"));
        add("conv_normalized_relu", statistics(image().weights("w", 1, 12, 8, 3, 3), 12)
            .node("Conv", "x,w", "c", Map.of("pads", one)).node("BatchNormalization", "c,s,b,m,v", "n")
            .node("Relu", "n", "y").outputs("y"));
        add("conv_transpose", image().weights("w", 1, 8, 6, 3, 3).weights("b", 1, 6)
            .node("ConvTranspose", "x,w,b", "y", Map.of("strides", two)).outputs("y"));
        Map<String, Object> window = Map.of("kernel_shape", list(3, 3), "strides", two, "pads", one);
        add("pool", each(image(), "x", "GlobalAveragePool", "GlobalMaxPool").node("MaxPool", "x", "m", window)
            .node("AveragePool", "x", "a", window).outputs("m,a"));
    }

    /** Adds the scale {@code s}, shift {@code b}, mean {@code m} and variance {@code v} of each channel. */
    private static OnnxGraph statistics(OnnxGraph graph, long channels) {
        return graph.weights("s", 1, channels).weights("b", 1, channels).weights("m", 1, channels)
            .positiveWeights("v", channels);
    }

    private void normalizations() {
        add("batch_normalization", statistics(image(), 8).node("BatchNormalization", "x,s,b,m,v", "y").outputs("y"));
        add("layer_normalization", new OnnxGraph().input("x", 2, 10, 64).weights("s", 1, 64).weights("b", 1, 64)
            .node("LayerNormalization", "x,s,b", "y").outputs("y"));
        add("softmax", image().node("Softmax", "x", "last", Map.of("axis", -1L))
            .node("Softmax", "x", "channels", Map.of("axis", 1L)).outputs("last,channels"));
    }

    private void reductions() {
        add("reduce", each(image().longs("axes", 1, 3), "x,axes", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2",
            "ReduceLogSumExp"));
        add("top_k", new OnnxGraph().input("x", 4, 100).longs("k", 7).node("TopK", "x,k", "y,i").outputs("y")
            .outputs("i", Element.INT64));
        add("cumulative_sum", new OnnxGraph().input("x", 4, 100).longs("axis", list(), 1)
            .node("CumSum", "x,axis", "y").outputs("y"));
    }

    private void movements() {
        add("transpose", image().node("Transpose", "x", "y", Map.of("perm", list(0, 2, 3, 1))).outputs("y"));
        add("slice", image().longs("starts", 1, 2).longs("ends", 8, 15).longs("axes", 1, 2).longs("steps", 2, 3)
            .node("Slice", "x,starts,ends,axes,steps", "y").outputs("y"));
        add("concat_split", image().input("z", 2, 4, 16, 16).node("Concat", "x,z", "c", Map.of("axis", 1L))
            .node("Split", "c", "a,b", Map.of("axis", 1L, "num_outputs", 2L)).outputs("a,b"));
        add("gather", new OnnxGraph().input("x", 9, 16).input("i", Element.INT64, 5).node("Gather", "x,i", "y")
            .outputs("y"));
        add("scatter", new OnnxGraph().input("x", 4, 16).longs("i", list(2, 1), 0, 2).weights("u", 1, 2, 16)
            .node("ScatterND", "x,i,u", "y").outputs("y"));
        add("resize", image().floats("scales", list(4), 1, 1, 2, 2)
            .node("Resize", "x,,scales", "y", Map.of("mode", "linear")).outputs("y"));
    }

    /** A loop whose body runs on the GPU; the CUDA provider reads its counter and its condition on the CPU. */
    private static OnnxGraph loop() {
        OnnxGraph body = new OnnxGraph().input("i", Element.INT64).input("c", Element.BOOL).input("v", 4, 9)
            .floats("factor", list(), 0.9f).floats("term", list(), 0.1f).node("Identity", "c", "next_c")
            .node("Mul", "v,factor", "m").node("Add", "m,term", "next_v").outputs("next_c", Element.BOOL)
            .outputs("next_v");
        return new OnnxGraph().input("x", 4, 9).longs("n", list(), 20)
            .node("Loop", "n,,x", "y", Map.of("body", body)).outputs("y");
    }

    /** Attention with several heads and a layer with a hidden layer, each with a normalization and a bypass. */
    private static OnnxGraph transformerBlock() {
        long width = BLOCK_WIDTH;
        double deviation = 1 / Math.sqrt(width);
        OnnxGraph graph = new OnnxGraph().input("x", 2, 24, width).longs("split", 0, 0, BLOCK_HEADS,
            width / BLOCK_HEADS).longs("join", 0, 0, width);
        graph.weights("s1", 1, width).weights("b1", 1, width).node("LayerNormalization", "x,s1,b1", "n1");
        for (String part : List.of("q", "k", "v")) {
            long[] order = part.equals("k") ? list(0, 2, 3, 1) : list(0, 2, 1, 3);
            graph.weights("w" + part, deviation, width, width).node("MatMul", "n1,w" + part, "m" + part)
                .node("Reshape", "m" + part + ",split", "r" + part)
                .node("Transpose", "r" + part, part, Map.of("perm", order));
        }
        graph.floats("scale", list(), (float) Math.sqrt(1.0 * BLOCK_HEADS / width)).node("MatMul", "q,k", "qk")
            .node("Mul", "qk,scale", "scaled").node("Softmax", "scaled", "p", Map.of("axis", -1L))
            .node("MatMul", "p,v", "pv").node("Transpose", "pv", "t", Map.of("perm", list(0, 2, 1, 3)))
            .node("Reshape", "t,join", "a").weights("wo", deviation, width, width).node("MatMul", "a,wo", "o")
            .node("Add", "x,o", "x1");
        return graph.weights("s2", 1, width).weights("b2", 1, width).node("LayerNormalization", "x1,s2,b2", "n2")
            .weights("wu", deviation, width, 4 * width).weights("bu", 1, 4 * width).node("MatMul", "n2,wu", "u")
            .node("Add", "u,bu", "h").node("Tanh", "h", "g").weights("wd", deviation / 2, 4 * width, width)
            .node("MatMul", "g,wd", "d").node("Add", "x1,d", "y").outputs("y");
    }
}
