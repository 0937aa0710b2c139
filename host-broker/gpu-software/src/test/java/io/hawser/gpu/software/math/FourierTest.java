package io.hawser.gpu.software.math;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;

class FourierTest {
    private static double[] sums(double[] in, int sign) {
        int n = in.length / 2;
        double[] out = new double[in.length];
        for (int k = 0; k < n; k++) {
            for (int j = 0; j < n; j++) {
                double angle = sign * 2 * Math.PI * ((long) j * k % n) / n;
                out[2 * k] += in[2 * j] * Math.cos(angle) - in[2 * j + 1] * Math.sin(angle);
                out[2 * k + 1] += in[2 * j] * Math.sin(angle) + in[2 * j + 1] * Math.cos(angle);
            }
        }
        return out;
    }

    private static double error(double[] expected, double[] got) {
        double difference = 0;
        double norm = 0;
        for (int i = 0; i < expected.length; i++) {
            difference += (expected[i] - got[i]) * (expected[i] - got[i]);
            norm += expected[i] * expected[i];
        }
        return Math.sqrt(difference / norm);
    }

    @Test
    void shouldEqualTheSumsForEveryLength() {
        Random random = new Random(1);
        for (int n = 1; n <= 160; n++) {
            double[] in = random.doubles(2L * n, -1, 1).toArray();
            double[] before = in.clone();
            double[] out = new double[2 * n];
            Fourier fourier = new Fourier(n);
            fourier.forward(in, out);
            double forward = error(sums(before, -1), out);
            fourier.inverse(in, out);
            double inverse = error(sums(before, 1), out);
            int length = n;
            assertTrue(forward < 1e-13 && inverse < 1e-13, () -> "n=" + length + " " + forward + " " + inverse);
            assertEquals(0, error(before, in), "the input must stay as it is");
        }
    }

    @Test
    void shouldReturnTheInputTimesTheLengthOfLargeTransforms() {
        Random random = new Random(2);
        for (int n : new int[] {1 << 18, 3 * 5 * 7 * 11 * 13 * 17, 262_147, 2 * 131_101}) {
            double[] in = random.doubles(2L * n, -1, 1).toArray();
            double[] spectrum = new double[2 * n];
            double[] out = new double[2 * n];
            Fourier fourier = new Fourier(n);
            fourier.forward(in, spectrum);
            fourier.inverse(spectrum, out);
            for (int i = 0; i < out.length; i++) {
                out[i] /= n;
            }
            double error = error(in, out);
            assertTrue(error < 1e-12, () -> "n=" + n + " error=" + error);
        }
    }
}
