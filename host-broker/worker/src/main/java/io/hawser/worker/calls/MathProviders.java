package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import java.util.List;
import java.util.Objects;
import java.util.ServiceLoader;
import java.util.function.BiFunction;

/** Finds the math libraries of a kind of GPU. */
final class MathProviders {
    private static final List<MathProvider> PROVIDERS = ServiceLoader.load(MathProvider.class).stream()
        .map(ServiceLoader.Provider::get).toList();

    private MathProviders() {
    }

    /** Finds the providers and loads what they need: a jailed process opens no files. */
    static void loadAhead() {
        PROVIDERS.forEach(MathProvider::loadAhead);
    }

    /**
     * Opens a library.
     *
     * @param opener the provider's method for this library.
     * @return null when the machine has no such library; the log gives the reason.
     */
    static <T> T open(GpuBackend backend, BiFunction<MathProvider, GpuBackend, T> opener) {
        return PROVIDERS.stream().filter(provider -> provider.backend().equals(backend.name()))
            .map(provider -> opener.apply(provider, backend)).filter(Objects::nonNull).findFirst().orElse(null);
    }
}
