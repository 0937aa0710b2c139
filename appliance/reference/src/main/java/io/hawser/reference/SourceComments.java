package io.hawser.reference;

import com.sun.source.doctree.DocCommentTree;
import com.sun.source.doctree.DocTree;
import com.sun.source.doctree.EntityTree;
import com.sun.source.doctree.LinkTree;
import com.sun.source.doctree.LiteralTree;
import com.sun.source.doctree.StartElementTree;
import com.sun.source.doctree.TextTree;
import com.sun.source.tree.ClassTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.tree.VariableTree;
import com.sun.source.util.DocTrees;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreePathScanner;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** The doc comments of Java source files as Markdown, read by the JDK's own parser. */
public final class SourceComments {
    private final Map<String, String> texts = new LinkedHashMap<>();
    private final BiFunction<String, String, String> links;

    private SourceComments(BiFunction<String, String, String> links) {
        this.links = links;
    }

    /** Reads a file. */
    public static SourceComments read(Path source, BiFunction<String, String, String> links) {
        return read(List.of(source), links);
    }

    /**
     * Reads files.
     *
     * @param links gives the Markdown of a link, from the class that holds the comment and the link's target.
     */
    public static SourceComments read(List<Path> sources, BiFunction<String, String, String> links) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        SourceComments comments = new SourceComments(links);
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
            JavacTask task = (JavacTask) compiler.getTask(null, files, null, List.of("-proc:none"), null,
                files.getJavaFileObjectsFromPaths(sources));
            comments.new Scanner(DocTrees.instance(task)).scan(task.parse(), null);
        } catch (IOException e) {
            throw new UncheckedIOException("Java source files must be readable: " + sources, e);
        }
        return comments;
    }

    /** Returns the names of all declarations with a comment, in the order of the source. */
    public List<String> names() {
        return List.copyOf(texts.keySet());
    }

    /**
     * Returns the comment of a class ({@code Outer.Inner}) or of its member ({@code Outer.Inner#name}).
     *
     * @throws IllegalArgumentException if there is none.
     */
    public String of(String name) {
        String text = texts.get(name);
        if (text == null) {
            throw new IllegalArgumentException("a described declaration must have a doc comment: " + name);
        }
        return text;
    }

    private final class Scanner extends TreePathScanner<Void, Void> {
        private final DocTrees trees;
        private final Deque<String> owners = new ArrayDeque<>();

        Scanner(DocTrees trees) {
            this.trees = trees;
        }

        private String owner() {
            return owners.isEmpty() ? "" : owners.peek();
        }

        private void note(String name) {
            DocCommentTree comment = trees.getDocCommentTree(getCurrentPath());
            if (comment != null) {
                texts.put(name, markdown(comment.getFullBody()));
            }
        }

        private String markdown(List<? extends DocTree> parts) {
            return parts.stream().map(this::markdown).collect(Collectors.joining()).strip();
        }

        private String markdown(DocTree part) {
            return switch (part) {
                case TextTree text -> text.getBody();
                case LiteralTree code -> "`" + code.getBody().getBody() + "`";
                case LinkTree link -> links.apply(owner(), link.getReference().getSignature());
                case EntityTree entity -> trees.getCharacters(entity);
                case StartElementTree element when element.getName().contentEquals("p") -> "\n\n";
                default -> throw new IllegalArgumentException("a described declaration's comment has text, code, links "
                    + "and paragraphs: " + part);
            };
        }

        @Override
        public Void visitClass(ClassTree tree, Void nothing) {
            String name = owner().isEmpty() ? tree.getSimpleName().toString() : owner() + "." + tree.getSimpleName();
            owners.push(name);
            note(name);
            super.visitClass(tree, null);
            owners.pop();
            return null;
        }

        @Override
        public Void visitMethod(MethodTree tree, Void nothing) {
            note(owner() + "#" + tree.getName());
            return null;
        }

        @Override
        public Void visitVariable(VariableTree tree, Void nothing) {
            note(owner() + "#" + tree.getName());
            return null;
        }
    }
}
