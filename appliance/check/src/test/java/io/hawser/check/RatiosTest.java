package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.check.Ratios.Part;
import java.util.List;
import org.junit.jupiter.api.Test;

class RatiosTest {
    private static final double EXACT = 1e-12;

    @Test
    void shouldTakeTheMeanOfTheTwoMiddleValues() {
        assertEquals(2, Ratios.median(9, 1, 2));
        assertEquals(2.5, Ratios.median(9, 1, 3, 2));
        assertTrue(Double.isNaN(Ratios.median()));
    }

    @Test
    void shouldDivideTheMostByTheLeastPerWeight() {
        assertEquals(1.5, Ratios.mostOverLeast(List.of(new Part(1, 20), new Part(1, 30), new Part(1, 24))), EXACT);
        assertEquals(1.25, Ratios.mostOverLeast(List.of(new Part(1, 10), new Part(2, 25), new Part(4, 40))), EXACT);
    }

    @Test
    void shouldExcludeWeight0FromMostOverLeast() {
        assertEquals(1.1, Ratios.mostOverLeast(List.of(new Part(0, 1), new Part(1, 10), new Part(1, 11))), EXACT);
        assertTrue(Double.isNaN(Ratios.mostOverLeast(List.of(new Part(0, 1)))));
    }

    @Test
    void shouldFindAStarvedProgramInfinitelyUnequal() {
        assertEquals(Double.POSITIVE_INFINITY, Ratios.mostOverLeast(List.of(new Part(1, 0), new Part(1, 1))));
        assertEquals(Double.POSITIVE_INFINITY, Ratios.deviationPercent(List.of(new Part(1, 0), new Part(2, 1))));
    }

    @Test
    void shouldRelatePartsToTheFirst() {
        assertArrayEquals(new double[] {1, 2.5, 3.6},
            Ratios.toFirst(List.of(new Part(1, 10), new Part(2, 25), new Part(4, 36))), EXACT);
    }

    @Test
    void shouldFindTheLargestDeviationFromTheWeights() {
        assertEquals(0, Ratios.deviationPercent(List.of(new Part(1, 10), new Part(2, 20), new Part(4, 40))), EXACT);
        assertEquals(25, Ratios.deviationPercent(List.of(new Part(1, 10), new Part(2, 25), new Part(4, 36))), EXACT);
        assertEquals(20, Ratios.deviationPercent(List.of(new Part(1, 10), new Part(2, 21), new Part(4, 32))), EXACT);
    }

    @Test
    void shouldCompareTwoInTurnWithTwoAtOnce() {
        assertEquals(0.8, Ratios.exchange(4, 10), EXACT);
    }

    @Test
    void shouldRelateTheCostToTheMeanTimeAlone() {
        assertEquals(5, Ratios.costPercent(9, 11, 10.5), EXACT);
        assertEquals(-10, Ratios.costPercent(9, 11, 9), EXACT);
    }

    @Test
    void shouldSizeAKernelInStepsOf256Bodies() {
        assertEquals(1536, Ratios.bodies(4096, 2, 0.8));
        assertEquals(40_960, Ratios.bodies(4096, 2, 20));
        assertEquals(256, Ratios.bodies(4096, 35, 0.2));
    }
}
