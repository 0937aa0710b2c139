package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class ShareSetTest {
    private static List<String> names(List<ShareSet> sets) {
        return sets.stream().map(ShareSet::name).toList();
    }

    @Test
    void shouldHaveGoalsForPlainSetsOnly() {
        assertEquals(List.of("equal2", "equal4", "equal8", "equal16"),
            names(ShareSet.all().stream().filter(ShareSet::isEqualFlood).toList()));
        assertEquals(List.of("tail8"), names(ShareSet.all().stream().filter(ShareSet::isTail).toList()));
    }

    @Test
    void shouldGiveComputeSharesToWeightedSetsOnly() {
        assertEquals(List.of("weights", "weightloops", "weightcopies", "weightmixed"),
            names(ShareSet.all().stream().filter(ShareSet::isWeighted).toList()));
    }
}
