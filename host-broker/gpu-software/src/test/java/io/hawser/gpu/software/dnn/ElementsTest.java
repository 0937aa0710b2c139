package io.hawser.gpu.software.dnn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.cudnn.cudnnActivationMode_t;
import io.hawser.cuda.generated.cudnn.cudnnNanPropagation_t;
import io.hawser.cuda.generated.cudnn.cudnnOpTensorOp_t;
import io.hawser.cuda.generated.cudnn.cudnnPointwiseMode_t;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** Shapes, functions of elements, and reductions. */
class ElementsTest {
    @Test
    void shouldTellWhetherElementsOverlap() throws Refusal {
        assertTrue(Shape.packed(0, 2, 3, 4).isDisjoint());
        assertTrue(Shape.channelsLast(0, 2, 3, 4, 5).isDisjoint());
        assertTrue(new Shape(0, new long[] {2, 1, 4}, new long[] {4, 0, 1}).isDisjoint());
        assertFalse(new Shape(0, new long[] {2, 4}, new long[] {3, 1}).isDisjoint());
        assertFalse(new Shape(0, new long[] {2, 4}, new long[] {0, 1}).isDisjoint());
    }

    @Test
    void shouldRefuseSizesThatWouldWrap() {
        assertThrows(Refusal.class, () -> new Shape(0, new long[] {1L << 31}, new long[] {1}));
        assertThrows(Refusal.class, () -> new Shape(0, new long[] {2}, new long[] {-1}));
        assertThrows(Refusal.class, () -> new Shape(0, new long[] {0}, new long[] {1}));
        assertThrows(Refusal.class, () -> new Shape(0, new long[] {2, 2}, new long[] {1}));
        assertThrows(Refusal.class, () -> new Shape(0, new long[] {1 << 30, 1 << 30}, new long[] {0, 0}));
        assertThrows(Refusal.class, () -> new Shape(0, new long[9], new long[9]));
    }

    @Test
    void shouldRepeatElementsOfSizeOne() throws Refusal {
        Samples samples = new Samples(1);
        Tensor a = samples.tensor(1, 3, 1, 1);
        Tensor c = samples.tensor(2, 3, 2, 4);
        double[] numbers = Samples.values(a);
        double[] before = Samples.values(c);
        double[] expected = new double[before.length];
        for (int i = 0; i < expected.length; i++) {
            expected[i] = 2 * numbers[i / 8 % 3] + 0.5 * before[i];
        }
        Elements.map(c, 0.5, v -> 2 * v[0], a);
        Samples.assertNear(expected, c, "c");
    }

    @Test
    void shouldMapLargeTensorsInParts() throws Refusal {
        Samples samples = new Samples(2);
        Tensor x = samples.fill(Shape.packed(0, 7, 11, 1013));
        Tensor y = samples.fill(Shape.packed(0, 7, 11, 1013));
        Elements.map(y, 0, v -> 3 * v[0], x);
        Samples.assertNear(Arrays.stream(Samples.values(x)).map(v -> 3 * v).toArray(), y, "y");
    }

    @Test
    void shouldDeriveEachActivation() {
        for (int mode : new int[] {cudnnActivationMode_t.CUDNN_ACTIVATION_SIGMOID,
            cudnnActivationMode_t.CUDNN_ACTIVATION_RELU, cudnnActivationMode_t.CUDNN_ACTIVATION_TANH,
            cudnnActivationMode_t.CUDNN_ACTIVATION_CLIPPED_RELU, cudnnActivationMode_t.CUDNN_ACTIVATION_ELU,
            cudnnActivationMode_t.CUDNN_ACTIVATION_SWISH}) {
            Activation activation = new Activation(mode, 0, 1.5, 0.7);
            for (double x = -3.05; x < 3; x += 0.1) {
                double slope = (activation.of(x + 1e-6) - activation.of(x - 1e-6)) / 2e-6;
                assertEquals(slope, activation.derivative(x, activation.of(x)), 1e-5, "mode=" + mode + " x=" + x);
            }
        }
    }

    @Test
    void shouldPropagateNanOnlyWhereAnActivationSaysSo() {
        Activation quiet = new Activation(cudnnActivationMode_t.CUDNN_ACTIVATION_RELU,
            cudnnNanPropagation_t.CUDNN_NOT_PROPAGATE_NAN, 0, 1);
        Activation loud = new Activation(cudnnActivationMode_t.CUDNN_ACTIVATION_RELU,
            cudnnNanPropagation_t.CUDNN_PROPAGATE_NAN, 0, 1);
        assertEquals(0, quiet.of(Double.NaN));
        assertEquals(Double.NaN, loud.of(Double.NaN));
    }

    @Test
    void shouldApplyOperators() {
        assertEquals(5, new Operator(cudnnOpTensorOp_t.CUDNN_OP_TENSOR_ADD, 0).of(2, 3));
        assertEquals(6, new Operator(cudnnOpTensorOp_t.CUDNN_OP_TENSOR_MUL, 0).of(2, 3));
        assertEquals(2, new Operator(cudnnOpTensorOp_t.CUDNN_OP_TENSOR_MIN, 0).of(2, Double.NaN));
        assertEquals(Double.NaN, new Operator(cudnnOpTensorOp_t.CUDNN_OP_TENSOR_MAX, 1).of(2, Double.NaN));
        assertEquals(2, new Operator(cudnnOpTensorOp_t.CUDNN_OP_TENSOR_SQRT, 0).of(4, 7));
        assertEquals(-1, new Operator(cudnnOpTensorOp_t.CUDNN_OP_TENSOR_NOT, 0).of(2, 7));
    }

    @Test
    void shouldReduceByEachOperator() throws Refusal {
        Samples samples = new Samples(3);
        Tensor x = samples.tensor(2, 3, 1, 2);
        Samples.set(x, 1, -2, 3, 0, 5, 6, -7, 8, 9, 10, 0, 12);
        double[][] expected = { // over batch and columns, for each channel
            {0, 22, 23}, {112, 0, 0}, {-7, 0, 0}, {8, 10, 12}, {8, 10, 12}, {0, 5.5, 5.75}, {18, 22, 23},
            {Math.sqrt(1 + 4 + 49 + 64), Math.sqrt(9 + 81 + 100), Math.sqrt(25 + 36 + 144)}, {112, 270, 360}};
        for (int operator = 0; operator < expected.length; operator++) {
            Tensor c = samples.tensor(1, 3, 1, 1);
            double[] before = Samples.values(c);
            Reduction reduction = new Reduction(operator, 0);
            reduction.check(x.shape(), c.shape());
            reduction.run(x, c, 2, 0.5);
            Samples.assertNear(Samples.blended(expected[operator], 2, before, 0.5), c, "operator=" + operator);
        }
    }

    @Test
    void shouldMultiplyMatricesAndRepeatABatchOfOne() throws Refusal {
        Samples samples = new Samples(4);
        Tensor a = samples.tensor(2, 3, 4);
        Tensor b = samples.tensor(1, 4, 5);
        Tensor c = samples.tensor(2, 3, 5);
        double[] left = Samples.values(a);
        double[] right = Samples.values(b);
        double[] expected = new double[30];
        for (int i = 0; i < 30; i++) {
            for (int k = 0; k < 4; k++) {
                expected[i] += left[i / 5 * 4 + k] * right[k * 5 + i % 5];
            }
        }
        Matrices.check(a.shape(), b.shape(), c.shape());
        Matrices.multiply(a, b, c);
        Samples.assertNear(expected, c, "c");
        assertThrows(Refusal.class, () -> Matrices.check(b.shape(), a.shape(), c.shape()));
    }

    @Test
    void shouldClipPointwise() throws Refusal {
        Pointwise clipped = new Pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_RELU_FWD, 0, -1, 6, 0, 1, 1);
        clipped.check();
        assertEquals(-1, clipped.of(-3, 0));
        assertEquals(6, clipped.of(9, 0));
        Pointwise leaky = new Pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_RELU_FWD, 0, 0, 9, 0.1, 1, 1);
        leaky.check();
        assertEquals(-0.3, leaky.of(-3, 0), 1e-12);
        assertThrows(Refusal.class,
            () -> new Pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_ERF, 0, 0, 1, 0, 1, 1).check());
    }
}
