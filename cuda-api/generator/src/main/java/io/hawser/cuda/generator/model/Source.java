package io.hawser.cuda.generator.model;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/** The source of the description's files: a folder, or the description's own artifact on the class path. */
public final class Source {
    private static final String RESOURCES = "/io/hawser/cuda/description/";
    private static final ObjectMapper YAML = new ObjectMapper(new YAMLFactory())
        .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY);

    private final Path folder;

    private Source(Path folder) {
        this.folder = folder;
    }

    /**
     * The files of a folder; the class path supplies missing ones, so that a further library can use existing
     * descriptions.
     */
    public static Source folder(Path folder) {
        return new Source(folder);
    }

    /** The files of the artifact {@code cuda-api-description}. */
    public static Source classPath() {
        return new Source(null);
    }

    /**
     * Reads a file; an unknown key is an error.
     *
     * @param name relative to the description's root.
     * @throws IOException if the file is missing or invalid; the message names the file.
     */
    public <T> T read(String name, Class<T> type) throws IOException {
        try {
            return YAML.readValue(text(name), type);
        } catch (IOException e) {
            throw new IOException(name + ": " + e.getMessage(), e);
        }
    }

    /** Converts a part of a file; an unknown key is an error. */
    static <T> T convert(JsonNode node, Class<T> type) throws IOException {
        return YAML.treeToValue(node, type);
    }

    /** The text of a file. */
    public String text(String name) throws IOException {
        if (folder != null && Files.exists(folder.resolve(name))) {
            return Files.readString(folder.resolve(name));
        }
        try (InputStream in = Source.class.getResourceAsStream(RESOURCES + name)) {
            if (in == null) {
                throw new NoSuchFileException(RESOURCES + name);
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
