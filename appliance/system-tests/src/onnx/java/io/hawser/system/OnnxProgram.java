package io.hawser.system;

import ai.onnxruntime.NodeInfo;
import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.IntToDoubleFunction;
import java.util.stream.IntStream;

/**
 * The guest program of {@link OnnxRuntimeIT}: runs each of {@link OnnxModels} with ONNX Runtime's CPU provider and with
 * its CUDA provider, compares the outputs, and prints one line a model.
 */
final class OnnxProgram {
    private static final int CUDA_RUNS = 2; // the second uses memory and plans that the first has left
    private static final long SEED = 7; // of the inputs
    private static final int INDEX_BOUND = 3; // integers serve as indices into dimensions of at least this size

    private final OrtEnvironment environment = OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_ERROR,
        "onnx");

    private OnnxProgram() {
    }

    /** An output of a model. */
    private record Output(OnnxJavaType type, double[] values) {
        /** The allowed difference, relative to the output's largest number. */
        double tolerance() {
            return switch (type) {
                case FLOAT -> 1e-5;
                case DOUBLE -> 1e-12;
                default -> 0; // conversions, comparisons and indices
            };
        }

        /** The largest difference to another output, relative to this one's largest number; infinity for NaN. */
        double difference(Output other) {
            if (type != other.type || values.length != other.values.length) {
                return Double.POSITIVE_INFINITY;
            }
            double scale = IntStream.range(0, values.length).mapToDouble(i -> Math.abs(values[i])).max().orElse(0);
            double worst = IntStream.range(0, values.length).mapToDouble(i -> Math.abs(values[i] - other.values[i]))
                .max().orElse(Double.POSITIVE_INFINITY);
            double relative = worst == 0 ? 0 : worst / scale;
            return Double.isNaN(relative) ? Double.POSITIVE_INFINITY : relative;
        }
    }

    /** Runs all models. The exit status is 1 if an output was wrong or a run failed. */
    public static void main(String[] arguments) {
        OnnxProgram program = new OnnxProgram();
        List<OnnxModels.Model> models = OnnxModels.all();
        long right = models.stream().filter(program::isRight).count();
        if (right < models.size()) {
            System.out.println("FAIL onnx: " + (models.size() - right) + " of " + models.size() + " models");
            System.exit(1);
        }
        System.out.println("PASS onnx: " + right + " models");
    }

    /** Compares the providers, and prints the model's line. */
    private boolean isRight(OnnxModels.Model model) {
        Map<String, OnnxTensor> inputs = new HashMap<>();
        String fault = "";
        double worst = 0;
        try {
            List<Output> expected = run(model, false, inputs, 1).getFirst();
            for (List<Output> actual : run(model, true, inputs, CUDA_RUNS)) {
                for (int i = 0; i < expected.size(); i++) {
                    double difference = expected.get(i).difference(actual.get(i));
                    worst = Math.max(worst, difference);
                    if (difference > expected.get(i).tolerance()) {
                        fault += ", output %d has a difference of %.1e".formatted(i, difference);
                    }
                }
            }
        } catch (OrtException e) {
            fault += ", " + e.getMessage();
        } finally {
            inputs.values().forEach(OnnxTensor::close);
        }
        System.out.println(fault.isEmpty() ? "right %s %.1e".formatted(model.name(), worst)
            : "WRONG " + model.name() + fault);
        return fault.isEmpty();
    }

    /** The outputs of each run. Fills empty inputs by the model's own description. */
    private List<List<Output>> run(OnnxModels.Model model, boolean usesCuda, Map<String, OnnxTensor> inputs, int runs)
        throws OrtException {
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions();
            OrtCUDAProviderOptions cuda = new OrtCUDAProviderOptions(0)) {
            if (usesCuda) {
                cuda.add("use_tf32", "0"); // else NVIDIA's libraries would round inputs to ten bits of mantissa
                options.addCUDA(cuda);
                // A node that silently ran on the CPU would prove nothing.
                options.addConfigEntry("session.disable_cpu_ep_fallback", "1");
            }
            try (OrtSession session = environment.createSession(model.graph().model(), options)) {
                if (inputs.isEmpty()) {
                    Random random = new Random(SEED);
                    for (NodeInfo input : session.getInputInfo().values()) {
                        inputs.put(input.getName(), tensor((TensorInfo) input.getInfo(), random));
                    }
                }
                List<List<Output>> all = new ArrayList<>();
                for (int i = 0; i < runs; i++) {
                    all.add(outputs(session, inputs));
                }
                return all;
            }
        }
    }

    private static List<Output> outputs(OrtSession session, Map<String, OnnxTensor> inputs) throws OrtException {
        try (OrtSession.Result result = session.run(inputs)) {
            List<Output> outputs = new ArrayList<>();
            for (Map.Entry<String, OnnxValue> entry : result) {
                OnnxTensor tensor = (OnnxTensor) entry.getValue();
                outputs.add(new Output(tensor.getInfo().type, numbers(tensor)));
            }
            return outputs;
        }
    }

    private OnnxTensor tensor(TensorInfo info, Random random) throws OrtException {
        int count = (int) info.getNumElements();
        long[] shape = info.getShape();
        return switch (info.type) {
            case FLOAT -> {
                FloatBuffer values = FloatBuffer.allocate(count);
                IntStream.range(0, count).forEach(i -> values.put(i, (float) random.nextGaussian()));
                yield OnnxTensor.createTensor(environment, values, shape);
            }
            case DOUBLE -> {
                DoubleBuffer values = DoubleBuffer.allocate(count);
                IntStream.range(0, count).forEach(i -> values.put(i, random.nextGaussian()));
                yield OnnxTensor.createTensor(environment, values, shape);
            }
            case INT64 -> {
                LongBuffer values = LongBuffer.allocate(count);
                IntStream.range(0, count).forEach(i -> values.put(i, random.nextInt(INDEX_BOUND)));
                yield OnnxTensor.createTensor(environment, values, shape);
            }
            case BOOL -> {
                ByteBuffer values = ByteBuffer.allocateDirect(count);
                IntStream.range(0, count).forEach(i -> values.put(i, (byte) random.nextInt(2)));
                yield OnnxTensor.createTensor(environment, values, shape, OnnxJavaType.BOOL);
            }
            default -> throw new IllegalArgumentException("no input of this type: " + info);
        };
    }

    private static double[] numbers(OnnxTensor tensor) {
        TensorInfo info = tensor.getInfo();
        IntToDoubleFunction number = switch (info.type) {
            case FLOAT, FLOAT16 -> tensor.getFloatBuffer()::get;
            case DOUBLE -> tensor.getDoubleBuffer()::get;
            case INT64 -> tensor.getLongBuffer()::get;
            case BOOL -> tensor.getByteBuffer()::get;
            default -> throw new IllegalArgumentException("no output of this type: " + info);
        };
        return IntStream.range(0, (int) info.getNumElements()).mapToDouble(number).toArray();
    }
}
