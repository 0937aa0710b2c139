package io.hawser.reference;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The files of the source tree and the names that they declare, without what a build makes. */
final class Tree {
    private static final Set<String> SKIPPED = Set.of(".git", "target", "node_modules");
    private static final Pattern TYPE = Pattern.compile("\\b(?:class|interface|record|enum) ([A-Z]\\w*)");
    private static final Pattern NAME = Pattern.compile("[A-Za-z_]\\w+");

    private final Set<String> files = new TreeSet<>();
    private final Set<String> folders = new TreeSet<>();
    /** The names in the files that declare a class, by the class. */
    private final Map<String, Set<String>> types = new HashMap<>();
    private final Set<String> namesOfC = new HashSet<>();

    Tree(Path root) throws IOException {
        Files.walkFileTree(root, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
                if (SKIPPED.contains(folder.getFileName().toString()) && !folder.equals(root)) {
                    return FileVisitResult.SKIP_SUBTREE;
                }
                folders.add(root.relativize(folder).toString());
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                String path = root.relativize(file).toString();
                files.add(path);
                if (path.endsWith(".java")) {
                    String text = Files.readString(file);
                    Set<String> names = NAME.matcher(text).results().map(MatchResult::group).collect(
                        Collectors.toSet());
                    TYPE.matcher(text).results().forEach(match -> types.computeIfAbsent(match.group(1),
                        type -> new HashSet<>()).addAll(names));
                } else if (path.matches(".*\\.(c|h|cu|map|yaml)|.*CMakeLists\\.txt|.*Makefile")) {
                    NAME.matcher(read(path)).results().forEach(match -> namesOfC.add(match.group()));
                }
                return FileVisitResult.CONTINUE;
            }
        });
    }

    /** The text of a file. */
    static String read(String path) {
        try {
            return Files.readString(Repository.file(path));
        } catch (IOException e) {
            throw new UncheckedIOException("a file of the tree must be readable as text: " + path, e);
        }
    }

    /** The paths of all documents. */
    List<String> documents() {
        return files.stream().filter(f -> f.endsWith(".md")).toList();
    }

    boolean isTopFolder(String name) {
        return !name.isEmpty() && folders.contains(name);
    }

    /** Whether a path from the root exists; the output of a build, below {@code target}, need not exist. */
    boolean exists(String path) {
        return isThere("", path);
    }

    /** Whether the path of some file or folder ends with this path. */
    boolean endsWith(String path) {
        return isThere("(.*/)?", path);
    }

    private boolean isThere(String before, String path) {
        String stripped = path.replaceFirst("/target(/.*)?$", "").replaceFirst("/$", "");
        if (!stripped.matches(".*[*<>{}].*")) {
            return files.contains(stripped) || folders.contains(stripped) || !before.isEmpty()
                && Stream.concat(files.stream(), folders.stream()).anyMatch(f -> f.endsWith("/" + stripped));
        }
        Pattern pattern = Pattern.compile(before + stripped.replace(".", "\\.").replace("+", "\\+")
            .replaceAll("<[^>]*>|\\*+", "[^/]*").replace("{", "(").replace("}", ")").replace(",", "|"));
        return Stream.concat(files.stream(), folders.stream()).anyMatch(f -> pattern.matcher(f).matches());
    }

    boolean hasType(String name) {
        return types.containsKey(name);
    }

    boolean hasNameOfC(String name) {
        return namesOfC.contains(name);
    }

    /** Whether a file that declares the class has the name. */
    boolean hasMember(String type, String name) {
        return types.getOrDefault(type, Set.of()).contains(name);
    }
}
