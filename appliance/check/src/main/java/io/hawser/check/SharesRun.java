package io.hawser.check;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * A set that ran in one way.
 *
 * @param tenants in the order of the set.
 */
record SharesRun(ShareSet set, Way way, List<TenantFigures> tenants) {
    /** The kernels of all programs. */
    long kernels() {
        return tenants.stream().mapToLong(TenantFigures::kernels).sum();
    }

    /** The most kernels of a program per weight over the least. */
    double mostOverLeast() {
        return Ratios.mostOverLeast(parts());
    }

    /** The parts of a weighted set, such as {@code 1 : 2.03 : 4.02}; - if the first has none. */
    String partsText() {
        if (tenants.getFirst().kernels() == 0) {
            return "-";
        }
        return Arrays.stream(Ratios.toFirst(parts())).mapToObj(part -> number(part))
            .collect(Collectors.joining(" : "));
    }

    private static String number(double part) {
        return part == 1 ? "1" : String.format(Locale.ROOT, "%.2f", part);
    }

    List<Ratios.Part> parts() {
        return tenants.stream().map(TenantFigures::part).toList();
    }
}
