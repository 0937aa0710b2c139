package io.hawser.worker;

import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.GpuBackendProvider;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;

/** Chooses the kind of GPU among those that the class path offers. */
final class Backends {
    /** A real GPU goes before the software one. */
    private static final List<String> PREFERENCE = List.of("nvidia", "software");

    private Backends() { }

    /**
     * Opens a backend.
     *
     * @param wanted its name, or {@code auto} for the best that this machine has.
     * @param options how to open it.
     * @return the backend.
     * @throws IllegalStateException if there is none of that name or it cannot be opened; the message says why.
     */
    static GpuBackend open(String wanted, BackendOptions options) {
        List<GpuBackendProvider> providers = new ArrayList<>();
        ServiceLoader.load(GpuBackendProvider.class).forEach(providers::add);
        providers.sort((a, b) -> Integer.compare(rank(a), rank(b)));
        for (GpuBackendProvider provider : providers) {
            if ("auto".equals(wanted) ? provider.isAvailable() : provider.name().equals(wanted)) {
                return provider.open(options);
            }
        }
        throw new IllegalStateException("no such GPU backend is available: wanted=" + wanted + " known="
            + providers.stream().map(GpuBackendProvider::name).toList());
    }

    private static int rank(GpuBackendProvider provider) {
        int at = PREFERENCE.indexOf(provider.name());
        return at < 0 ? PREFERENCE.size() : at;
    }
}
