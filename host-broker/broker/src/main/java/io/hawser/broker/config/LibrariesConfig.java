package io.hawser.broker.config;

import io.hawser.broker.machine.MathLibraries;
import io.smallrye.config.WithDefault;
import java.nio.file.Path;
import java.util.List;

/** The math libraries of the machine, which workers call for their guests. */
public interface LibrariesConfig {
    /**
     * Folders of NVIDIA's math libraries (libcublas.so.13 or libcublas.so.12, libcufft.so.12 or libcufft.so.11), and of
     * OpenBLAS (libopenblas.so.0) for the software GPU, separated by commas. The first folder with a library counts.
     * The broker uses a folder only when nobody but root and its own user can write it and the folders above it;
     * folders above it may be sticky, as {@code /tmp} is. A worker opens a library at the first call of a session.
     */
    @WithDefault(MathLibraries.FOLDERS)
    List<Path> path();
}
