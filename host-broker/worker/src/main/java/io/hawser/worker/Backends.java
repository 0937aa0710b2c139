package io.hawser.worker;

import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.GpuBackendProvider;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;

/** Selects a GPU backend from the providers on the class path. */
final class Backends {
    /** In order of preference: a real GPU first. */
    private static final List<String> PREFERENCE = List.of("nvidia", "software");

    private Backends() {}

    /**
     * Opens a backend.
     *
     * @param wanted the backend's name, or {@code auto} for the most preferred one that this machine supports.
     * @param options how to open it.
     * @return the backend.
     * @throws IllegalStateException if no backend has that name or the backend cannot be opened; the message gives the
     *     cause.
     */
    static GpuBackend open(String wanted, BackendOptions options) {
        return provider(wanted).open(options);
    }

    /**
     * Finds the provider of a backend.
     *
     * @param wanted as for {@link #open}.
     * @throws IllegalStateException if no backend has that name.
     */
    static GpuBackendProvider provider(String wanted) {
        List<GpuBackendProvider> providers = new ArrayList<>();
        ServiceLoader.load(GpuBackendProvider.class).forEach(providers::add);
        providers.sort((a, b) -> Integer.compare(rank(a), rank(b)));
        for (GpuBackendProvider provider : providers) {
            if ("auto".equals(wanted) ? provider.isAvailable() : provider.name().equals(wanted)) {
                return provider;
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
